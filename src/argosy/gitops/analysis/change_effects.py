"""Predicts what a change of one object does: restarts, rejections, deletions, scaling, traffic.

In: an object change and its Application. Out: effects with a sentence each. Never: I/O; reports an effect that is only
likely.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from argosy.annotations import RESOURCES_FINALIZER
from argosy.gitops.analysis.object_changes import Becomes, Change, Touched
from argosy.gitops.analysis.pod_specs import needs
from argosy.gitops.analysis.repository import Item, Step
from argosy.gitops.analysis.resource_requests import AUTOSCALER, COMPONENTS, RUNTIMES, SERVICE, bounds, replicas, scale
from argosy.gitops.analysis.schema_validation import MISTYPED, Schemas
from argosy.gitops.application import Application
from argosy.gitops.application.hooks import is_hook
from argosy.gitops.diff.differences import readable
from argosy.gitops.sync.options import SyncOptions, outlives
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.schema.builtin_kinds import BUILT_IN

_TEMPLATE: Final = {("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("argoproj.io", "Rollout")}
_SCALING: Final = ("minReplicas", "maxReplicas", "scaleTarget", "scaleMetric", "canaryTrafficPercent")
_ROUTING: Final = {"Route", "Ingress", "HTTPRoute", "GRPCRoute", "VirtualService", "DestinationRule", "Gateway"}
_DATA: Final = {
    ("", "PersistentVolumeClaim"): "with its data",
    ("", "PersistentVolume"): "with its data",
    ("", "Namespace"): "with everything in it",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "with every object of its kind",
}
# k8s: fields of a StatefulSet that may change although its spec as a whole is reported as immutable
_MAY_CHANGE: Final = {
    "StatefulSet": ("replicas", "ordinals", "template", "updateStrategy", "minReadySeconds"),
    "PersistentVolumeClaim": ("resources", "volumeAttributesClassName"),
}
# k8s: fields of a runtime that describe the runtime itself, not its Pods
_OFFERED: Final = ("supportedModelFormats", "protocolVersions", "multiModel", "disabled")
_STOP: Final = "serving.kserve.io/stop"
_KEEPS_RUNTIME: Final = "serving.kserve.io/disable-auto-update"
_KNOWN: Final = frozenset(each.group_kind for each in BUILT_IN)


class EffectKind(StrEnum):
    INVALID = "invalid"  # the API server rejects the object
    REFUSED = "refused"  # the API server rejects the change
    RECREATE = "recreate"  # deleted and created again
    RESTART = "restart"
    PRUNE = "prune"  # deleted by a sync that prunes, or with its Application
    STAYS = "stays"  # removed from Git, but not deleted
    MOVES = "moves"  # removed from one Application and added to another
    TRAFFIC = "traffic"
    SCALE = "scale"
    STALE = "stale"  # changed, but running Pods do not notice
    OPEN = "open"  # unknown here whether anything restarts


@dataclass(frozen=True)
class Effect:
    kind: EffectKind
    name: str  # of the object
    text: str
    noun: str = ""  # workload kind or component that restarts
    has_gap: bool = False
    has_data: bool = False
    path: tuple[Step, ...] = ()  # the affected field

    def as_data(self) -> dict[str, Any]:
        return {"effect": str(self.kind), "object": self.name, "text": self.text}


Landing = tuple[str, str, ResourceKey]  # cluster address, cluster name, and the object's key
_NOBODY: Final[Mapping[Landing, str]] = MappingProxyType({})


def landing(app: Application | None, key: ResourceKey) -> Landing:
    goal = app.destination.known if app is not None else None
    return (goal.server, goal.name, key) if goal is not None else ("", "", key)


def effects_of(touched: Touched, schemas: Schemas, takers: Mapping[Landing, str] = _NOBODY) -> Iterator[Effect]:
    """Yield the effects of all changes of an Application. `new_owners`: the Applications to which an object is newly
    added.
    """
    restarted: set[str] = set()
    for change in touched.changes:
        if text := _invalid(change, touched, schemas):
            yield Effect(EffectKind.INVALID, change.name, text)
        elif change.becomes is Becomes.GONE and (taker := takers.get(landing(touched.before, change.key))):
            text = f"moves to {taker}: it is deleted in between if {touched.name} is synced first"
            yield Effect(EffectKind.MOVES, change.name, text, has_data=change.key.group_kind in _DATA)
        elif change.becomes is Becomes.GONE:
            yield from _gone(change, touched)
        elif change.becomes is Becomes.OTHER:
            for effect in _other(change, touched, schemas):
                if effect.kind in (EffectKind.RESTART, EffectKind.RECREATE):
                    restarted.add(effect.name)
                yield effect
    yield from _runtimes(touched, restarted)
    yield from _stale(touched, restarted)


def _invalid(change: Change, touched: Touched, schemas: Schemas) -> str:
    """Return the API server's error for the object after the change; empty if no error is certain."""
    if change.after is None:
        return ""
    manifest = change.after.manifest
    # An overlay may complete the objects of a plain folder; live objects have fields that nobody may send.
    is_whole = not touched.is_folder and "uid" not in (manifest.get("metadata") or {})
    for amiss in schemas.amiss(manifest):
        if amiss.is_refused and not amiss.is_later and (is_whole or amiss.what == MISTYPED):
            return f"is rejected by the API server: {amiss.message}"
    return ""


