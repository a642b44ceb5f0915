"""Field ownership: reads and writes metadata.managedFields, and records ordinary (non-apply) writes in it.

In: manifests, their shape, the field manager and the time. Out: new manifests.
Never: changes a field other than metadata.managedFields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from argosy.errors import PatchError
from argosy.kube.objects import Manifest
from argosy.kube.patch.field_comparison import compare, fitted
from argosy.kube.patch.field_sets import FieldSet, difference, union, without
from argosy.kube.patch.go_format import quote
from argosy.kube.patch.merge_schema import Shape

Operation = Literal["Apply", "Update"]
MAX_UPDATERS: Final = 10
ANCIENT: Final = "ancient-changes"

# k8s: these fields have no owner.
UNOWNED: Final = FieldSet.of(
    ["f:apiVersion"],
    ["f:kind"],
    ["f:metadata"],
    *(
        ["f:metadata", f"f:{name}"]
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ),
)


@dataclass(frozen=True, slots=True)
class Manager:
    """One entry of managedFields. `time` is empty if the manager's writes never changed anything."""

    name: str
    operation: Operation
    api_version: str
    time: str
    fields: FieldSet
    subresource: str = ""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """k8s: an applier is the same manager in every apiVersion; an updater is not."""
        return self.name, self.operation, "" if self.operation == "Apply" else self.api_version, self.subresource


def managers_of(manifest: Manifest) -> list[Manager]:
    """Read the managers; raise PatchError if an entry is malformed. Their field sets are parsed on first use."""
    entries = (manifest.get("metadata") or {}).get("managedFields") or []
    if not isinstance(entries, list):
        raise PatchError("managedFields must be a list")
    return list({each.identity: each for each in map(_decoded, range(len(entries)), entries)}.values())


def _decoded(index: int, entry: Any) -> Manager:
    texts = ("manager", "operation", "apiVersion", "time", "fieldsType", "subresource")
    if not isinstance(entry, dict) or not all(isinstance(entry.get(name) or "", str) for name in texts):
        raise PatchError(f"malformed managed fields entry {index}")
    operation = entry.get("operation")
    if operation != "Apply" and operation != "Update":
        raise PatchError("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion"):
        raise PatchError("apiVersion must not be empty")
    if (fields_type := entry.get("fieldsType") or "") != "FieldsV1":
        what = f"invalid fieldsType {quote(fields_type)}" if fields_type else "missing fieldsType"
        raise PatchError(f"{what} in managed fields entry {index}")
    return Manager(
        name=entry.get("manager") or "",
        operation=operation,
        api_version=entry["apiVersion"],
        time=entry.get("time") or "",
        fields=FieldSet.parse(entry.get("fieldsV1")),
        subresource=entry.get("subresource") or "",
    )


def with_managers(manifest: Manifest, managers: Sequence[Manager]) -> Manifest:
    """Replace the manifest's managers, in the server's order."""
    if not managers:
        return bare(manifest)
    metadata = dict(manifest.get("metadata") or {})
    metadata.pop("managedFields", None)
    metadata["managedFields"] = [_encoded(each) for each in sorted(managers, key=_place)]
    return manifest | {"metadata": metadata}


def _place(manager: Manager) -> tuple[str, ...]:
    return manager.operation, manager.time, manager.name, manager.api_version, manager.subresource


def _encoded(manager: Manager) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": manager.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": manager.fields.format(),
    }
    if not manager.time:
        del entry["time"]
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def bare(manifest: Manifest) -> Manifest:
    metadata = manifest.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return manifest
    return manifest | {"metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def record_update(
    live: Manifest | None,
    new: Manifest,
    *,
    zero: Manifest | None,
    manager: str,
    api_version: str,
    subresource: str,
    now: str,
    shape: Shape,
    ignored: FieldSet | None = None,
) -> Manifest:
    """Make `manager` the only owner of the fields that changed from `live` to `new`.

    `empty_object` is the kind's empty object: a field that equals it has no owner. `ignored_fields` are fields that
    this endpoint does not write, such as status if there is a status subresource.
    """
    content = bare(new)
    before = (zero or {}) if live is None else bare(live)
    writer = Manager(manager or "unknown", "Update", api_version, now, FieldSet(), subresource)
    try:
        managers = _known_managers(live, new, subresource)
        if live is not None and not managers:
            return content  # k8s: ownership is not tracked again until the next apply
        return with_managers(content, _capped(take_over(before, content, managers, writer, shape, ignored)))
    except PatchError:
        return content  # k8s: unreadable managedFields are dropped


