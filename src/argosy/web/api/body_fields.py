"""Values of a request's body, read by name.

In: JSON data that anybody may have sent. Out: texts, numbers, lists; a UserError that names the field. Never: a guess
at what was meant where it is of another kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from argosy.errors import UserError

_NUMBERS: Final = 1 << 53


@contextmanager
def as_fields() -> Iterator[None]:
    """What a desk says of a flag is told of the field of that name: nobody typed a flag here."""
    try:
        yield
    except UserError as error:
        if error.where.startswith("--"):
            first, *rest = error.where.removeprefix("--").split("-")
            error.where = first + "".join(each.capitalize() for each in rest)
        raise


class Body:
    """A JSON object. argo: what is null is as if it were not there; so is a field that nobody knows."""

    def __init__(self, values: Any, where: str = "body") -> None:
        if not isinstance(values, Mapping):
            raise UserError("is no JSON object; send one in braces", where=where)
        self.values, self._where = values, where

    def _at(self, name: str) -> str:
        return name if self._where == "body" else f"{self._where}.{name}"

    def _of(self, name: str, kind: type | tuple[type, ...], word: str) -> Any:
        found = self.values.get(name)
        if found is None:
            return None
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise UserError(f"is no {word}; send it as one", where=self._at(name))
        return found

    def text(self, name: str) -> str:
        found: str = self._of(name, str, "text") or ""
        return found

    def flag(self, name: str) -> bool:
        return bool(self._of(name, bool, "true or false"))

    def number(self, name: str) -> int | None:
        """argo: 64 bits come as a text, too."""
        found = self.values.get(name)
        if isinstance(found, str) and found.lstrip("-").isascii() and found.lstrip("-").isdigit() and len(found) < 17:
            return int(found)
        number: int | None = self._of(name, int, "whole number")
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
            raise UserError("holds something that is no text; send texts alone", where=self._at(name))
        return list(found)

    def numbers(self, name: str) -> list[int]:
        found = self._of(name, list, "list") or []
        return [Body({"": each}, f"{self._at(name)}[{place}]").number("") or 0 for place, each in enumerate(found)]


def same_name(name: str, said: str) -> None:
    """What is authorised is what the address names, so the body may not name another."""
    if said and said != name:
        raise UserError(f"the address names {name!r}, and the body {said!r}; send the same", where="name")
