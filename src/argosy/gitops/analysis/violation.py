"""One broken rule: where it is, what is wrong, what to do, and edits that fix it.

In, out: values. Never: knows which rule reports it; that is a Finding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

if TYPE_CHECKING:
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
