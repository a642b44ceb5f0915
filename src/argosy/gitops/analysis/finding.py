"""What is wrong, where, and what to do about it.

In, out: values. Never: a finding that nobody is sure of; what is not certain is not said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from argosy.kube.objects import Manifest
from argosy.kube.objects.names import ResourceKey

if TYPE_CHECKING:
    from argosy.gitops.analysis.rules.rule import Rule
    from argosy.kube.objects.yaml_edits import Edit


class Severity(StrEnum):
    """From what breaks a delivery to what is only worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def weight(self) -> int:
        return list(Severity)[::-1].index(self)


class Place(NamedTuple):
    """A line of a file, as seen from where the command was typed; line 0 where only the file is known."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Mend(NamedTuple):
    """What does away with a sight: edits of an object as the file at this place has it; none where it cannot be so."""

    place: Place
    key: ResourceKey
    edits: Callable[[Manifest], Sequence[Edit]]


class Sight(NamedTuple):
    """What a rule sees: where, what, and what to do. `subject` is the object that it is about, `field` where in it."""

    place: Place
    message: str
    fix: str
    subject: str = ""
    field: str = ""
    severity: Severity | None = None  # None: that of the rule
    mend: Mend | None = None  # None: it takes a human


@dataclass(frozen=True, slots=True)
class Finding:
    """A sight with the rule that saw it."""

    rule: Rule
    sight: Sight

    @property
    def severity(self) -> Severity:
        return self.sight.severity or self.rule.severity

    @property
    def place(self) -> Place:
        return self.sight.place

    @property
    def mark(self) -> str:
        """The same for the same mistake, though lines above it come and go."""
        return "|".join((self.rule.id, self.place.file, self.sight.subject, self.sight.field))

    def as_data(self) -> dict[str, Any]:
        sight = self.sight
        return {
            "rule": self.rule.id,
            "severity": str(self.severity),
            "file": sight.place.file,
            "line": sight.place.line or None,
            "object": sight.subject or None,
            "field": sight.field or None,
            "message": sight.message,
            "fix": sight.fix,
            "fixable": sight.mend is not None,
            "sure": self.rule.why_sure,
        }
