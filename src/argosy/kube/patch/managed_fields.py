"""Field ownership: reads and writes metadata.managedFields, and records ordinary (non-apply) writes in it.

In: manifests, their shape, the field manager and the time. Out: new manifests.
Never: changes a field other than metadata.managedFields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from argosy.errors import PatchError
from argosy.kube.objects import Manifest
from argosy.kube.objects.go_format import quote
from argosy.kube.patch.changed_field_path_trees import compare, fit_tree_to_shape
from argosy.kube.patch.field_sets import FieldSet, difference, remove_subtrees, union
from argosy.kube.patch.merge_schema_protocol import Shape

Operation = Literal["Apply", "Update"]
MAX_UPDATERS: Final = 10
ANCIENT_CHANGES_MANAGER: Final = "ancient-changes"

# k8s: these fields have no owner.
UNOWNED_FIELDS: Final = FieldSet.from_paths(
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


class Manager(NamedTuple):
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


def read_managers(manifest: Manifest) -> list[Manager]:
    """Read the managers; raise PatchError if an entry is malformed. Their field sets are parsed on first use."""
    entries = (manifest.get("metadata") or {}).get("managedFields") or []
    if not isinstance(entries, list):
        raise PatchError("managedFields must be a list")
    return list(
        {manager.identity: manager for manager in map(_manager_from_wire, range(len(entries)), entries)}.values()
    )


def _manager_from_wire(index: int, entry: Any) -> Manager:
    text_fields = ("manager", "operation", "apiVersion", "time", "fieldsType", "subresource")
    if not isinstance(entry, dict) or not all(isinstance(entry.get(name) or "", str) for name in text_fields):
        raise PatchError(f"malformed managed fields entry {index}")
    operation = entry.get("operation")
    if operation != "Apply" and operation != "Update":
        raise PatchError("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion"):
        raise PatchError("apiVersion must not be empty")
    if (fields_type := entry.get("fieldsType") or "") != "FieldsV1":
        problem = f"invalid fieldsType {quote(fields_type)}" if fields_type else "missing fieldsType"
        raise PatchError(f"{problem} in managed fields entry {index}")
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
        return without_managed_fields(manifest)
    metadata = dict(manifest.get("metadata") or {})
    metadata.pop("managedFields", None)
    metadata["managedFields"] = [_manager_to_wire(manager) for manager in sorted(managers, key=_manager_sort_key)]
    return manifest | {"metadata": metadata}


def _manager_sort_key(manager: Manager) -> tuple[str, ...]:
    return manager.operation, manager.time, manager.name, manager.api_version, manager.subresource


def _manager_to_wire(manager: Manager) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": manager.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": manager.fields.to_wire(),
    }
    if not manager.time:
        del entry["time"]
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def without_managed_fields(manifest: Manifest) -> Manifest:
    metadata = manifest.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return manifest
    return manifest | {"metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def record_update(
    live: Manifest | None,
    new: Manifest,
    *,
    empty_object: Manifest | None,
    manager: str,
    api_version: str,
    subresource: str,
    now: str,
    shape: Shape,
    ignored_fields: FieldSet | None = None,
) -> Manifest:
    """Make `manager` the only owner of the fields that changed from `live` to `new`.

    `empty_object` is the kind's empty object: a field that equals it has no owner. `ignored_fields` are fields that
    this endpoint does not write, such as status if there is a status subresource.
    """
    content = without_managed_fields(new)
    old_content = (empty_object or {}) if live is None else without_managed_fields(live)
    writer = Manager(manager or "unknown", "Update", api_version, now, FieldSet(), subresource)
    try:
        managers = _current_managers(live, new, subresource)
        if live is not None and not managers:
            return content  # k8s: ownership is not tracked again until the next apply
        return with_managers(
            content, _cap_updaters(take_over(old_content, content, managers, writer, shape, ignored_fields))
        )
    except PatchError:
        return content  # k8s: unreadable managedFields are dropped


def _current_managers(live: Manifest | None, new: Manifest, subresource: str) -> list[Manager]:
    """Return the managers that the client sent if readable, else those of `live`; none if the client resets them."""
    sent_entries = None if subresource else (new.get("metadata") or {}).get("managedFields")
    if sent_entries is not None:
        if sent_entries in ([], [{}]):
            return []
        if live is None or sent_entries != (live.get("metadata") or {}).get("managedFields"):
            try:
                managers = read_managers(new)
                return [manager._replace(fields=FieldSet(manager.fields.tree)) for manager in managers]
            except PatchError:
                pass
    return read_managers(live) if live is not None else []


def take_over(
    old: Manifest,
    new: Manifest,
    managers: Sequence[Manager],
    writer: Manager,
    shape: Shape,
    ignored_fields: FieldSet | None = None,
) -> list[Manager]:
    """The managers after `writer` wrote `new` over `old`. The writer's time changes only if it gains a field."""
    if old == new:
        return list(managers)
    changed, removed = compare(old, new, shape)
    if ignored_fields is not None:
        changed, removed = remove_subtrees(changed, ignored_fields.tree), remove_subtrees(removed, ignored_fields.tree)
    kept = (
        remove_owned_fields(fit_managers_to_shape(managers, shape), FieldSet(union(changed, removed)))
        if managers
        else []
    )
    gained = FieldSet(difference(changed, UNOWNED_FIELDS.tree))
    if not gained:
        return kept
    result: list[Manager] = []
    for manager in kept:
        if manager.identity == writer.identity:
            gained |= manager.fields
        else:
            result.append(manager)
    return [*result, writer._replace(fields=gained)]