def _gone(change: Change, touched: Touched) -> Iterator[Effect]:
    item = change.before
    if item is None or is_hook(item.manifest):
        return
    lost = _DATA.get(item.kind, "")
    more = f", {lost}" if lost else ""
    if touched.after is None and not touched.is_folder:
        app = touched.before
        if app is not None and any(each.startswith(RESOURCES_FINALIZER) for each in app.finalizers):
            if why := outlives(item.manifest, SyncOptions.of(app.policy.options)):
                yield Effect(EffectKind.STAYS, change.name, f"stays unmanaged: {why}")
                return
            text = f"is deleted with its Application{more}"
            yield Effect(EffectKind.PRUNE, change.name, text, has_data=bool(lost))
        else:
            yield Effect(EffectKind.STAYS, change.name, "stays unmanaged: its Application has no finalizer")
        return
    options = SyncOptions.of(touched.after.policy.options if touched.after else ()).with_own(item.manifest)
    if options.is_off("Prune"):
        yield Effect(EffectKind.STAYS, change.name, "stays, but is no longer synced: Prune=false")
        return
    automated = touched.after.policy.automated if touched.after else None
    is_alone = automated is not None and automated.is_on and automated.prune and options.value("Prune") != "confirm"
    how = "is deleted by the next sync" if is_alone else "is deleted by a sync with --prune"
    yield Effect(EffectKind.PRUNE, change.name, f"{how}{more}", has_data=bool(lost))


def _other(change: Change, touched: Touched, schemas: Schemas) -> Iterator[Effect]:
    old, new = change.before, change.after
    if old is None or new is None or is_hook(new.manifest):
        return
    refused = list(_refused(change, touched, schemas))
    yield from refused
    if refused:
        return
    if new.kind in _TEMPLATE:
        yield from _workload(change, old, new, schemas)
    elif new.kind == SERVICE:
        yield from _inference(change, old, new)
    elif new.kind == AUTOSCALER and (one := bounds(old)) != (other := bounds(new)):
        target = f"{new.text('spec', 'scaleTargetRef', 'kind')}/{new.text('spec', 'scaleTargetRef', 'name')}"
        yield Effect(EffectKind.SCALE, change.name, f"{target} replicas {_range(one)} → {_range(other)}")
    elif new.key.kind in _ROUTING and old.value("spec") != new.value("spec"):
        yield Effect(EffectKind.TRAFFIC, change.name, "changes where requests go")
    elif new.kind == ("", "Service"):
        before, after = _whole(old, schemas), _whole(new, schemas)
        for name in ("selector", "ports", "type"):
            if before.value("spec", name) != after.value("spec", name):
                yield Effect(EffectKind.TRAFFIC, change.name, f"has a different {name.removesuffix('s')}")


def is_foreign(change: Change) -> bool:
    """True if only a controller unknown to argosy decides what the change does."""
    new = change.after
    if change.becomes is not Becomes.OTHER or new is None or is_hook(new.manifest):
        return False
    is_known = GroupKind(*new.kind) in _KNOWN or new.kind in _TEMPLATE or new.key.kind in (*RUNTIMES, *_ROUTING)
    is_known = is_known or new.kind == SERVICE or new.key.group == "argoproj.io"
    return not is_known and any(not each.pointer.startswith("/metadata") for each in change.fields)


