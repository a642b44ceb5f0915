"""Live rules about workloads: claims, images, models, and other unhealthy objects.

In: a live view. Out: violations. Never: reports a claim that only waits for its first consumer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from argosy.gitops.analysis.live_view import LiveApp, LiveView
from argosy.gitops.analysis.rule import live_rule
from argosy.gitops.analysis.violation import Place, Severity, Sight
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, annotation, key_of

CLAIM: Final = GroupKind("", "PersistentVolumeClaim")
CLASS: Final = GroupKind("storage.k8s.io", "StorageClass")
VOLUME: Final = GroupKind("", "PersistentVolume")
POD: Final = GroupKind("", "Pod")
BUILD: Final = GroupKind("build.openshift.io", "Build")
MODEL: Final = GroupKind("serving.kserve.io", "InferenceService")
FIRST_CONSUMER: Final = "WaitForFirstConsumer"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
UNPULLED: Final = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
BUILDING: Final = ("New", "Pending", "Running")
_LED: Final = re.compile(r"^wave -?\d+: ")
_ABSENT: Final = re.compile(r"manifest unknown|manifest for .* not found|not found|name unknown|does not exist", re.I)
_DENIED: Final = re.compile(r"unauthorized|authentication required|denied|forbidden|no basic auth|\b40[13]\b", re.I)


def _sight(view: LiveView, key: ResourceKey, message: str, fix: str) -> Sight:
    """Report at the Application that owns the object, else at the object."""
    name = f"{key.kind}/{key.name}"
    app = view.owner_of(key)
    where = Place(f"Application/{app.name}" if app else name)
    return Sight(where, f"{name} -n {key.namespace}: {message}", fix, name)


# -- claims -----------------------------------------------------------------------------------------------------------


def _claims(view: LiveView) -> Iterator[Sight]:
    for claim in view.of(CLAIM):
        if mapping(claim.get("status")).get("phase") == "Pending" and (told := _unbound(view, claim)):
            yield _sight(view, key_of(claim), *told)


def _unbound(view: LiveView, claim: Manifest) -> tuple[str, str] | None:
    """Return why the claim cannot be bound; None if it may be, for example when it waits for its first consumer."""
    spec = mapping(claim.get("spec"))
    name = spec.get("storageClassName", annotation(claim, "volume.beta.kubernetes.io/storage-class") or None)
    classes = {str(each["metadata"]["name"]): each for each in view.of(CLASS)}
    events = view.events(key_of(claim))
    failed = next((each for each in reversed(events) if each.get("reason") == "ProvisioningFailed"), None)
    is_alone = not spec.get("volumeName") and _is_without_volume(view, name or "")
    if name and name not in classes and is_alone:
        return f"Pending: StorageClass {name} does not exist", f"use one of {', '.join(sorted(classes)) or 'yours'}"
    if name is None and is_alone and not any(map(_is_default, classes.values())):
        return "Pending: storageClassName is not set, and the cluster has no default class", "set storageClassName"
    if failed is not None:
        said = str(failed.get("message") or "no reason given")
        what = "the quota is exceeded" if "exceeded quota" in said else "its provisioner failed"
        return f"Pending: {what}: {said}", "fix the provisioner's error, or request less"
    return None


def _is_without_volume(view: LiveView, name: str) -> bool:
    """True if no manually created volume can be bound; False if volumes cannot be read."""
    if {CLASS, VOLUME} & view.unread:
        return False
    free = [each for each in view.of(VOLUME) if mapping(each.get("status")).get("phase") == "Available"]
    return not any(str(mapping(each.get("spec")).get("storageClassName") or "") == name for each in free)


def _is_default(found: Manifest) -> bool:
    return annotation(found, DEFAULT_CLASS) == "true"


# -- images -----------------------------------------------------------------------------------------------------------


def _images(view: LiveView) -> Iterator[Sight]:
    told: set[tuple[str, str]] = set()
    for pod in view.of(POD):
        for image, said in _unpulled(pod):
            app = view.owner_of(key_of(pod))
            if (app.name if app else "", image) in told:
                continue
            told.add((app.name if app else "", image))
            message, fix = _why_unpulled(view, image, said)
            yield _sight(view, key_of(pod), message, f"{fix}{_ways_out(app)}")


def _ways_out(app: LiveApp | None) -> str:
    """Return commands that end a sync waiting for the Pod; empty if none runs."""
    if app is None or not app.is_busy:
        return ""
    back = f", or roll back: argosy app rollback {app.name}" if app.has_earlier_deployment else ""
    return f"; a sync is running, end it: argosy app terminate-op {app.name}{back}"


def _unpulled(pod: Manifest) -> Iterator[tuple[str, str]]:
    status = mapping(pod.get("status"))
    for each in mappings(status.get("initContainerStatuses")) + mappings(status.get("containerStatuses")):
        waiting = mapping(mapping(each.get("state")).get("waiting"))
        if waiting.get("reason") in UNPULLED:
            yield str(each.get("image") or ""), f"{waiting.get('reason')}: {waiting.get('message') or ''}"


def _why_unpulled(view: LiveView, image: str, said: str) -> tuple[str, str]:
    build = _build_of(view, image)
    phase = str(mapping(build.get("status")).get("phase") or "New") if build else ""
    name = build["metadata"]["name"] if build else ""
    if phase in BUILDING:
        return f"{image}: its build {name} is still running ({phase})", "wait for it: argosy generate wait-for-image"
    if phase in ("Failed", "Error", "Cancelled"):
        return f"{image}: its build {name} {phase.lower()}", f"see its log: oc logs build/{name}"
    if _DENIED.search(said):
        advice = "give the ServiceAccount a pull secret for this registry (imagePullSecrets)"
        return f"{image}: the registry requires credentials", advice
    if said.startswith("InvalidImageName"):
        return f"{image}: is not a valid image name", "correct it in Git"
    if _ABSENT.search(said):
        return f"{image}: the registry has no such tag", "push that tag, or use an existing one"
    return f"{image}: {_gist(said)}", "check whether the node can reach the registry"


def _gist(said: str) -> str:
    return said if len(said) <= 160 else f"{said[:159]}…"


def _build_of(view: LiveView, image: str) -> Manifest | None:
    """Find the newest Build that writes this image of the cluster's internal registry."""
    found = [each for each in view.of(BUILD) if _is_output(each, image)]
    return max(found, key=lambda each: str(each["metadata"].get("creationTimestamp") or ""), default=None)


