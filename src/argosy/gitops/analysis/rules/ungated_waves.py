"""Rules about sync waves that end too early, because nothing waits for an object's work.

In: a repository. Out: violations. Never: reports a missing health check if the installation's settings are not here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.pod_specs import IMAGE_TRIGGERS_ANNOTATION, join_commands, list_containers
from argosy.gitops.analysis.repository_view import ManifestWithLocations, PathStep, RenderedSource, RepositoryView
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import Severity, Violation
from argosy.gitops.analysis.rules.sync_order import find_sync_position
from argosy.gitops.health.argocd_cm_entries_with_locations import ARGOSY_CM, has_settings
from argosy.gitops.health.bundled_rules import RuleOrigin
from argosy.gitops.health.rule_lookup import HealthRules
from argosy.gitops.health.settings import read_manifests
from argosy.kube.well_known_kinds import BUILD_CONFIG, JOB, NOTEBOOK_JOB

# argo: kinds that keep working after creation, and that Argo CD has no built-in health check for
_KINDS_WITHOUT_CHECK: Final = frozenset({
    ("mlops.mlops.dev", "NotebookValidationJob"),
    *(("kubeflow.org", f"{kind}Job") for kind in ("PyTorch", "TF", "MPI", "XGBoost", "Paddle", "JAX")),
    ("kubeflow.org", "Experiment"),
    ("trainer.kubeflow.org", "TrainJob"),
    ("jobset.x-k8s.io", "JobSet"),
    ("batch.volcano.sh", "Job"),
    ("machinelearning.seldon.io", "SeldonDeployment"),
    ("mlops.seldon.io", "Model"),
    ("serving.kserve.io", "InferenceGraph"),
})  # fmt: skip
_INTERNAL_IMAGE: Final = re.compile(
    r"(?:image-registry\.openshift-image-registry\.svc(?:\.cluster\.local)?|docker-registry\.default\.svc)(?::\d+)?"
    r"/([^/:@]+)/([^/:@]+)(?::([^/:@]+))?"
)


def _find_kinds_without_health_check(repository: RepositoryView) -> Iterator[Violation]:
    manifests = (*repository.unrendered_manifests, *(item for _, item in repository.list_objects()))
    settings = {item.find_location().file: item for item in manifests if has_settings(item.manifest)}
    if len(settings) != 1 or any(item.key.name == ARGOSY_CM for item in settings.values()):
        return  # no installation is kept here, or several, or argosy's own, which has checks for all of them
    ((file, settings_manifest),) = settings.items()
    health_rules = HealthRules(read_manifests([settings_manifest.manifest]))
    for rendering, item in repository.list_objects():
        if rendering.declaration is None or item.group_kind not in _KINDS_WITHOUT_CHECK:
            continue
        rule, later_item = health_rules.find_rule(*item.group_kind), _find_first_later_item(rendering, item)
        if later_item and (rule is None or rule.origin is not RuleOrigin.ARGOCD_CM):
            message = (
                f"{later_item.name} in a later wave does not wait for {item.name}: neither {file} nor Argo CD has a"
                " health check for it"
            )
            fix = f"add a check for {item.key.kind} to {file}; argosy health export writes one"
            yield Violation(item.find_location("kind"), message, fix, item.name)


def _find_first_later_item(rendering: RenderedSource, item: ManifestWithLocations) -> ManifestWithLocations | None:
    position = find_sync_position(item)
    if position is None:
        return None
    later_items = [
        (other_position, item_in_source)
        for item_in_source in rendering.items
        if (other_position := find_sync_position(item_in_source)) is not None and other_position > position
    ]
    return min(later_items, key=lambda pair: pair[0])[1] if later_items else None


def _find_unawaited_builds(repository: RepositoryView) -> Iterator[Violation]:
    for rendering in repository.renderings:
        if rendering.declaration is None:
            continue
        builds_by_image = {
            name: build_config
            for build_config in rendering.list_of_kind(*BUILD_CONFIG)
            if (name := _get_output_image(rendering, build_config))
        }
        for item in rendering.items if builds_by_image else ():
            for path, image in _list_images(item):
                match = _INTERNAL_IMAGE.fullmatch(image)
                build = builds_by_image.get((match[1], match[2], match[3] or "latest")) if match else None
                if build and match and not _is_build_awaited(rendering, item, match[2]):
                    message = f"{item.name} runs an image that {build.name} builds, and nothing waits for the build"
                    fix = "add a Job that waits in a wave between them; argosy generate wait-for-image prints one"
                    # A notebook job fails permanently; other Pods retry until the image exists.
                    severity = None if item.group_kind == NOTEBOOK_JOB else Severity.INFO
                    yield Violation(
                        item.find_location(*path), message, fix, item.name, ".".join(map(str, path)), severity
                    )


def _get_output_image(rendering: RenderedSource, build: ManifestWithLocations) -> tuple[str, str, str] | None:
    """Return namespace, name and tag of the image stream that the build writes to."""
    if build.get_string("spec", "output", "to", "kind") != "ImageStreamTag":
        return None
    name, _, tag = build.get_string("spec", "output", "to", "name").partition(":")
    namespace = build.get_string("spec", "output", "to", "namespace") or rendering.resolve_namespace(build)
    return (namespace, name, tag or "latest") if name and namespace else None


def _list_images(item: ManifestWithLocations) -> Iterator[tuple[tuple[PathStep, ...], str]]:
    if IMAGE_TRIGGERS_ANNOTATION in item.get_map("metadata", "annotations"):
        return  # OpenShift restarts it when the image exists
    if item.group_kind == NOTEBOOK_JOB:
        path = ("spec", "podConfig", "containerImage")
        yield path, item.get_string(*path)
    for container in list_containers(item):
        yield (*container.path, "image"), str(container.spec.get("image") or "")


def _is_build_awaited(rendering: RenderedSource, item: ManifestWithLocations, image: str) -> bool:
    """True if a Job in an earlier wave mentions the image."""
    position = find_sync_position(item)
    image_word = re.compile(rf"(?<![\w-]){re.escape(image)}(?![\w-])")
    jobs = [job for job in rendering.list_of_kind(*JOB) if job is not item]
    earlier = [job for job in jobs if position is None or (find_sync_position(job) or position) < position]
    return any(image_word.search(_join_job_commands_and_env(job)) for job in earlier)


def _join_job_commands_and_env(job: ManifestWithLocations) -> str:
    """Return all commands and environment values of the Job's containers."""
    texts = []
    for container in list_containers(job):
        env = container.spec.get("env")
        values = (
            [str(variable.get("value")) for variable in env if isinstance(variable, dict)]
            if isinstance(env, list)
            else []
        )
        texts += [join_commands(container), *values]
    return "\n".join(texts)


RULES: Final = (
    AnalysisRule(
        "AGY122",
        Severity.INFO,
        "A wave does not wait for a kind without a health check",
        "Argo CD treats an object of a kind without a health check as healthy at once: the next wave starts while it is"
        " still running, or after it has failed.",
        "The settings of one installation are in this repository without a check for the kind; Argo CD has no built-in"
        " one; the kind keeps working after its creation; and the Application has a later wave. argosy has a check, so"
        " this concerns Argo CD only.",
        "Add a check to the installation's settings; `argosy health export` writes the checks that argosy has.",
        _find_kinds_without_health_check,
    ),
    AnalysisRule(
        "AGY302",
        Severity.WARNING,
        "An image is built in the cluster, and nothing waits for it",
        "On the first sync the image does not exist yet: a notebook job fails, and a wave with other Pods is shown as"
        " failing until the build has finished.",
        "The Application creates the BuildConfig that writes the image, and runs the image by its URL in the internal"
        " registry; a BuildConfig is healthy at once; and no Job in an earlier wave mentions the image.",
        "Add a Job that waits in a wave between them; `argosy generate wait-for-image` prints one.",
        _find_unawaited_builds,
    ),
)
