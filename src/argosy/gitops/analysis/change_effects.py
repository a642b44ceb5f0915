"""Predicts what a change of one object does: restarts, rejections, deletions, scaling, traffic.

In: an object change and its Application. Out: effects with a sentence each. Never: I/O; reports an effect that is only
likely.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from argosy.annotations import RESOURCES_FINALIZER
from argosy.gitops.analysis.cluster_effect_types import Effect, EffectKind
from argosy.gitops.analysis.object_changes import ApplicationChange, ChangeType, ObjectChange
from argosy.gitops.analysis.pod_specs import list_dependencies
from argosy.gitops.analysis.repository_view import ManifestWithLocations, PathStep
from argosy.gitops.analysis.resource_requests import (
    AUTOSCALER,
    COMPONENT_FIELDS,
    RUNTIME_KINDS,
    read_autoscaler_bounds,
    read_replica_range,
    read_replicas,
)
from argosy.gitops.analysis.schema_validation import MISTYPED, SchemaValidator
from argosy.gitops.application import Application
from argosy.gitops.application.sync_annotations import is_hook
from argosy.gitops.diff.differences import format_pointer
from argosy.gitops.sync.sync_options import SyncOptions, find_keep_reason
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES
from argosy.kube.well_known_kinds import INFERENCE_SERVICE

_TEMPLATE_KINDS: Final = {
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("argoproj.io", "Rollout"),
}
_SCALING_FIELDS: Final = ("minReplicas", "maxReplicas", "scaleTarget", "scaleMetric", "canaryTrafficPercent")
_ROUTING_KINDS: Final = {"Route", "Ingress", "HTTPRoute", "GRPCRoute", "VirtualService", "DestinationRule", "Gateway"}
_DATA_KINDS: Final = {
    ("", "PersistentVolumeClaim"): "with its data",
    ("", "PersistentVolume"): "with its data",
    ("", "Namespace"): "with everything in it",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "with every object of its kind",
}
# k8s: fields of a StatefulSet that may change although its spec as a whole is reported as immutable
_MUTABLE_SPEC_FIELDS: Final = {
    "StatefulSet": ("replicas", "ordinals", "template", "updateStrategy", "minReadySeconds"),
    "PersistentVolumeClaim": ("resources", "volumeAttributesClassName"),
}
# k8s: fields of a runtime that describe the runtime itself, not its Pods
_RUNTIME_SELECTION_FIELDS: Final = ("supportedModelFormats", "protocolVersions", "multiModel", "disabled")
_STOP_ANNOTATION: Final = "serving.kserve.io/stop"
_DISABLE_AUTO_UPDATE_ANNOTATION: Final = "serving.kserve.io/disable-auto-update"
_BUILT_IN_KINDS: Final = frozenset(resource.group_kind for resource in BUILTIN_RESOURCES)


TargetKey = tuple[str, str, ResourceKey]  # cluster address, cluster name, and the object's key
_NO_NEW_OWNERS: Final[Mapping[TargetKey, str]] = MappingProxyType({})


def build_target_key(app: Application | None, key: ResourceKey) -> TargetKey:
    destination = app.destination.with_in_cluster_alias if app is not None else None
    return (destination.server, destination.name, key) if destination is not None else ("", "", key)


def find_effects(
    app_change: ApplicationChange, schemas: SchemaValidator, new_owners: Mapping[TargetKey, str] = _NO_NEW_OWNERS
) -> Iterator[Effect]:
    """Yield the effects of all changes of an Application. `new_owners`: the Applications to which an object is newly
    added.
    """
    restarted: set[str] = set()
    for change in app_change.changes:
        if text := _find_validation_error(change, app_change, schemas):
            yield Effect(EffectKind.INVALID, change.name, text)
        elif change.change_type is ChangeType.REMOVED and (
            new_owner := new_owners.get(build_target_key(app_change.before, change.key))
        ):
            text = f"moves to {new_owner}: it is deleted in between if {app_change.name} is synced first"
            yield Effect(EffectKind.MOVES, change.name, text, has_data=change.key.group_kind in _DATA_KINDS)
        elif change.change_type is ChangeType.REMOVED:
            yield from _find_removal_effects(change, app_change)
        elif change.change_type is ChangeType.MODIFIED:
            for effect in _find_update_effects(change, app_change, schemas):
                if effect.kind in (EffectKind.RESTART, EffectKind.RECREATE):
                    restarted.add(effect.name)
                yield effect
    yield from _find_serving_runtime_effects(app_change, restarted)
    yield from _find_stale_env_variables(app_change, restarted)


def _find_validation_error(change: ObjectChange, app_change: ApplicationChange, schemas: SchemaValidator) -> str:
    """Return the API server's error for the object after the change; empty if no error is certain."""
    if change.after is None:
        return ""
    manifest = change.after.manifest
    # An overlay may complete the objects of a plain folder; live objects have fields that nobody may send.
    is_complete = not app_change.is_folder and "uid" not in (manifest.get("metadata") or {})
    for error in schemas.validate(manifest):
        if error.is_rejected and not error.has_placeholder and (is_complete or error.category == MISTYPED):
            return f"is rejected by the API server: {error.message}"
    return ""