def _is_output(build: Manifest, image: str) -> bool:
    to = mapping(mapping(mapping(build.get("spec")).get("output")).get("to"))
    namespace = to.get("namespace") or build["metadata"].get("namespace")
    if to.get("kind") == "DockerImage":
        return bool(to.get("name") == image)
    return to.get("kind") == "ImageStreamTag" and image.endswith(f"/{namespace}/{to.get('name')}")


# -- models -----------------------------------------------------------------------------------------------------------


def _models(view: LiveView) -> Iterator[Sight]:
    for each in view.models:
        key = key_of(each.service)
        codes = [answer.code for answer in each.answers if answer.code]
        if is_ready(each.service) and max(codes, default=0) >= 500 and min(codes) >= 400:
            said = ", ".join(f"{answer.path} {answer.code}" for answer in each.answers if answer.code)
            fix = f"see its log: argosy model probe {key.namespace}/{key.name}"
            yield _sight(view, key, f"Ready, but its health requests fail: {said}", fix)
        if each.outdated:
            fix = f"load the new file: argosy model restart {key.namespace}/{key.name}"
            yield _sight(view, key, f"Ready, but the loaded model is not the one on storage: {each.outdated}", fix)


def is_ready(live: Mapping[str, Any]) -> bool:
    conditions = mappings(mapping(live.get("status")).get("conditions"))
    return any((each.get("type"), each.get("status")) == ("Ready", "True") for each in conditions)


# -- other unhealthy objects ------------------------------------------------------------------------------------------


def _unwell(view: LiveView) -> Iterator[Sight]:
    for app in view.apps:
        if app.health != "Degraded":
            continue
        kinds = {row.key.kind for row in app.rows}
        said = _LED.sub("", app.blockers[0].strip()).replace("  Degraded: ", ": ", 1) if app.blockers else ""
        said = said or app.health_message
        yield app.sight(f"Degraded{f': {said}' if said else ''}", _look(app, kinds))


def _look(app: LiveApp, kinds: set[str]) -> str:
    namespace = app.app.destination.namespace
    if MODEL.kind not in kinds:
        return f"see each object: argosy explain application/{app.name}"
    model = next(row for row in app.rows if row.key.kind == MODEL.kind)
    where = model.key.namespace or namespace
    pods = f"kubectl get pods -n {where}"
    events = f"kubectl describe inferenceservice {model.key.name} -n {where}"
    label = f"serving.kserve.io/inferenceservice={model.key.name}"
    return f"check its Pods, Events and logs: {pods}; {events}; kubectl logs -n {where} -l {label}"


RULES: Final = (
    live_rule(
        "AGY503",
        Severity.WARNING,
        "A claim cannot be bound",
        "Pods that mount it never start, and a wave that waits for it never ends.",
        "Its class does not exist, or there is no default class, and no available volume has that class; or the"
        " provisioner reported a failure. A claim that waits for its first consumer is not reported.",
        "Use an existing class; fix the provisioner's error.",
        _claims,
    ),
    live_rule(
        "AGY504",
        Severity.ERROR,
        "An image cannot be pulled",
        "The Pod never starts.",
        "The kubelet reports it; the registry's error says whether the tag is missing or credentials are required, and"
        " a running build is the one that creates this image.",
        "Push the tag, give the ServiceAccount a pull secret, or wait for the build.",
        _images,
    ),
    live_rule(
        "AGY506",
        Severity.WARNING,
        "A model is Ready, but fails or serves an old file",
        "Clients get errors, or responses of an older model, while everything is shown as Healthy.",
        "Its health paths were requested: none succeeded, and one returned a server error. Or its Pods started before"
        " the last notebook run wrote the file that they serve, by the digests and times that both report.",
        "Check its log; restart it if the file is newer.",
        _models,
    ),
    live_rule(
        "AGY518",
        Severity.ERROR,
        "An Application is Degraded",
        "Something that it deployed does not work.",
        "Argo CD's own health assessment, with the first unhealthy object and its message.",
        "Check the Pods, Events and logs of the named object.",
        _unwell,
    ),
)
