"""Reads fields of a JSON request body.

In: untrusted JSON data. Out: strings, numbers, lists; a UserError that names the field. Never: converts a value of
another type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from argosy.errors import UserError

_NUMBERS: Final = 1 << 53


@contextmanager
def as_fields() -> Iterator[None]:
    """Rename flags in errors to body fields: `--dry-run` becomes dryRun, because API clients do not use flags."""
    try:
        yield
    except UserError as error:
        if error.where.startswith("--"):
            first, *rest = error.where.removeprefix("--").split("-")
            error.where = first + "".join(each.capitalize() for each in rest)
        raise


class Body:
    """A JSON object. argo: null and unknown fields are ignored."""

    def __init__(self, values: Any, where: str = "body") -> None:
        if not isinstance(values, Mapping):
            raise UserError("is not a JSON object; send {...}", where=where)
        self.values, self._where = values, where

    def _at(self, name: str) -> str:
        return name if self._where == "body" else f"{self._where}.{name}"

    def _of(self, name: str, kind: type | tuple[type, ...], word: str) -> Any:
        found = self.values.get(name)
        if found is None:
            return None
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise UserError(f"is not a {word}", where=self._at(name))
        return found

    def text(self, name: str) -> str:
        found: str = self._of(name, str, "string") or ""
        return found

    def flag(self, name: str) -> bool:
        return bool(self._of(name, bool, "boolean"))

    def number(self, name: str) -> int | None:
        """argo: 64-bit integers may be strings."""
        found = self.values.get(name)
        if isinstance(found, str) and found.lstrip("-").isascii() and found.lstrip("-").isdigit() and len(found) < 17:
            return int(found)
        number: int | None = self._of(name, int, "integer")
        if number is not None and abs(number) > _NUMBERS:
            raise UserError("is out of range; send a smaller number", where=self._at(name))
        return number

    def body(self, name: str) -> Body | None:
        found = self._of(name, Mapping, "JSON object")
        return None if found is None else Body(found, self._at(name))

    def bodies(self, name: str) -> list[Body]:
        found = self._of(name, list, "list") or []
        return [Body(each, f"{self._at(name)}[{place}]") for place, each in enumerate(found)]

    def texts(self, name: str) -> list[str]:
        found = self._of(name, list, "list") or []
        if not all(isinstance(each, str) for each in found):
            raise UserError("is not a list of strings", where=self._at(name))
        return list(found)

    def numbers(self, name: str) -> list[int]:
        found = self._of(name, list, "list") or []
        return [Body({"": each}, f"{self._at(name)}[{place}]").number("") or 0 for place, each in enumerate(found)]


def same_name(name: str, said: str) -> None:
    """Check that URL and body name the same object, because the URL's object was authorized."""
    if said and said != name:
        raise UserError(f"the URL names {name!r}, but the body names {said!r}; use the same name", where="name")
