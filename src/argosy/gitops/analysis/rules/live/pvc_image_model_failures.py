"""Live rules about workloads: claims, images, models, and other unhealthy objects.

In: a live view. Out: violations. Never: reports a claim that only waits for its first consumer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from argosy.gitops.analysis.live_view import LiveApplication, LiveView
from argosy.gitops.analysis.rule import build_live_rule
from argosy.gitops.analysis.rule_violation import FileLocation, Severity, Violation
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.objects import Manifest, get_annotation, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import (
    BUILD,
    INFERENCE_SERVICE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STORAGE_CLASS,
)

FIRST_CONSUMER: Final = "WaitForFirstConsumer"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
IMAGE_PULL_REASONS: Final = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
RUNNING_BUILD_PHASES: Final = ("New", "Pending", "Running")
_WAVE_PREFIX: Final = re.compile(r"^wave -?\d+: ")
_IMAGE_NOT_FOUND: Final = re.compile(
    r"manifest unknown|manifest for .* not found|not found|name unknown|does not exist", re.I
)
_PULL_DENIED: Final = re.compile(
    r"unauthorized|authentication required|denied|forbidden|no basic auth|\b40[13]\b", re.I
)


def _build_violation(view: LiveView, key: ResourceKey, message: str, fix: str) -> Violation:
    """Report at the Application that owns the object, else at the object."""
    name = f"{key.kind}/{key.name}"
    app = view.find_owner(key)
    location = FileLocation(f"Application/{app.name}" if app else name)
    return Violation(location, f"{name} -n {key.namespace}: {message}", fix, name)


# -- claims -----------------------------------------------------------------------------------------------------------


def _find_unbindable_claims(view: LiveView) -> Iterator[Violation]:
    for claim in view.list_objects(PERSISTENT_VOLUME_CLAIM):
        if as_mapping(claim.get("status")).get("phase") == "Pending" and (
            problem_and_fix := _explain_unbound_claim(view, claim)
        ):
            yield _build_violation(view, key_of(claim), *problem_and_fix)


def _explain_unbound_claim(view: LiveView, claim: Manifest) -> tuple[str, str] | None:
    """Return why the claim cannot be bound; None if it may be, for example when it waits for its first consumer."""
    spec = as_mapping(claim.get("spec"))
    name = spec.get("storageClassName", get_annotation(claim, "volume.beta.kubernetes.io/storage-class") or None)
    classes = {str(entry["metadata"]["name"]): entry for entry in view.list_objects(STORAGE_CLASS)}
    events = view.list_events(key_of(claim))
    failure_event = next((entry for entry in reversed(events) if entry.get("reason") == "ProvisioningFailed"), None)
    has_no_volume = not spec.get("volumeName") and _has_no_available_volume(view, name or "")
    if name and name not in classes and has_no_volume:
        return f"Pending: StorageClass {name} does not exist", f"use one of {', '.join(sorted(classes)) or 'yours'}"
    if name is None and has_no_volume and not any(map(_is_default_class, classes.values())):
        return "Pending: storageClassName is not set, and the cluster has no default class", "set storageClassName"
    if failure_event is not None:
        message = str(failure_event.get("message") or "no reason given")
        problem = "the quota is exceeded" if "exceeded quota" in message else "its provisioner failed"
        return f"Pending: {problem}: {message}", "fix the provisioner's error, or request less"
    return None


def _has_no_available_volume(view: LiveView, storage_class: str) -> bool:
    """True if no manually created volume can be bound; False if volumes cannot be read."""
    if {STORAGE_CLASS, PERSISTENT_VOLUME} & view.unread_kinds:
        return False
    available_volumes = [
        volume
        for volume in view.list_objects(PERSISTENT_VOLUME)
        if as_mapping(volume.get("status")).get("phase") == "Available"
    ]
    return not any(
        str(as_mapping(volume.get("spec")).get("storageClassName") or "") == storage_class
        for volume in available_volumes
    )


def _is_default_class(storage_class: Manifest) -> bool:
    return get_annotation(storage_class, DEFAULT_CLASS) == "true"


# -- images -----------------------------------------------------------------------------------------------------------


def _find_unpullable_images(view: LiveView) -> Iterator[Violation]:
    reported: set[tuple[str, str]] = set()
    for pod in view.list_objects(POD):
        for image, error_text in _list_failed_pulls(pod):
            app = view.find_owner(key_of(pod))
            if (app.name if app else "", image) in reported:
                continue
            reported.add((app.name if app else "", image))
            message, fix = _explain_failed_pull(view, image, error_text)
            yield _build_violation(view, key_of(pod), message, f"{fix}{_render_terminate_sync_commands(app)}")


def _render_terminate_sync_commands(app: LiveApplication | None) -> str:
    """Return commands that end a sync waiting for the Pod; empty if none runs."""
    if app is None or not app.has_running_operation:
        return ""
    rollback_text = f", or roll back: argosy app rollback {app.name}" if app.has_earlier_deployment else ""
    return f"; a sync is running, end it: argosy app terminate-op {app.name}{rollback_text}"


def _list_failed_pulls(pod: Manifest) -> Iterator[tuple[str, str]]:
    status = as_mapping(pod.get("status"))
    for container_status in as_mappings(status.get("initContainerStatuses")) + as_mappings(
        status.get("containerStatuses")
    ):
        waiting = as_mapping(as_mapping(container_status.get("state")).get("waiting"))
        if waiting.get("reason") in IMAGE_PULL_REASONS:
            yield str(container_status.get("image") or ""), f"{waiting.get('reason')}: {waiting.get('message') or ''}"


def _explain_failed_pull(view: LiveView, image: str, error_text: str) -> tuple[str, str]:
    build = _find_newest_build(view, image)
    phase = str(as_mapping(build.get("status")).get("phase") or "New") if build else ""
    name = build["metadata"]["name"] if build else ""
    if phase in RUNNING_BUILD_PHASES:
        return f"{image}: its build {name} is still running ({phase})", "wait for it: argosy generate wait-for-image"
    if phase in ("Failed", "Error", "Cancelled"):
        return f"{image}: its build {name} {phase.lower()}", f"see its log: oc logs build/{name}"
    if _PULL_DENIED.search(error_text):
        advice = "give the ServiceAccount a pull secret for this registry (imagePullSecrets)"
        return f"{image}: the registry requires credentials", advice
    if error_text.startswith("InvalidImageName"):
        return f"{image}: is not a valid image name", "correct it in Git"
    if _IMAGE_NOT_FOUND.search(error_text):
        return f"{image}: the registry has no such tag", "push that tag, or use an existing one"
    return f"{image}: {_shorten(error_text)}", "check whether the node can reach the registry"


def _shorten(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:159]}…"


def _find_newest_build(view: LiveView, image: str) -> Manifest | None:
    """Find the newest Build that writes this image of the cluster's internal registry."""
    builds = [build for build in view.list_objects(BUILD) if _writes_image(build, image)]
    return max(builds, key=lambda build: str(build["metadata"].get("creationTimestamp") or ""), default=None)


