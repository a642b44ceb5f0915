"""What one run of Helm is told, whichever engine runs it.

In: a chart's options, already read from their tree. Out: frozen values. Never: a path that a user wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol


class Text(NamedTuple):
    """A file's content, and what users call it."""

    where: str
    content: bytes


class Setting(NamedTuple):
    """One `--set`, `--set-string` or `--set-file`, in the order in which Helm applies them."""

    kind: Literal["set", "set-string", "set-file"]
    name: str
    value: str  # escaped as Helm reads it; for a file its content
    where: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    name: str
    namespace: str = ""
    kube_version: str = ""
    api_versions: Sequence[str] = ()
    values: Sequence[Text] = ()  # the later wins
    settings: Sequence[Setting] = ()  # they win over values
    include_crds: bool = True
    skip_hooks: bool = False
    skip_tests: bool = False
    skip_schema_validation: bool = False


class Piece(NamedTuple):
    """A document that Helm made, and the template that it says it is from: `chart/templates/x.yaml`."""

    source: str
    text: str


class HelmFailed(Exception):
    """Helm refused; what it said is for `faults` to turn into a RenderError."""


class Engine(Protocol):
    name: str

    def run(self, chart: Path, work: Path, release: Release) -> list[Piece]:
        """Renders the chart in a folder; `work` is a private folder for files of our own. Raises HelmFailed."""
