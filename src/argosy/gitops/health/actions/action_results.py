"""Reads the results of discovery and action scripts.

In: the result of a script as JSON data. Out: ResourceActions or ActionImpacts; a UserError says what is wrong with the
result. Never: runs a script; mutates the source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from argosy.errors import UserError
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey, split_api_version

_OPERATIONS: Final = ("create", "patch")
_LUA_TYPES: Final = {type(None): "nil", str: "string", bool: "boolean", int: "number", float: "number"}


@dataclass(frozen=True, slots=True)
class ResourceAction:
    """An action of a live object; a disabled one is shown, but makes no sense now."""

    name: str
    disabled: bool = False
    icon: str = ""
    display_name: str = ""
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ActionImpact:
    """One change that an action requests: create this manifest, or patch the source to match it."""

    operation: Literal["create", "patch"]
    manifest: Manifest


def read_actions(value: Any) -> list[ResourceAction]:
    """Return the actions of a discovery script, sorted by name."""
    # argo: an empty table is encoded as a list. A script without a result is an error there; here it has no actions.
    if value is None or value == []:
        return []
    _expect_table(value)
    if not isinstance(value, dict):
        raise UserError("discovery must return a table of actions by name, not a list")
    return sorted(
        (_read_action(name, description) for name, description in value.items()), key=lambda action: action.name
    )


def merge_actions(preferred: list[ResourceAction], others: list[ResourceAction]) -> list[ResourceAction]:
    """argo: of two actions with the same name, the one of the earlier script counts."""
    return sorted({action.name: action for action in (*others, *preferred)}.values(), key=lambda action: action.name)


def _read_action(name: str, description: Any) -> ResourceAction:
    # argo: a list counts as an empty table
    if isinstance(description, list):
        return ResourceAction(name)
    if not isinstance(description, dict):
        raise UserError(f"discovery: {name} must be a table, not {description!r}")
    # argo: Go matches field names case-insensitively; a name inside the table wins over its key
    fields = {field.lower(): part for field, part in description.items()}
    return ResourceAction(
        _read_text(fields, "name", name) or name,
        disabled=_read_disabled(fields, name),
        icon=_read_text(fields, "iconClass", name),
        display_name=_read_text(fields, "displayName", name),
        parameters=_read_parameters(fields.get("params"), name),
    )


def _read_text(fields: dict[str, Any], field: str, name: str) -> str:
    value = fields.get(field.lower(), "")
    if not isinstance(value, str):
        raise UserError(f"discovery: {field} of {name} must be a string, not {value!r}")
    return value


def _read_disabled(fields: dict[str, Any], name: str) -> bool:
    value = fields.get("disabled", False)
    if not isinstance(value, bool):
        raise UserError(f"discovery: disabled of {name} must be true or false, not {value!r}")
    return value


def _read_parameters(value: Any, name: str) -> tuple[str, ...]:
    # argo: only the name of a parameter is kept, even if it is empty
    if value is None:
        return ()
    if isinstance(value, list) and all(
        isinstance(parameter, dict) and isinstance(parameter.get("name", ""), str) for parameter in value
    ):
        return tuple(parameter.get("name", "") for parameter in value)
    raise UserError(f"discovery: params of {name} must be a list of tables that each have a name")


def read_impacts(value: Any, source: Manifest) -> list[ActionImpact]:
    """Return the changes that an action on `source` requests. A single object is a patch of the source."""
    _expect_table(value)
    if isinstance(value, dict):
        return [_build_impact("patch", value, source)]
    return [_read_impact(number, item, source) for number, item in enumerate(value, start=1)]


def _read_impact(number: int, item: Any, source: Manifest) -> ActionImpact:
    if not isinstance(item, dict):
        raise UserError(f"item {number} of the result must be a table with operation and resource, not {item!r}")
    fields = {field.lower(): part for field, part in item.items()}
    operation = fields.get("operation")
    if operation not in _OPERATIONS:
        raise UserError(f"unsupported operation: {operation!r} in item {number} of the result; use create or patch")
    return _build_impact(operation, fields.get("resource"), source)


def _build_impact(operation: Literal["create", "patch"], manifest: Any, source: Manifest) -> ActionImpact:
    if not isinstance(manifest, dict):
        raise UserError(f"the {operation} that the script returned has no resource; give it the object to {operation}")
    if not isinstance(manifest.get("kind"), str) or not isinstance(manifest.get("apiVersion"), str):
        raise UserError("the script did not return a Kubernetes object: it needs apiVersion and kind")
    manifest = _restore_metadata_maps(manifest)
    if operation == "create":
        return ActionImpact(operation, manifest)
    key, source_key = _key(manifest), _key(source)
    if key != source_key:
        # argo: an action may create any object that its user may create, but patch only its own object
        raise UserError(f"the script patches {key}; an action can patch only its own object, {source_key}")
    if manifest["apiVersion"] != source["apiVersion"]:
        source_version = source["apiVersion"]
        raise UserError(
            f"the script changed apiVersion from {source_version} to {manifest['apiVersion']}; a patch must keep it"
        )
    return ActionImpact(operation, _restore_lost_values(manifest, source))


def _key(manifest: Manifest) -> ResourceKey:
    """argo: a missing name counts as empty, because only equality matters."""
    metadata = manifest.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise UserError("the script replaced metadata with a value that is not an object; change its fields instead")
    group, _ = split_api_version(manifest["apiVersion"])
    return ResourceKey(group, manifest["kind"], metadata.get("namespace") or "", metadata.get("name") or "")


def _expect_table(value: Any) -> None:
    if not isinstance(value, dict | list):
        raise UserError(f"expect table output from Lua script, not {_LUA_TYPES.get(type(value), 'userdata')}")


def _restore_metadata_maps(manifest: Manifest) -> Manifest:
    """Return the manifest with empty maps for labels and annotations that the script set to an empty table."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return manifest
    empty: Manifest = {name: {} for name in ("annotations", "labels") if metadata.get(name) == []}
    return manifest | {"metadata": metadata | empty} if empty else manifest


def _restore_lost_values(new: Any, old: Any) -> Any:
    """Restore values that Lua cannot represent from the input: empty objects, and integers above 2^53.

    argo: there, removing the last entry of a map restores the whole old map; here the map is empty then.
    """
    if isinstance(new, dict) and isinstance(old, dict):
        return {name: _restore_lost_values(part, old.get(name)) for name, part in new.items()}
    if isinstance(new, list) and isinstance(old, list):
        old_items = [part for part in old if part is not None]  # argo: Lua does not see the nulls of a list
        old_items += [None] * (len(new) - len(old_items))
        return [_restore_lost_values(part, old_part) for part, old_part in zip(new, old_items)]
    if new == [] and isinstance(old, dict):
        return {}
    if type(old) is int and type(new) in (int, float) and new == float(old):
        return old
    return new