def _find_removal_effects(change: ObjectChange, app_change: ApplicationChange) -> Iterator[Effect]:
    item = change.before
    if item is None or is_hook(item.manifest):
        return
    loss = _DATA_KINDS.get(item.group_kind, "")
    loss_text = f", {loss}" if loss else ""
    if app_change.after is None and not app_change.is_folder:
        app = app_change.before
        if app is not None and any(finalizer.startswith(RESOURCES_FINALIZER) for finalizer in app.finalizers):
            if reason := find_keep_reason(item.manifest, SyncOptions.from_lists(app.policy.options)):
                yield Effect(EffectKind.STAYS, change.name, f"stays unmanaged: {reason}")
                return
            text = f"is deleted with its Application{loss_text}"
            yield Effect(EffectKind.PRUNE, change.name, text, has_data=bool(loss))
        else:
            yield Effect(EffectKind.STAYS, change.name, "stays unmanaged: its Application has no finalizer")
        return
    options = SyncOptions.from_lists(app_change.after.policy.options if app_change.after else ()).with_manifest_options(
        item.manifest
    )
    if options.is_off("Prune"):
        yield Effect(EffectKind.STAYS, change.name, "stays, but is no longer synced: Prune=false")
        return
    automated = app_change.after.policy.automated if app_change.after else None
    is_automatic = automated is not None and automated.is_on and automated.prune and options.get("Prune") != "confirm"
    prune_text = "is deleted by the next sync" if is_automatic else "is deleted by a sync with --prune"
    yield Effect(EffectKind.PRUNE, change.name, f"{prune_text}{loss_text}", has_data=bool(loss))


def _find_update_effects(
    change: ObjectChange, app_change: ApplicationChange, schemas: SchemaValidator
) -> Iterator[Effect]:
    old, new = change.before, change.after
    if old is None or new is None or is_hook(new.manifest):
        return
    rejections = list(_find_rejections(change, app_change, schemas))
    yield from rejections
    if rejections:
        return
    if new.group_kind in _TEMPLATE_KINDS:
        yield from _find_workload_effects(change, old, new, schemas)
    elif new.group_kind == INFERENCE_SERVICE:
        yield from _find_inference_service_effects(change, old, new)
    elif new.group_kind == AUTOSCALER and (old_bounds := read_autoscaler_bounds(old)) != (
        new_bounds := read_autoscaler_bounds(new)
    ):
        target = (
            f"{new.get_string('spec', 'scaleTargetRef', 'kind')}/{new.get_string('spec', 'scaleTargetRef', 'name')}"
        )
        yield Effect(
            EffectKind.SCALE,
            change.name,
            f"{target} replicas {_render_range(old_bounds)} → {_render_range(new_bounds)}",
        )
    elif new.key.kind in _ROUTING_KINDS and old.get_value("spec") != new.get_value("spec"):
        yield Effect(EffectKind.TRAFFIC, change.name, "changes where requests go")
    elif new.group_kind == ("", "Service"):
        before, after = _with_defaults(old, schemas), _with_defaults(new, schemas)
        for name in ("selector", "ports", "type"):
            if before.get_value("spec", name) != after.get_value("spec", name):
                yield Effect(EffectKind.TRAFFIC, change.name, f"has a different {name.removesuffix('s')}")


def is_decided_by_other_controller(change: ObjectChange) -> bool:
    """True if only a controller unknown to argosy decides what the change does."""
    new = change.after
    if change.change_type is not ChangeType.MODIFIED or new is None or is_hook(new.manifest):
        return False
    is_known = (
        GroupKind(*new.group_kind) in _BUILT_IN_KINDS
        or new.group_kind in _TEMPLATE_KINDS
        or new.key.kind in (*RUNTIME_KINDS, *_ROUTING_KINDS)
    )
    is_known = is_known or new.group_kind == INFERENCE_SERVICE or new.key.group == "argoproj.io"
    return not is_known and any(not field.pointer.startswith("/metadata") for field in change.fields)


