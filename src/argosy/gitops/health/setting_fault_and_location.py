"""Errors in settings, as values with their location. Never: reads a setting."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

EVERY_KIND: Final = "*"


class SettingLocation(NamedTuple):
    """Index of a manifest, and the path of a field. Steps below a string field lead into the YAML that it contains."""

    manifest: int = -1
    path: tuple[str | int, ...] = ()

    def append_steps(self, *steps: str | int) -> SettingLocation:
        return SettingLocation(self.manifest, (*self.path, *steps))


UNKNOWN_LOCATION: Final = SettingLocation()


@dataclass(frozen=True, slots=True)
class SettingFault:
    """`text` says what is wrong and, after a semicolon, what to do. Severity error: a setting is not in force."""

    where: str
    text: str
    rule: str = "AGY406"
    severity: Literal["error", "warning"] = "error"
    location: SettingLocation = UNKNOWN_LOCATION
    pattern: str = ""  # pattern of the affected kinds; empty if none is named
    line: int = 0  # line in the text of the field; 0 for the field itself

    def __str__(self) -> str:
        return f"{self.where}: {self.text} ({self.rule})"


def find_similar_word(word: str, known_words: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the most similar known word, ignoring case; empty if none is similar."""
    names = {name.lower(): name for name in known_words}
    similar = difflib.get_close_matches(word.lower(), names, n=1, cutoff=cutoff)
    return names[similar[0]] if similar else ""
