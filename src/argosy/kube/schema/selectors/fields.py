"""Parses field selectors: `spec.nodeName=a,status.phase!=Running`.

In: text. Out: terms of (path, value, negated). Never: knows which fields a kind has (see `field_labels`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from argosy.errors import ManifestError
from argosy.kube.objects.text_cache import remembered


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
    def empty(self) -> bool:
        return not self.terms

    def matches(self, read: Callable[[str], str]) -> bool:
        """`read` returns the text of a field, empty if it is absent."""
        return all((read(path) == value) is not negated for path, value, negated in self.terms)

    def exact(self, path: str) -> str | None:
        """Return the value that a path must have, None if the selector does not require one."""
        return next((term.value for term in self.terms if term.path == path and not term.negated), None)

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


_EVERYTHING = FieldSelector()


@remembered(512)
def fields(text: str) -> FieldSelector:
    """Parse the `fieldSelector` of a query; empty text selects everything."""
    if not text:
        return _EVERYTHING
    return FieldSelector(tuple(sorted(_term(part, text) for part in sorted(_split(text)) if part)))


def _split(text: str) -> list[str]:
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


def _term(part: str, text: str) -> FieldTerm:
    places = [place for place in (part.find("!="), part.find("=")) if place >= 0]
    if not places:
        raise ManifestError(f"invalid selector: '{text}'; can't understand '{part}'")
    place = min(places)
    operator = part[place : place + 2] if part[place : place + 2] in ("!=", "==") else "="
    return FieldTerm(part[:place], _unescaped(part[place + len(operator) :]), operator == "!=")


def _unescaped(value: str) -> str:
    out, characters = [], iter(value)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            if following not in ("\\", ",", "="):
                raise ManifestError(f"invalid field selector: invalid escape sequence: \\{following}")
            out.append(following)
        elif character in ",=":
            # k8s: the message has the character's code point, not the character.
            raise ManifestError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            out.append(character)
    return "".join(out)
