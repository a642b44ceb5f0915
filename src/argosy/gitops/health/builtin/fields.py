"""Typed access to fields of built-in kinds.

In: a manifest and a path. Out: a value of the requested type; a missing or null field is the zero value.
Never: converts a value of another type: that raises FieldTypeError, which becomes a fault of the check.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argosy.kube.objects import Manifest


class WrongField(ValueError):
    """The type of a field differs from the schema of its kind."""


@dataclass(frozen=True, slots=True)
class Condition:
    type: str
    status: str
    reason: str
    message: str


def mapping(manifest: Manifest, *path: str) -> dict[str, Any]:
    """Return an empty dict if any step of the path is missing."""
    value: Any = manifest
    for depth, name in enumerate(path):
        value = value.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise _wrong(path[: depth + 1], value, "an object")
    return value  # type: ignore[no-any-return]


def text(manifest: Manifest, *path: str) -> str:
    value = _leaf(manifest, path)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong(path, value, "a string")
    return value


def flag(manifest: Manifest, *path: str) -> bool:
    value = _leaf(manifest, path)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise _wrong(path, value, "a boolean")
    return value


def number(manifest: Manifest, *path: str) -> int:
    return optional_number(manifest, *path) or 0


def optional_number(manifest: Manifest, *path: str) -> int | None:
    """Return None if the field is missing, for fields whose absence differs from 0."""
    value = _leaf(manifest, path)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise _wrong(path, value, "an integer")


def items(manifest: Manifest, *path: str) -> list[dict[str, Any]]:
    """Return the objects of a list; null becomes an empty object."""
    value = _leaf(manifest, path)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _wrong(path, value, "a list")
    for index, each in enumerate(value):
        if each is not None and not isinstance(each, dict):
            raise _wrong((*path[:-1], f"{path[-1]}[{index}]"), each, "an object")
    return [each or {} for each in value]


def conditions(manifest: Manifest) -> list[Condition]:
    found = []
    for index, each in enumerate(items(manifest, "status", "conditions")):
        try:
            found.append(condition_of(each))
        except WrongField as error:
            raise WrongField(f"status.conditions[{index}].{error}") from error
    return found


def condition_of(found: dict[str, Any]) -> Condition:
    return Condition(text(found, "type"), text(found, "status"), text(found, "reason"), text(found, "message"))


def first_condition(manifest: Manifest, kind: str) -> Condition | None:
    return next((each for each in conditions(manifest) if each.type == kind), None)


def generations(manifest: Manifest) -> tuple[int, int]:
    """Return metadata.generation and status.observedGeneration."""
    return number(manifest, "metadata", "generation"), number(manifest, "status", "observedGeneration")


def name_of(manifest: Manifest) -> str:
    return text(manifest, "metadata", "name")


def _leaf(manifest: Manifest, path: tuple[str, ...]) -> Any:
    return mapping(manifest, *path[:-1]).get(path[-1])


_TYPES = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}


def _wrong(path: tuple[str, ...], value: object, wanted: str) -> WrongField:
    return WrongField(f"{'.'.join(path)} is {_TYPES.get(type(value), 'something else')}, not {wanted}")
