"""Reads the results of discovery and action scripts.

In: the result of a script as JSON data. Out: ResourceActions or ActionImpacts; a UserError says what is wrong with the
result. Never: runs a script; mutates the source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from argosy.errors import UserError
from argosy.kube.names import ResourceKey, split_api_version
from argosy.kube.objects import Manifest

_OPERATIONS: Final = ("create", "patch")
_LUA_TYPES: Final = {type(None): "nil", str: "string", bool: "boolean", int: "number", float: "number"}


@dataclass(frozen=True, slots=True)
class Action:
    """An action of a live object; a disabled one is shown, but makes no sense now."""

    name: str
    disabled: bool = False
    icon: str = ""
    display_name: str = ""
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Impact:
    """One change that an action requests: create this manifest, or patch the source to match it."""

    operation: Literal["create", "patch"]
    manifest: Manifest


def actions_of(value: Any) -> list[Action]:
    """Return the actions of a discovery script, sorted by name."""
    # argo: an empty table is encoded as a list. A script without a result is an error there; here it has no actions.
    if value is None or value == []:
        return []
    _expect_table(value)
    if not isinstance(value, dict):
        raise UserError("discovery must return a table of actions by name, not a list")
    return sorted((_action(name, told) for name, told in value.items()), key=lambda action: action.name)


def merged(first: list[Action], second: list[Action]) -> list[Action]:
    """argo: of two actions with the same name, the one of the earlier script counts."""
    return sorted({action.name: action for action in (*second, *first)}.values(), key=lambda action: action.name)


def _action(name: str, told: Any) -> Action:
    # argo: a list counts as an empty table
    if isinstance(told, list):
        return Action(name)
    if not isinstance(told, dict):
        raise UserError(f"discovery: {name} must be a table, not {told!r}")
    # argo: Go matches field names case-insensitively; a name inside the table wins over its key
    fields = {field.lower(): part for field, part in told.items()}
    return Action(
        _text(fields, "name", name) or name,
        disabled=_flag(fields, name),
        icon=_text(fields, "iconClass", name),
        display_name=_text(fields, "displayName", name),
        parameters=_parameters(fields.get("params"), name),
    )


def _text(fields: dict[str, Any], field: str, name: str) -> str:
    found = fields.get(field.lower(), "")
    if not isinstance(found, str):
        raise UserError(f"discovery: {field} of {name} must be a string, not {found!r}")
    return found


def _flag(fields: dict[str, Any], name: str) -> bool:
    found = fields.get("disabled", False)
    if not isinstance(found, bool):
        raise UserError(f"discovery: disabled of {name} must be true or false, not {found!r}")
    return found


def _parameters(told: Any, name: str) -> tuple[str, ...]:
    # argo: only the name of a parameter is kept, even if it is empty
    if told is None:
        return ()
    if isinstance(told, list) and all(
        isinstance(each, dict) and isinstance(each.get("name", ""), str) for each in told
    ):
        return tuple(each.get("name", "") for each in told)
    raise UserError(f"discovery: params of {name} must be a list of tables that each have a name")


def impacts_of(value: Any, source: Manifest) -> list[Impact]:
    """Return the changes that an action on `source` requests. A single object is a patch of the source."""
    _expect_table(value)
    if isinstance(value, dict):
        return [_impact("patch", value, source)]
    return [_told_impact(number, told, source) for number, told in enumerate(value, start=1)]


def _told_impact(number: int, told: Any, source: Manifest) -> Impact:
    if not isinstance(told, dict):
        raise UserError(f"item {number} of the result must be a table with operation and resource, not {told!r}")
    fields = {field.lower(): part for field, part in told.items()}
    operation = fields.get("operation")
    if operation not in _OPERATIONS:
        raise UserError(f"unsupported operation: {operation!r} in item {number} of the result; use create or patch")
    return _impact(operation, fields.get("resource"), source)


def _impact(operation: Literal["create", "patch"], manifest: Any, source: Manifest) -> Impact:
    if not isinstance(manifest, dict):
        raise UserError(f"the {operation} that the script returned has no resource; give it the object to {operation}")
    if not isinstance(manifest.get("kind"), str) or not isinstance(manifest.get("apiVersion"), str):
        raise UserError("the script did not return a Kubernetes object: it needs apiVersion and kind")
    if operation == "create":
        return Impact(operation, manifest)
    key, source_key = _key(manifest), _key(source)
    if key != source_key:
        # argo: an action may create any object that its user may create, but patch only its own object
        raise UserError(f"the script patches {key}; an action can patch only its own object, {source_key}")
    if manifest["apiVersion"] != source["apiVersion"]:
        was = source["apiVersion"]
        raise UserError(f"the script changed apiVersion from {was} to {manifest['apiVersion']}; a patch must keep it")
    return Impact(operation, _restored(manifest, source))


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


def _restored(new: Any, old: Any) -> Any:
    """Restore values that Lua cannot represent from the input: empty objects, and integers above 2^53.

    argo: there, removing the last entry of a map restores the whole old map; here the map is empty then.
    """
    if isinstance(new, dict) and isinstance(old, dict):
        return {name: _restored(part, old.get(name)) for name, part in new.items()}
    if isinstance(new, list) and isinstance(old, list):
        before = [part for part in old if part is not None]  # argo: Lua does not see the nulls of a list
        before += [None] * (len(new) - len(before))
        return [_restored(part, same) for part, same in zip(new, before)]
    if new == [] and isinstance(old, dict):
        return {}
    if type(old) is int and type(new) in (int, float) and new == float(old):
        return old
    return new