def _known_managers(live: Manifest | None, new: Manifest, subresource: str) -> list[Manager]:
    """Return the managers that the client sent if readable, else those of `live`; none if the client resets them."""
    sent = None if subresource else (new.get("metadata") or {}).get("managedFields")
    if sent is not None:
        if sent in ([], [{}]):
            return []
        if live is None or sent != (live.get("metadata") or {}).get("managedFields"):
            try:
                managers = managers_of(new)
                return [replace(each, fields=FieldSet(each.fields.tree)) for each in managers]
            except PatchError:
                pass
    return managers_of(live) if live is not None else []


def take_over(
    before: Manifest,
    after: Manifest,
    managers: Sequence[Manager],
    writer: Manager,
    shape: Shape,
    ignored: FieldSet | None = None,
) -> list[Manager]:
    """The managers after `writer` wrote `after` over `before`. The writer's time changes only if it gains a field."""
    if before == after:
        return list(managers)
    changed, removed = compare(before, after, shape)
    if ignored is not None:
        changed, removed = without(changed, ignored.tree), without(removed, ignored.tree)
    kept = lose(fit_shape(managers, shape), FieldSet(union(changed, removed)))
    gained = FieldSet(difference(changed, UNOWNED.tree))
    if not gained:
        return kept
    result: list[Manager] = []
    for each in kept:
        if each.identity == writer.identity:
            gained |= each.fields
        else:
            result.append(each)
    return [*result, replace(writer, fields=gained)]


def fit_shape(managers: Sequence[Manager], shape: Shape) -> list[Manager]:
    """Adapt recorded fields to this shape, because a kind's schema may have changed since they were recorded."""
    result: list[Manager] = []
    for each in managers:
        tree = fitted(each.fields.tree, shape)
        result.append(each if tree is each.fields.tree else replace(each, fields=FieldSet(tree)))
    return result


def lose(managers: Sequence[Manager], fields: FieldSet) -> list[Manager]:
    """Remove these fields from the managers, and drop managers that are left with none."""
    if not fields:
        return list(managers)
    kept: list[Manager] = []
    for each in managers:
        rest = each.fields - fields
        if rest:
            kept.append(each if rest == each.fields else replace(each, fields=rest))
    return kept


def _capped(managers: list[Manager]) -> list[Manager]:
    """Keep at most ten updaters: the oldest of an apiVersion are merged into one, `ancient-changes`."""
    updaters = [each for each in managers if each.operation == "Update"]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return managers
    updaters.sort(key=lambda each: (each.time, *each.identity))
    left = {each.identity: each for each in managers}
    first_of_version: dict[str, Manager] = {}
    for each in updaters:
        if excess <= 0:
            break
        first = first_of_version.setdefault(each.api_version, each)
        if first is each:
            continue
        bucket = Manager(ANCIENT, "Update", each.api_version, each.time, FieldSet())
        if bucket.identity not in left:
            left[bucket.identity] = left.pop(first.identity)
        merged = each.fields | left[bucket.identity].fields
        left.pop(each.identity)
        left[bucket.identity] = replace(bucket, fields=merged)
        excess -= 1
    return list(left.values())


def keep_times(live: Manifest, new: Manifest) -> Manifest:
    """Return `live` if `new` differs only in the times of managers: such a write changes nothing."""
    if bare(live) != bare(new):
        return new
    times_aside = [
        [{name: value for name, value in entry.items() if name != "time"} for entry in entries]
        for entries in (
            sorted((each.get("metadata") or {}).get("managedFields") or (), key=_entry_identity) for each in (live, new)
        )
    ]
    return live if times_aside[0] == times_aside[1] else new


def _entry_identity(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(entry.get(name) or "") for name in ("manager", "operation", "apiVersion", "subresource"))
