"""Reads fields of a JSON request body.

In: untrusted JSON data. Out: strings, numbers, lists; a UserError that names the field. Never: converts a value of
another type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from argosy.errors import UserError

_MAX_SAFE_INTEGER: Final = 1 << 53


@contextmanager
def rename_flags_to_body_fields() -> Iterator[None]:
    """Rename flags in errors to body fields: `--dry-run` becomes dryRun, because API clients do not use flags."""
    try:
        yield
    except UserError as error:
        if error.where.startswith("--"):
            first, *other_words = error.where.removeprefix("--").split("-")
            error.where = first + "".join(word.capitalize() for word in other_words)
        raise


class BodyReader:
    """A JSON object. argo: null and unknown fields are ignored."""

    def __init__(self, values: Any, path: str = "body") -> None:
        if not isinstance(values, Mapping):
            raise UserError("is not a JSON object; send {...}", where=path)
        self.values, self._path = values, path

    def _get_path(self, name: str) -> str:
        return name if self._path == "body" else f"{self._path}.{name}"

    def _get_typed(self, name: str, kind: type | tuple[type, ...], type_name: str) -> Any:
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise UserError(f"is not a {type_name}", where=self._get_path(name))
        return value

    def get_text(self, name: str) -> str:
        text: str = self._get_typed(name, str, "string") or ""
        return text

    def get_bool(self, name: str) -> bool:
        return bool(self._get_typed(name, bool, "boolean"))

    def get_int(self, name: str) -> int | None:
        """argo: 64-bit integers may be strings."""
        value = self.values.get(name)
        if isinstance(value, str) and value.lstrip("-").isascii() and value.lstrip("-").isdigit() and len(value) < 17:
            return int(value)
        number: int | None = self._get_typed(name, int, "integer")
        if number is not None and abs(number) > _MAX_SAFE_INTEGER:
            raise UserError("is out of range; send a smaller number", where=self._get_path(name))
        return number

    def get_body(self, name: str) -> BodyReader | None:
        value = self._get_typed(name, Mapping, "JSON object")
        return None if value is None else BodyReader(value, self._get_path(name))

    def get_bodies(self, name: str) -> list[BodyReader]:
        items = self._get_typed(name, list, "list") or []
        return [BodyReader(item, f"{self._get_path(name)}[{index}]") for index, item in enumerate(items)]

    def get_texts(self, name: str) -> list[str]:
        items = self._get_typed(name, list, "list") or []
        if not all(isinstance(item, str) for item in items):
            raise UserError("is not a list of strings", where=self._get_path(name))
        return list(items)

    def get_ints(self, name: str) -> list[int]:
        items = self._get_typed(name, list, "list") or []
        return [
            BodyReader({"": item}, f"{self._get_path(name)}[{index}]").get_int("") or 0
            for index, item in enumerate(items)
        ]


def check_same_name(name: str, body_name: str) -> None:
    """Check that URL and body name the same object, because the URL's object was authorized."""
    if body_name and body_name != name:
        raise UserError(f"the URL names {name!r}, but the body names {body_name!r}; use the same name", where="name")