def find_immutable_changes(
    change: ObjectChange, schemas: SchemaValidator, *, is_server_side: bool = False
) -> Iterator[tuple[tuple[PathStep, ...], str]]:
    """Yield the immutable fields that the change modifies: path and text. Hooks are recreated each time."""
    if change.before is None or change.after is None or is_hook(change.after.manifest):
        return
    if change.before.key.name != change.after.key.name:
        return
    for error in schemas.validate_update(change.before.manifest, change.after.manifest, is_server_side=is_server_side):
        mutable_fields = _MUTABLE_SPEC_FIELDS.get(change.key.kind, ()) if error.path == ("spec",) else ()
        prefix = "".join(f"/{step}" for step in error.path)
        pointers = [pointer.pointer for pointer in change.fields if pointer.pointer.startswith((f"{prefix}/", prefix))]
        pointers = [
            pointer for pointer in pointers if pointer.split("/")[2:3] not in [[name] for name in mutable_fields]
        ]
        path = error.path if len(pointers) != 1 or len(error.path) > 1 else tuple(pointers[0].split("/")[1:3])
        yield path, ".".join(str(step) for step in path)


def _find_rejections(change: ObjectChange, app_change: ApplicationChange, schemas: SchemaValidator) -> Iterator[Effect]:
    app, item = app_change.after, change.after
    assert item is not None
    options = SyncOptions.from_lists(app.policy.options if app else ()).with_manifest_options(item.manifest)
    if app is not None and options.is_on("RespectIgnoreDifferences") and _is_ignored(app.ignore_rules, item):
        return  # the field may not be sent
    for path, field_text in find_immutable_changes(change, schemas, is_server_side=options.is_on("ServerSideApply")):
        if options.is_on("Force") and options.is_on("Replace"):
            text = f"{field_text} cannot change, so the object is recreated (Force, Replace)"
            yield Effect(EffectKind.RECREATE, change.name, text, has_downtime=True, path=path)
        else:
            text = f"{field_text} cannot change on an existing object: a sync fails until it is deleted or reverted"
            yield Effect(EffectKind.REFUSED, change.name, text, path=path)
        return  # one rejected field is enough


def _is_ignored(rules: Iterable[Any], item: ManifestWithLocations) -> bool:
    """True if an ignoreDifferences rule may match the object; wildcards count as a match."""
    return any(
        ("*" in rule.kind or rule.kind == item.key.kind)
        and ("*" in rule.group or rule.group == item.key.group)
        and rule.name in ("", item.key.name)
        for rule in rules
    )


def _with_defaults(item: ManifestWithLocations, schemas: SchemaValidator) -> ManifestWithLocations:
    return replace(item, manifest=schemas.apply_defaults(item.manifest))


def _find_workload_effects(
    change: ObjectChange, old: ManifestWithLocations, new: ManifestWithLocations, schemas: SchemaValidator
) -> Iterator[Effect]:
    before, after = _with_defaults(old, schemas), _with_defaults(new, schemas)
    count = read_replicas(after)
    if before.get_value("spec", "template") != after.get_value("spec", "template") and count != 0:
        strategy = after.get_string("spec", "strategy", "type") or after.get_string("spec", "updateStrategy", "type")
        if strategy == "OnDelete":
            yield Effect(EffectKind.STALE, change.name, "its Pods change only when they are deleted (OnDelete)")
        else:
            has_downtime = strategy == "Recreate"
            strategy_text = "all at once (strategy Recreate)" if has_downtime else "rolling"
            yield Effect(
                EffectKind.RESTART, change.name, f"restarts, {strategy_text}", new.key.kind, has_downtime=has_downtime
            )
    if read_replicas(before) != count and new.key.kind != "DaemonSet":
        yield Effect(EffectKind.SCALE, change.name, f"replicas {read_replicas(before)} → {count}")


def _find_inference_service_effects(
    change: ObjectChange, old: ManifestWithLocations, new: ManifestWithLocations
) -> Iterator[Effect]:
    has_new_metadata = any(
        old.get_map("metadata", name) != new.get_map("metadata", name) for name in ("labels", "annotations")
    )
    for component in COMPONENT_FIELDS:
        before, after = old.get_map("spec", component), new.get_map("spec", component)
        if not before or not after:
            continue
        if _drop_scaling_fields(before) != _drop_scaling_fields(after):
            strategy = after.get("deploymentStrategy")
            has_downtime = isinstance(strategy, dict) and strategy.get("type") == "Recreate"
            text = f"{component} restarts ({'all at once, strategy Recreate' if has_downtime else 'new revision'})"
            yield Effect(EffectKind.RESTART, change.name, text, component, has_downtime=has_downtime)
        elif has_new_metadata:  # k8s: KServe gives both to the Pods
            text = f"{component} restarts (its labels or annotations are copied to its Pods)"
            yield Effect(EffectKind.RESTART, change.name, text, component)
        if (old_range := read_replica_range(before)) != (new_range := read_replica_range(after)):
            yield Effect(
                EffectKind.SCALE,
                change.name,
                f"{component} replicas {_render_range(old_range)} → {_render_range(new_range)}",
            )
        shares = before.get("canaryTrafficPercent"), after.get("canaryTrafficPercent")
        if shares[0] != shares[1]:
            share_texts = [f"{share}%" if share is not None else "all" for share in shares]
            text = f"the newest revision gets {share_texts[1]} of the requests (was {share_texts[0]})"
            yield Effect(EffectKind.TRAFFIC, change.name, text)