def refusals(
    change: Change, schemas: Schemas, *, is_server_side: bool = False
) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Yield the immutable fields that the change modifies: path and text. Hooks are recreated each time."""
    if change.before is None or change.after is None or is_hook(change.after.manifest):
        return
    if change.before.key.name != change.after.key.name:
        return
    for amiss in schemas.refused(change.before.manifest, change.after.manifest, is_server_side=is_server_side):
        may = _MAY_CHANGE.get(change.key.kind, ()) if amiss.path == ("spec",) else ()
        above = "".join(f"/{step}" for step in amiss.path)
        within = [each.pointer for each in change.fields if each.pointer.startswith((f"{above}/", above))]
        within = [each for each in within if each.split("/")[2:3] not in [[name] for name in may]]
        path = amiss.path if len(within) != 1 or len(amiss.path) > 1 else tuple(within[0].split("/")[1:3])
        yield path, ".".join(str(step) for step in path)


def _refused(change: Change, touched: Touched, schemas: Schemas) -> Iterator[Effect]:
    app, item = touched.after, change.after
    assert item is not None
    options = SyncOptions.of(app.policy.options if app else ()).with_own(item.manifest)
    if app is not None and options.is_on("RespectIgnoreDifferences") and _is_ignored(app.ignored, item):
        return  # the field may not be sent
    for path, words in refusals(change, schemas, is_server_side=options.is_on("ServerSideApply")):
        if options.is_on("Force") and options.is_on("Replace"):
            text = f"{words} cannot change, so the object is recreated (Force, Replace)"
            yield Effect(EffectKind.RECREATE, change.name, text, has_gap=True, path=path)
        else:
            text = f"{words} cannot change on an existing object: a sync fails until it is deleted or reverted"
            yield Effect(EffectKind.REFUSED, change.name, text, path=path)
        return  # one rejected field is enough


def _is_ignored(rules: Iterable[Any], item: Item) -> bool:
    """True if an ignoreDifferences rule may match the object; wildcards count as a match."""
    return any(
        ("*" in rule.kind or rule.kind == item.key.kind)
        and ("*" in rule.group or rule.group == item.key.group)
        and rule.name in ("", item.key.name)
        for rule in rules
    )


def _whole(item: Item, schemas: Schemas) -> Item:
    return replace(item, manifest=schemas.whole(item.manifest))


def _workload(change: Change, old: Item, new: Item, schemas: Schemas) -> Iterator[Effect]:
    before, after = _whole(old, schemas), _whole(new, schemas)
    count = replicas(after)
    if before.value("spec", "template") != after.value("spec", "template") and count != 0:
        strategy = after.text("spec", "strategy", "type") or after.text("spec", "updateStrategy", "type")
        if strategy == "OnDelete":
            yield Effect(EffectKind.STALE, change.name, "its Pods change only when they are deleted (OnDelete)")
        else:
            is_gap = strategy == "Recreate"
            how = "all at once (strategy Recreate)" if is_gap else "rolling"
            yield Effect(EffectKind.RESTART, change.name, f"restarts, {how}", new.key.kind, has_gap=is_gap)
    if replicas(before) != count and new.key.kind != "DaemonSet":
        yield Effect(EffectKind.SCALE, change.name, f"replicas {replicas(before)} → {count}")


def _inference(change: Change, old: Item, new: Item) -> Iterator[Effect]:
    is_labelled = any(
        old.fields("metadata", name) != new.fields("metadata", name) for name in ("labels", "annotations")
    )
    for component in COMPONENTS:
        before, after = old.fields("spec", component), new.fields("spec", component)
        if not before or not after:
            continue
        if _without(before) != _without(after):
            strategy = after.get("deploymentStrategy")
            is_gap = isinstance(strategy, dict) and strategy.get("type") == "Recreate"
            text = f"{component} restarts ({'all at once, strategy Recreate' if is_gap else 'new revision'})"
            yield Effect(EffectKind.RESTART, change.name, text, component, has_gap=is_gap)
        elif is_labelled:  # k8s: KServe gives both to the Pods
            text = f"{component} restarts (its labels or annotations are copied to its Pods)"
            yield Effect(EffectKind.RESTART, change.name, text, component)
        if (one := scale(before)) != (other := scale(after)):
            yield Effect(EffectKind.SCALE, change.name, f"{component} replicas {_range(one)} → {_range(other)}")
        shares = before.get("canaryTrafficPercent"), after.get("canaryTrafficPercent")
        if shares[0] != shares[1]:
            said = [f"{share}%" if share is not None else "all" for share in shares]
            text = f"the newest revision gets {said[1]} of the requests (was {said[0]})"
            yield Effect(EffectKind.TRAFFIC, change.name, text)


def _without(component: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in component.items() if name not in _SCALING}


def _range(scaled: tuple[int, int]) -> str:
    low, high = scaled
    return str(low) if low == high else f"{low}–{high}"


def _runtimes(touched: Touched, restarted: set[str]) -> Iterator[Effect]:
    """k8s: KServe rolls a changed runtime out to its services at once, since 0.16 and in every mode."""
    after = [*touched.kept, *(each.after for each in touched.changes if each.after)]
    stopped = [item.name for item in after if item.text("metadata", "annotations", _STOP) == "true"]
    services = [item for item in after if item.kind == SERVICE and item.name not in stopped]
    for change in touched.changes:
        old, new = change.before, change.after
        if old is None or new is None or new.key.kind not in RUNTIMES or _pod_of(old) == _pod_of(new):
            continue
        users = [item for item in services if item.text("spec", "predictor", "model", "runtime") == new.key.name]
        for item in users:
            if item.name not in restarted:
                yield _taken_over(change, item)
        if not users:
            fitting = [item for item in services if _may_choose(item, new)]
            who = f"{fitting[0].name}, if KServe chose this runtime" if fitting else "services elsewhere that run on it"
            yield Effect(EffectKind.OPEN, change.name, f"restarts {who}", "predictor")


def _taken_over(change: Change, item: Item) -> Effect:
    if item.text("metadata", "annotations", _KEEPS_RUNTIME) == "true":
        text = f"reaches {item.name} with its next change ({_KEEPS_RUNTIME})"
        return Effect(EffectKind.STALE, change.name, text, "predictor")
    strategy = item.text("spec", "predictor", "deploymentStrategy", "type")
    how = "all at once, strategy Recreate" if strategy == "Recreate" else "rolling"
    text = f"restarts the predictor of {item.name} ({how}; before KServe 0.16 with its next change)"
    return Effect(EffectKind.RESTART, change.name, text, "predictor", has_gap=strategy == "Recreate")


def _pod_of(runtime: Item) -> dict[str, Any]:
    return {name: value for name, value in runtime.fields("spec").items() if name not in _OFFERED}


def _may_choose(service: Item, runtime: Item) -> bool:
    """k8s: a model without a runtime gets one that supports its format with autoSelect."""
    wanted = service.text("spec", "predictor", "model", "modelFormat", "name")
    if not wanted or service.text("spec", "predictor", "model", "runtime"):
        return False
    offered = [each for each in runtime.all("spec", "supportedModelFormats") if isinstance(each, dict)]
    return any(each.get("name") == wanted and each.get("autoSelect") is True for each in offered)


def _stale(touched: Touched, restarted: set[str]) -> Iterator[Effect]:
    """Environment variables are read once, so running Pods miss changes of a ConfigMap or Secret with the same name."""
    changed = {
        (each.key.kind, each.key.name): each.name
        for each in touched.changes
        if each.key.kind in ("ConfigMap", "Secret")
        and each.before is not None
        and each.after is not None
        and each.before.key.name == each.after.key.name
        and any(field.pointer.startswith(("/data", "/binaryData", "/stringData")) for field in each.fields)
    }
    items = [*touched.kept, *(each.after for each in touched.changes if each.after and each.before)]
    for item in items if changed else ():
        if item.name in restarted or item.kind not in _TEMPLATE:
            continue
        used = {changed[need.kind, need.name] for need in needs(item) if (need.kind, need.name) in changed
                and {"env", "envFrom"} & set(need.path)}  # fmt: skip
        for name in sorted(used):
            yield Effect(EffectKind.STALE, name, f"{item.name} keeps the old values until it restarts")


def field_line(change: Change, pointer: str) -> str:
    """Render a JSON pointer as a readable field path."""
    item = change.before or change.after
    return readable(pointer, item.manifest) if item is not None else pointer