def fit_managers_to_shape(managers: Sequence[Manager], shape: Shape) -> list[Manager]:
    """Adapt recorded fields to this shape, because a kind's schema may have changed since they were recorded."""
    result: list[Manager] = []
    for manager in managers:
        tree = fit_tree_to_shape(manager.fields.tree, shape)
        result.append(manager if tree is manager.fields.tree else manager._replace(fields=FieldSet(tree)))
    return result


def remove_owned_fields(managers: Sequence[Manager], fields: FieldSet) -> list[Manager]:
    """Remove these fields from the managers, and drop managers that are left with none."""
    if not fields:
        return list(managers)
    kept: list[Manager] = []
    for manager in managers:
        remaining = manager.fields - fields
        if remaining:
            kept.append(manager if remaining == manager.fields else manager._replace(fields=remaining))
    return kept


def _cap_updaters(managers: list[Manager]) -> list[Manager]:
    """Keep at most ten updaters: the oldest of an apiVersion are merged into one, `ancient-changes`."""
    updaters = [manager for manager in managers if manager.operation == "Update"]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return managers
    updaters.sort(key=lambda manager: (manager.time, *manager.identity))
    managers_by_identity = {manager.identity: manager for manager in managers}
    first_of_version: dict[str, Manager] = {}
    for manager in updaters:
        if excess <= 0:
            break
        first_manager = first_of_version.setdefault(manager.api_version, manager)
        if first_manager is manager:
            continue
        bucket = Manager(ANCIENT_CHANGES_MANAGER, "Update", manager.api_version, manager.time, FieldSet())
        if bucket.identity not in managers_by_identity:
            managers_by_identity[bucket.identity] = managers_by_identity.pop(first_manager.identity)
        merged = manager.fields | managers_by_identity[bucket.identity].fields
        managers_by_identity.pop(manager.identity)
        managers_by_identity[bucket.identity] = bucket._replace(fields=merged)
        excess -= 1
    return list(managers_by_identity.values())


def keep_live_if_only_times_differ(live: Manifest, new: Manifest) -> Manifest:
    """Return `live` if `new` differs only in the times of managers: such a write changes nothing."""
    if without_managed_fields(live) != without_managed_fields(new):
        return new
    entries_without_times = [
        [{name: value for name, value in entry.items() if name != "time"} for entry in entries]
        for entries in (
            sorted((manifest.get("metadata") or {}).get("managedFields") or (), key=_entry_identity)
            for manifest in (live, new)
        )
    ]
    return live if entries_without_times[0] == entries_without_times[1] else new


def _entry_identity(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(entry.get(name) or "") for name in ("manager", "operation", "apiVersion", "subresource"))
