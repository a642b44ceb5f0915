"""What one run of Helm is told, whichever engine runs it, and what it gives.

In: a chart's options, already read from their tree. Out: frozen values. Never: a path that a user wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from argosy.kube.objects import Profile


class ValuesFile(NamedTuple):
    """A file of values, by its content; `where` is what users call it."""

    where: str
    content: bytes


class Setting(NamedTuple):
    """One `--set`, `--set-string` or `--set-file`; Helm applies all of the first kind first, and so on."""

    kind: Literal["set", "set-string", "set-file"]
    name: str
    value: str  # escaped as Helm reads it; the content, for a file


@dataclass(frozen=True, slots=True)
class Release:
    name: str
    namespace: str = ""
    kube_version: str = ""
    api_versions: Sequence[str] = ()
    values: Sequence[ValuesFile] = ()  # the later wins
    settings: Sequence[Setting] = ()  # they win over values
    include_crds: bool = True
    skip_hooks: bool = False
    skip_tests: bool = False
    skip_schema_validation: bool = False
    profile: Profile = Profile.KUBERNETES  # how what Helm made is read


class Document(NamedTuple):
    """What Helm made, as plain data, and the template that it says it is from: `chart/templates/x.yaml`."""

    source: str
    value: Any


class HelmFailed(Exception):
    """Helm refused the chart, in these words; `faults` turns them into an error for users."""


class Engine(Protocol):
    name: str

    def run(self, chart: Path, work: Path, release: Release) -> list[Document]:
        """Renders the chart in a folder; `work` is a private folder for files of our own. Raises HelmFailed."""
