"""One broken rule: where it is, what is wrong, what to do, and edits that fix it.

In, out: values. Never: knows which rule reports it; that is a Finding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey

if TYPE_CHECKING:
    from argosy.kube.objects.yaml_edits import YamlEdit


class Severity(StrEnum):
    """From errors that break a delivery to information."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def weight(self) -> int:
        return list(Severity)[::-1].index(self)


class FileLocation(NamedTuple):
    """A line of a file, relative to the working directory; line 0 if only the file is known."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class FileFix(NamedTuple):
    """Edits that fix a violation in the object as its file has it; none if the file does not match."""

    location: FileLocation
    key: ResourceKey
    edits: Callable[[Manifest], Sequence[YamlEdit]]


class Violation(NamedTuple):
    """A broken rule. `subject`: the object, `field`: the path in it."""

    location: FileLocation
    message: str
    fix: str
    subject: str = ""
    field: str = ""
    severity: Severity | None = None  # None: the rule's severity
    file_fix: FileFix | None = None  # None: a person must fix it
