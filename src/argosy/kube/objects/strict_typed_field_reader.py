"""Reads typed fields of a mapping.

In: data of any shape. Out: values of the requested type, or a ManifestError that names the field. An absent or null
field is an empty value. Never: converts between types.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from argosy.errors import ManifestError

_Word = TypeVar("_Word", bound=enum.StrEnum)
_TYPE_NAMES: Final = {int: "a number", float: "a number", bool: "true or false", dict: "a map", list: "a list"}
_PATH_STEP: Final = re.compile(r"[^.\[\]]+")


class WrongFieldType(ManifestError):
    """A field has the wrong type."""

    path: tuple[str | int, ...] = ()


class FieldReader:
    """A mapping, the file or object that it is from, and its path there."""

    def __init__(self, values: Any, where: str, path: str = "") -> None:
        if not isinstance(values, Mapping):
            raise ManifestError(f"{path or 'the document'} must be a map of fields; correct it", where=where)
        self.values, self.where, self._base_path = values, where, path

    def read_text(self, name: str) -> str:
        return str(self._read_typed(name, str, "a string; put it in quotes") or "")

    def read_bool(self, name: str) -> bool:
        return bool(self._read_typed(name, bool, "true or false"))

    def read_int(self, name: str) -> int:
        value = self.values.get(name)
        if isinstance(value, str) and value.isdecimal():  # argo: a number or a string of digits
            return int(value)
        return int(self._read_typed(name, int, "an integer") or 0)

    def read_enum(self, name: str, enum_class: type[_Word]) -> _Word | None:
        text = self.read_text(name)
        try:
            return enum_class(text) if text else None
        except ValueError:
            raise self._build_type_error(name, f"one of {', '.join(enum_class)}, not {text!r}") from None

    def read_text_map(self, name: str) -> Mapping[str, str]:
        reader = self.read_map(name)
        return {key: reader.read_text(key) for key in reader.values}

    def read_text_list(self, name: str) -> tuple[str, ...]:
        items = self._read_typed(name, list, "a list") or ()
        for item in items:
            if not isinstance(item, str):
                raise self._build_type_error(name, "a list of strings; put each in quotes")
        return tuple(items)

    def read_map(self, name: str) -> FieldReader:
        return self.find_map(name) or FieldReader({}, self.where, self._build_path(name))

    def find_map(self, name: str) -> FieldReader | None:
        value = self.values.get(name)
        return None if value is None else FieldReader(value, self.where, self._build_path(name))

    def read_map_list(self, name: str) -> list[FieldReader]:
        items = self._read_typed(name, list, "a list") or ()
        return [FieldReader(item, self.where, f"{self._build_path(name)}[{index}]") for index, item in enumerate(items)]

    def _read_typed(self, name: str, kind: type, expected: str) -> Any:
        value = self.values.get(name)
        if value is not None and type(value) is not kind:
            raise self._build_type_error(name, expected)
        return value

    def _build_type_error(self, name: str, expected: str) -> WrongFieldType:
        actual = _TYPE_NAMES.get(type(self.values.get(name)), "")
        actual_clause = f", not {actual}" if actual and not expected.startswith(actual) else ""
        expected_type, semicolon, advice = expected.partition("; ")
        error = WrongFieldType(
            f"{self._build_path(name)} must be {expected_type}{actual_clause}{semicolon}{advice}", where=self.where
        )
        error.path = tuple(
            int(step) if step.isdecimal() else step for step in _PATH_STEP.findall(self._build_path(name))
        )
        return error

    def _build_path(self, name: str) -> str:
        return f"{self._base_path}.{name}" if self._base_path else name
