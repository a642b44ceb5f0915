"""Typed access to fields of built-in kinds.

In: a manifest and a path. Out: a value of the requested type; a missing or null field is the zero value.
Never: converts a value of another type: that raises FieldTypeError, which becomes a fault of the check.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argosy.kube.objects import Manifest


class FieldTypeError(ValueError):
    """The type of a field differs from the schema of its kind."""


@dataclass(frozen=True, slots=True)
class StatusCondition:
    type: str
    status: str
    reason: str
    message: str


def read_map(manifest: Manifest, *path: str) -> dict[str, Any]:
    """Return an empty dict if any step of the path is missing."""
    value: Any = manifest
    for depth, name in enumerate(path):
        value = value.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise _type_error(path[: depth + 1], value, "an object")
    return value  # type: ignore[no-any-return]


def read_text(manifest: Manifest, *path: str) -> str:
    value = _read_field(manifest, path)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _type_error(path, value, "a string")
    return value


def read_bool(manifest: Manifest, *path: str) -> bool:
    value = _read_field(manifest, path)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise _type_error(path, value, "a boolean")
    return value


def read_int(manifest: Manifest, *path: str) -> int:
    return read_optional_int(manifest, *path) or 0


def read_optional_int(manifest: Manifest, *path: str) -> int | None:
    """Return None if the field is missing, for fields whose absence differs from 0."""
    value = _read_field(manifest, path)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise _type_error(path, value, "an integer")


def read_objects(manifest: Manifest, *path: str) -> list[dict[str, Any]]:
    """Return the objects of a list; null becomes an empty object."""
    value = _read_field(manifest, path)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _type_error(path, value, "a list")
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            raise _type_error((*path[:-1], f"{path[-1]}[{index}]"), item, "an object")
    return [item or {} for item in value]


def read_conditions(manifest: Manifest) -> list[StatusCondition]:
    parsed = []
    for index, entry in enumerate(read_objects(manifest, "status", "conditions")):
        try:
            parsed.append(read_condition(entry))
        except FieldTypeError as error:
            raise FieldTypeError(f"status.conditions[{index}].{error}") from error
    return parsed


def read_condition(entry: dict[str, Any]) -> StatusCondition:
    return StatusCondition(
        read_text(entry, "type"), read_text(entry, "status"), read_text(entry, "reason"), read_text(entry, "message")
    )


def find_condition(manifest: Manifest, condition_type: str) -> StatusCondition | None:
    return next((condition for condition in read_conditions(manifest) if condition.type == condition_type), None)


def read_generations(manifest: Manifest) -> tuple[int, int]:
    """Return metadata.generation and status.observedGeneration."""
    return read_int(manifest, "metadata", "generation"), read_int(manifest, "status", "observedGeneration")


def read_name(manifest: Manifest) -> str:
    return read_text(manifest, "metadata", "name")


def _read_field(manifest: Manifest, path: tuple[str, ...]) -> Any:
    return read_map(manifest, *path[:-1]).get(path[-1])


_TYPE_NAMES = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def _type_error(path: tuple[str, ...], value: object, expected: str) -> FieldTypeError:
    return FieldTypeError(f"{'.'.join(path)} is {_TYPE_NAMES.get(type(value), 'something else')}, not {expected}")