def _drop_scaling_fields(component: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in component.items() if name not in _SCALING_FIELDS}


def _render_range(bounds: tuple[int, int]) -> str:
    low, high = bounds
    return str(low) if low == high else f"{low}–{high}"


def _find_serving_runtime_effects(app_change: ApplicationChange, restarted: set[str]) -> Iterator[Effect]:
    """k8s: KServe rolls a changed runtime out to its services at once, since 0.16 and in every mode."""
    after = [*app_change.unchanged, *(item_change.after for item_change in app_change.changes if item_change.after)]
    stopped = [item.name for item in after if item.get_string("metadata", "annotations", _STOP_ANNOTATION) == "true"]
    services = [item for item in after if item.group_kind == INFERENCE_SERVICE and item.name not in stopped]
    for change in app_change.changes:
        old, new = change.before, change.after
        if (
            old is None
            or new is None
            or new.key.kind not in RUNTIME_KINDS
            or _keep_pod_fields(old) == _keep_pod_fields(new)
        ):
            continue
        users = [item for item in services if item.get_string("spec", "predictor", "model", "runtime") == new.key.name]
        for item in users:
            if item.name not in restarted:
                yield _build_serving_runtime_effect(change, item)
        if not users:
            matching_services = [item for item in services if _may_auto_select(item, new)]
            service_text = (
                f"{matching_services[0].name}, if KServe chose this runtime"
                if matching_services
                else "services elsewhere that run on it"
            )
            yield Effect(EffectKind.OPEN, change.name, f"restarts {service_text}", "predictor")


def _build_serving_runtime_effect(change: ObjectChange, item: ManifestWithLocations) -> Effect:
    if item.get_string("metadata", "annotations", _DISABLE_AUTO_UPDATE_ANNOTATION) == "true":
        text = f"reaches {item.name} with its next change ({_DISABLE_AUTO_UPDATE_ANNOTATION})"
        return Effect(EffectKind.STALE, change.name, text, "predictor")
    strategy = item.get_string("spec", "predictor", "deploymentStrategy", "type")
    strategy_text = "all at once, strategy Recreate" if strategy == "Recreate" else "rolling"
    text = f"restarts the predictor of {item.name} ({strategy_text}; before KServe 0.16 with its next change)"
    return Effect(EffectKind.RESTART, change.name, text, "predictor", has_downtime=strategy == "Recreate")


def _keep_pod_fields(runtime: ManifestWithLocations) -> dict[str, Any]:
    return {name: value for name, value in runtime.get_map("spec").items() if name not in _RUNTIME_SELECTION_FIELDS}


def _may_auto_select(service: ManifestWithLocations, runtime: ManifestWithLocations) -> bool:
    """k8s: a model without a runtime gets one that supports its format with autoSelect."""
    model_format = service.get_string("spec", "predictor", "model", "modelFormat", "name")
    if not model_format or service.get_string("spec", "predictor", "model", "runtime"):
        return False
    supported_formats = [
        supported_format
        for supported_format in runtime.get_list("spec", "supportedModelFormats")
        if isinstance(supported_format, dict)
    ]
    return any(
        supported_format.get("name") == model_format and supported_format.get("autoSelect") is True
        for supported_format in supported_formats
    )


def _find_stale_env_variables(app_change: ApplicationChange, restarted: set[str]) -> Iterator[Effect]:
    """Environment variables are read once, so running Pods miss changes of a ConfigMap or Secret with the same name."""
    changed = {
        (object_change.key.kind, object_change.key.name): object_change.name
        for object_change in app_change.changes
        if object_change.key.kind in ("ConfigMap", "Secret")
        and object_change.before is not None
        and object_change.after is not None
        and object_change.before.key.name == object_change.after.key.name
        and any(field.pointer.startswith(("/data", "/binaryData", "/stringData")) for field in object_change.fields)
    }
    items = [
        *app_change.unchanged,
        *(object_change.after for object_change in app_change.changes if object_change.after and object_change.before),
    ]
    for item in items if changed else ():
        if item.name in restarted or item.group_kind not in _TEMPLATE_KINDS:
            continue
        used = {changed[need.kind, need.name] for need in list_dependencies(item) if (need.kind, need.name) in changed
                and {"env", "envFrom"} & set(need.path)}  # fmt: skip
        for name in sorted(used):
            yield Effect(EffectKind.STALE, name, f"{item.name} keeps the old values until it restarts")


def render_field_path(change: ObjectChange, pointer: str) -> str:
    """Render a JSON pointer as a readable field path."""
    item = change.before or change.after
    return format_pointer(pointer, item.manifest) if item is not None else pointer
