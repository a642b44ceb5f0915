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
_KINDS: Final = {int: "a number", float: "a number", bool: "true or false", dict: "a map", list: "a list"}
_STEP: Final = re.compile(r"[^.\[\]]+")


class WrongField(ManifestError):
    """A field has the wrong type."""

    path: tuple[str | int, ...] = ()


class Fields:
    """A mapping, the file or object that it is from, and its path there."""

    def __init__(self, values: Any, where: str, at: str = "") -> None:
        if not isinstance(values, Mapping):
            raise ManifestError(f"{at or 'the document'} must be a map of fields; correct it", where=where)
        self.values, self.where, self._at = values, where, at

    def text(self, name: str) -> str:
        return str(self._checked(name, str, "a string; put it in quotes") or "")

    def flag(self, name: str) -> bool:
        return bool(self._checked(name, bool, "true or false"))

    def count(self, name: str) -> int:
        value = self.values.get(name)
        if isinstance(value, str) and value.isdecimal():  # argo: a number or a string of digits
            return int(value)
        return int(self._checked(name, int, "an integer") or 0)

    def word(self, name: str, words: type[_Word]) -> _Word | None:
        text = self.text(name)
        try:
            return words(text) if text else None
        except ValueError:
            raise self._wrong(name, f"one of {', '.join(words)}, not {text!r}") from None

    def texts(self, name: str) -> Mapping[str, str]:
        given = self.fields(name)
        return {each: given.text(each) for each in given.values}

    def all_texts(self, name: str) -> tuple[str, ...]:
        found = self._checked(name, list, "a list") or ()
        for each in found:
            if not isinstance(each, str):
                raise self._wrong(name, "a list of strings; put each in quotes")
        return tuple(found)

    def fields(self, name: str) -> Fields:
        return self.optional(name) or Fields({}, self.where, self._path(name))

    def optional(self, name: str) -> Fields | None:
        value = self.values.get(name)
        return None if value is None else Fields(value, self.where, self._path(name))

    def all_fields(self, name: str) -> list[Fields]:
        found = self._checked(name, list, "a list") or ()
        return [Fields(each, self.where, f"{self._path(name)}[{place}]") for place, each in enumerate(found)]

    def _checked(self, name: str, kind: type, what: str) -> Any:
        value = self.values.get(name)
        if value is not None and type(value) is not kind:
            raise self._wrong(name, what)
        return value

    def _wrong(self, name: str, what: str) -> WrongField:
        found = _KINDS.get(type(self.values.get(name)), "")
        but = f", not {found}" if found and not what.startswith(found) else ""
        kind, semicolon, advice = what.partition("; ")
        error = WrongField(f"{self._path(name)} must be {kind}{but}{semicolon}{advice}", where=self.where)
        error.path = tuple(int(step) if step.isdecimal() else step for step in _STEP.findall(self._path(name)))
        return error

    def _path(self, name: str) -> str:
        return f"{self._at}.{name}" if self._at else name
