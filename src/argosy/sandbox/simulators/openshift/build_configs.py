"""Simulates the BuildConfig controller: starts Builds, counts them, deletes old ones.

In: the key of a BuildConfig. Out: Builds, and its lastVersion. Never: runs a Build itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from argosy.annotations import START_BUILD
from argosy.kube.client import AdmissionHandler
from argosy.kube.controller import ControllerContext, Watch
from argosy.kube.objects import Manifest, get_annotation
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import BUILD, BUILD_CONFIG
from argosy.sandbox.simulators.conditional_writes import (
    create_if_absent,
    delete_object,
    patch_object,
    requeue_on_conflict,
    update_status_if_changed,
)
from argosy.sandbox.simulators.openshift.builds import (
    BUILD_CONFIG_LABEL,
    BUILD_NUMBER_ANNOTATION,
    read_build_number,
    read_build_phase,
)
from argosy.sandbox.simulators.openshift.openshift_kind_and_component_names import SERVER_FIELD_MANAGER
from argosy.sandbox.simulators.owner_references_and_marks import (
    build_key,
    build_owner_reference,
    enqueue_if_unmarked,
    is_being_deleted,
    is_simulated_by_other_addon,
)

PAUSED_ANNOTATION: Final = "openshift.io/build-config.paused"
COPIED_SPEC_FIELDS: Final = (
    "source", "strategy", "output", "revision", "resources", "serviceAccount", "completionDeadlineSeconds",
    "nodeSelector", "postCommit",
)  # fmt: skip
TYPES_BY_FIELD: Final = {
    "strategy": {
        "dockerStrategy": "Docker",
        "sourceStrategy": "Source",
        "customStrategy": "Custom",
        "jenkinsPipelineStrategy": "JenkinsPipeline",
    },
    "source": {"git": "Git", "binary": "Binary", "dockerfile": "Dockerfile", "images": "Image"},
}
DEFAULT_HISTORY_LIMITS: Final = {"successfulBuildsHistoryLimit": 5, "failedBuildsHistoryLimit": 5}


def apply_defaults(manifest: Manifest, old: Manifest | None = None) -> Manifest:
    """Set the defaults that the server stores: the type of source and strategy, and history limits."""
    spec = manifest.get("spec") or {}
    if is_simulated_by_other_addon(manifest):
        return manifest
    typed_parts: dict[str, Any] = {}
    for field, type_names in TYPES_BY_FIELD.items():
        part = spec.get(field)
        type_name = next((type_names[key] for key in type_names if key in (part or {})), "")
        if part and not part.get("type") and type_name:
            typed_parts[field] = {**part, "type": type_name}
    limits = DEFAULT_HISTORY_LIMITS if manifest["kind"] == BUILD_CONFIG.kind else {}
    return {**manifest, "spec": {**limits, **spec, **typed_parts}}


def _build_admission_handler(kind: GroupKind) -> AdmissionHandler:
    return AdmissionHandler(kind, f"{kind.kind.lower()}.openshift.io", SERVER_FIELD_MANAGER, apply_defaults)


ADMISSION_HANDLERS: Final = (_build_admission_handler(BUILD_CONFIG), _build_admission_handler(BUILD))


def _enqueue_config_of_build(build: Manifest) -> Iterable[ResourceKey]:
    if name := (build["metadata"].get("labels") or {}).get(BUILD_CONFIG_LABEL):
        yield build_key(BUILD_CONFIG, build["metadata"]["namespace"], name)


class BuildConfigController:
    name = "simulated-buildconfigs"
    watches = (Watch(BUILD_CONFIG, enqueue_if_unmarked), Watch(BUILD, _enqueue_config_of_build))

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> None:
        config = context.cache.get(key)
        if config is None or is_being_deleted(config) or is_simulated_by_other_addon(config):
            return
        if is_paused(config):
            return
        last_version = int((config.get("status") or {}).get("lastVersion") or 0)
        if get_annotation(config, START_BUILD):
            await _start_requested_build(config, last_version + 1, context)
        elif not last_version and _has_config_trigger(config):
            await create_if_absent(build_build_manifest(config, 1, "Build configuration change"), context.cluster)
            await update_status_if_changed(config, {"lastVersion": 1}, context.cluster)
        else:
            await _update_last_version(config, last_version, context)
            await _delete_old_builds(config, context)


def is_paused(config: Manifest) -> bool:
    return get_annotation(config, PAUSED_ANNOTATION) == "true"


def _has_config_trigger(config: Manifest) -> bool:
    return any(trigger.get("type") == "ConfigChange" for trigger in config["spec"].get("triggers") or ())


async def _start_requested_build(config: Manifest, number: int, context: ControllerContext) -> None:
    """Start a Build because of the start-build annotation.

    Interrupted at any point, the next run creates the same Build again or finds it and only counts it.
    """
    await create_if_absent(build_build_manifest(config, number, "Manually triggered"), context.cluster)
    changed = await patch_object(config, {"metadata": {"annotations": {START_BUILD: None}}}, context.cluster)
    await update_status_if_changed(changed, {"lastVersion": number}, context.cluster)


async def _update_last_version(config: Manifest, last_version: int, context: ControllerContext) -> None:
    """Raise lastVersion to the highest existing Build number."""
    highest = max((read_build_number(build) for build in _list_builds(config, context)), default=0)
    if highest > last_version:
        await update_status_if_changed(config, {"lastVersion": highest}, context.cluster)


def _list_builds(config: Manifest, context: ControllerContext) -> Sequence[Manifest]:
    namespace, name = config["metadata"]["namespace"], config["metadata"]["name"]
    return list(context.cache.list(BUILD, namespace=namespace, labels={BUILD_CONFIG_LABEL: name}))


def build_build_manifest(config: Manifest, number: int, trigger_message: str) -> Manifest:
    metadata, spec = config["metadata"], config["spec"]
    name = _format_build_name(config, number)
    annotations = {
        BUILD_CONFIG_LABEL: metadata["name"],
        BUILD_NUMBER_ANNOTATION: str(number),
        "openshift.io/build.pod-name": f"{name}-build",
    }
    labels = {
        **(metadata.get("labels") or {}),
        "buildconfig": metadata["name"],
        BUILD_CONFIG_LABEL: metadata["name"],
        "openshift.io/build.start-policy": spec.get("runPolicy") or "Serial",
    }
    return {
        "apiVersion": "build.openshift.io/v1",
        "kind": "Build",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [build_owner_reference(config)],
        },
        "spec": {
            **{field: spec[field] for field in COPIED_SPEC_FIELDS if field in spec},
            "triggeredBy": [{"message": trigger_message}],
        },
    }


def _format_build_name(config: Manifest, number: int) -> str:
    return f"{config['metadata']['name']}-{number}"


async def _delete_old_builds(config: Manifest, context: ControllerContext) -> None:
    """Delete finished Builds above the history limits."""
    builds = _list_builds(config, context)
    for field, phases in (
        ("successfulBuildsHistoryLimit", ("Complete",)),
        ("failedBuildsHistoryLimit", ("Failed", "Error", "Cancelled")),
    ):
        limit = config["spec"].get(field)
        finished = sorted(
            (build for build in builds if read_build_phase(build) in phases and not is_being_deleted(build)),
            key=read_build_number,
        )
        for build in finished[: max(len(finished) - int(limit), 0)] if limit is not None else ():
            await delete_object(build, context.cluster)
