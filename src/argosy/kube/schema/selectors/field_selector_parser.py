"""Parses field selectors: `spec.nodeName=a,status.phase!=Running`.

In: text. Out: terms of (path, value, negated). Never: knows which fields a kind has (see `field_labels`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from argosy.errors import ManifestError
from argosy.kube.objects.short_text_result_cache import cache_short_texts


class FieldTerm(NamedTuple):
    path: str
    value: str
    negated: bool

    def __str__(self) -> str:
        value = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.path}{'!=' if self.negated else '='}{value}"


class FieldSelector(NamedTuple):
    """All terms must match; their order does not matter."""

    terms: tuple[FieldTerm, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.terms

    def matches(self, read: Callable[[str], str]) -> bool:
        """`read` returns the text of a field, empty if it is absent."""
        return all((read(path) == value) is not negated for path, value, negated in self.terms)

    def find_required_value(self, path: str) -> str | None:
        """Return the value that a path must have, None if the selector does not require one."""
        return next((term.value for term in self.terms if term.path == path and not term.negated), None)

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


_MATCH_ALL = FieldSelector()


@cache_short_texts(512)
def parse_field_selector(text: str) -> FieldSelector:
    """Parse the `fieldSelector` of a query; empty text selects everything."""
    if not text:
        return _MATCH_ALL
    return FieldSelector(tuple(sorted(_parse_term(part, text) for part in sorted(_split_terms(text)) if part)))


def _split_terms(text: str) -> list[str]:
    """Split at commas that are not escaped."""
    if "\\" not in text:
        return text.split(",")
    parts, start, escaped = [], 0, False
    for index, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def _parse_term(part: str, text: str) -> FieldTerm:
    positions = [position for position in (part.find("!="), part.find("=")) if position >= 0]
    if not positions:
        raise ManifestError(f"invalid selector: '{text}'; can't understand '{part}'")
    position = min(positions)
    operator = part[position : position + 2] if part[position : position + 2] in ("!=", "==") else "="
    return FieldTerm(part[:position], _unescape(part[position + len(operator) :]), operator == "!=")


def _unescape(value: str) -> str:
    unescaped, characters = [], iter(value)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in ("\\", ",", "="):
                raise ManifestError(f"invalid field selector: invalid escape sequence: \\{escaped}")
            unescaped.append(escaped)
        elif character in ",=":
            # k8s: the message has the character's code point, not the character.
            raise ManifestError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            unescaped.append(character)
    return "".join(unescaped)
