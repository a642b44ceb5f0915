"""What is wrong with a setting. In, out: values, and the word that was probably meant. Never: reads a setting."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

EVERY_KIND: Final = "*"


class Place(NamedTuple):
    """Which of the manifests, and the field of it. Steps that go on below a text go into the YAML that it holds."""

    manifest: int = -1
    path: tuple[str | int, ...] = ()

    def below(self, *steps: str | int) -> Place:
        return Place(self.manifest, (*self.path, *steps))


NOWHERE: Final = Place()


@dataclass(frozen=True, slots=True)
class Fault:
    """`text` is what is wrong and, after a semicolon, what to do. An error: something that was said is not in force."""

    where: str
    text: str
    rule: str = "AGY406"
    severity: Literal["error", "warning"] = "error"
    place: Place = NOWHERE
    pattern: str = ""  # of the kinds that it concerns; empty where none is named
    line: int = 0  # of the text at its place; 0 where it is the field itself

    def __str__(self) -> str:
        return f"{self.where}: {self.text} ({self.rule})"


def meant(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The known word that is nearest, in any case; empty where none is near."""
    names = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), names, n=1, cutoff=cutoff)
    return names[near[0]] if near else ""
