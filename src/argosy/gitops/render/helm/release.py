"""Input and output types of one Helm run, for either engine.

In: a chart's options, already read from their tree. Out: frozen values. Never: a path that a user wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from argosy.kube.objects import Profile


class ValuesFile(NamedTuple):
    """The content of a value file; `where` is its name in messages."""

    where: str
    content: bytes


class Setting(NamedTuple):
    """One `--set`, `--set-string` or `--set-file`; Helm applies them kind by kind, in this order."""

    kind: Literal["set", "set-string", "set-file"]
    name: str
    value: str  # escaped for Helm; the file's content for set-file


@dataclass(frozen=True, slots=True)
class Release:
    name: str
    namespace: str = ""
    kube_version: str = ""
    api_versions: Sequence[str] = ()
    values: Sequence[ValuesFile] = ()  # later files win
    settings: Sequence[Setting] = ()  # they win over values
    include_crds: bool = True
    skip_hooks: bool = False
    skip_tests: bool = False
    skip_schema_validation: bool = False
    profile: Profile = Profile.KUBERNETES  # how Helm's output is parsed


class Document(NamedTuple):
    """One rendered object as plain data, and its template as Helm names it: `chart/templates/x.yaml`."""

    source: str
    value: Any


class HelmFailed(Exception):
    """Helm rejected the chart, with Helm's own message; `helm_errors` converts it to a RenderError."""


class Engine(Protocol):
    name: str

    def run(self, chart: Path, work: Path, release: Release) -> list[Document]:
        """Render the chart in a folder; `work` is a private folder for our own files. Raises HelmFailure."""