def _writes_image(build: Manifest, image: str) -> bool:
    output = as_mapping(as_mapping(as_mapping(build.get("spec")).get("output")).get("to"))
    namespace = output.get("namespace") or build["metadata"].get("namespace")
    if output.get("kind") == "DockerImage":
        return bool(output.get("name") == image)
    return output.get("kind") == "ImageStreamTag" and image.endswith(f"/{namespace}/{output.get('name')}")


# -- models -----------------------------------------------------------------------------------------------------------


def _find_failing_models(view: LiveView) -> Iterator[Violation]:
    for model in view.models:
        key = key_of(model.service)
        codes = [response.code for response in model.responses if response.code]
        if is_model_ready(model.service) and max(codes, default=0) >= 500 and min(codes) >= 400:
            responses_text = ", ".join(
                f"{response.path} {response.code}" for response in model.responses if response.code
            )
            fix = f"see its log: argosy model probe {key.namespace}/{key.name}"
            yield _build_violation(view, key, f"Ready, but its health requests fail: {responses_text}", fix)
        if model.outdated_pods:
            fix = f"load the new file: argosy model restart {key.namespace}/{key.name}"
            yield _build_violation(
                view, key, f"Ready, but the loaded model is not the one on storage: {model.outdated_pods}", fix
            )


def is_model_ready(live: Mapping[str, Any]) -> bool:
    conditions = as_mappings(as_mapping(live.get("status")).get("conditions"))
    return any((condition.get("type"), condition.get("status")) == ("Ready", "True") for condition in conditions)


# -- other unhealthy objects ------------------------------------------------------------------------------------------


def _find_degraded_apps(view: LiveView) -> Iterator[Violation]:
    for app in view.apps:
        if app.health != "Degraded":
            continue
        kinds = {resource.key.kind for resource in app.resources}
        message = _WAVE_PREFIX.sub("", app.blockers[0].strip()).replace("  Degraded: ", ": ", 1) if app.blockers else ""
        message = message or app.health_message
        yield app.build_violation(
            f"Degraded{f': {message}' if message else ''}", _render_inspection_commands(app, kinds)
        )


def _render_inspection_commands(app: LiveApplication, kinds: set[str]) -> str:
    namespace = app.app.destination.namespace
    if INFERENCE_SERVICE.kind not in kinds:
        return f"see each object: argosy explain application/{app.name}"
    model = next(resource for resource in app.resources if resource.key.kind == INFERENCE_SERVICE.kind)
    model_namespace = model.key.namespace or namespace
    pods = f"kubectl get pods -n {model_namespace}"
    events = f"kubectl describe inferenceservice {model.key.name} -n {model_namespace}"
    label = f"serving.kserve.io/inferenceservice={model.key.name}"
    return f"check its Pods, Events and logs: {pods}; {events}; kubectl logs -n {model_namespace} -l {label}"


RULES: Final = (
    build_live_rule(
        "AGY503",
        Severity.WARNING,
        "A claim cannot be bound",
        "Pods that mount it never start, and a wave that waits for it never ends.",
        "Its class does not exist, or there is no default class, and no available volume has that class; or the"
        " provisioner reported a failure. A claim that waits for its first consumer is not reported.",
        "Use an existing class; fix the provisioner's error.",
        _find_unbindable_claims,
    ),
    build_live_rule(
        "AGY504",
        Severity.ERROR,
        "An image cannot be pulled",
        "The Pod never starts.",
        "The kubelet reports it; the registry's error says whether the tag is missing or credentials are required, and"
        " a running build is the one that creates this image.",
        "Push the tag, give the ServiceAccount a pull secret, or wait for the build.",
        _find_unpullable_images,
    ),
    build_live_rule(
        "AGY506",
        Severity.WARNING,
        "A model is Ready, but fails or serves an old file",
        "Clients get errors, or responses of an older model, while everything is shown as Healthy.",
        "Its health paths were requested: none succeeded, and one returned a server error. Or its Pods started before"
        " the last notebook run wrote the file that they serve, by the digests and times that both report.",
        "Check its log; restart it if the file is newer.",
        _find_failing_models,
    ),
    build_live_rule(
        "AGY518",
        Severity.ERROR,
        "An Application is Degraded",
        "Something that it deployed does not work.",
        "Argo CD's own health assessment, with the first unhealthy object and its message.",
        "Check the Pods, Events and logs of the named object.",
        _find_degraded_apps,
    ),
)
