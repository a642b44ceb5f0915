"""Input and output types of one Helm run, for either engine.

In: a chart's options, already read from their tree. Out: frozen values. Never: a path that a user wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from argosy.kube.objects import YamlDialect


class ValuesFile(NamedTuple):
    """The content of a value file; `where` is its name in messages."""

    where: str
    content: bytes


class SetFlag(NamedTuple):
    """One `--set`, `--set-string` or `--set-file`; Helm applies them kind by kind, in this order."""

    kind: Literal["set", "set-string", "set-file"]
    name: str
    value: str  # escaped for Helm; the file's content for set-file


@dataclass(frozen=True, slots=True)
class HelmRelease:
    name: str
    namespace: str = ""
    kube_version: str = ""
    api_versions: Sequence[str] = ()
    values: Sequence[ValuesFile] = ()  # later files win
    settings: Sequence[SetFlag] = ()  # they win over values
    include_crds: bool = True
    skip_hooks: bool = False
    skip_tests: bool = False
    skip_schema_validation: bool = False
    profile: YamlDialect = YamlDialect.KUBERNETES  # how Helm's output is parsed


class HelmDocument(NamedTuple):
    """One rendered object as plain data, and its template as Helm names it: `chart/templates/x.yaml`."""

    source: str
    value: Any


class HelmFailure(Exception):
    """Helm rejected the chart, with Helm's own message; `helm_stderr_error_parser` converts it to a RenderError."""


class HelmEngine(Protocol):
    name: str

    def run(self, chart: Path, work: Path, release: HelmRelease) -> list[HelmDocument]:
        """Render the chart in a folder; `work` is a private folder for our own files. Raises HelmFailure."""
