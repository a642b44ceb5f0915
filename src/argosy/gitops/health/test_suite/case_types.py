"""Test cases and their results, as values. Never: reads a file or runs a script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

from argosy.gitops.health.actions import ResourceAction
from argosy.kube.objects import Manifest

SuiteName = Literal["health", "action", "discovery"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTestCase:
    """One row of a test file; group and kind are those of its folder. A case with a `problem` is not run."""

    suite: ClassVar[SuiteName] = "health"

    group: str
    kind: str
    name: str
    folder: str = ""  # of the test file, relative to the tree; paths in the file are relative to it
    input: str = ""
    manifest: Manifest | None = None  # instead of an input
    facts: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthTestCase(RuleTestCase):
    """Status and message must be equal; status None means no expectation."""

    suite: ClassVar[SuiteName] = "health"

    status: str | None = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryTestCase(RuleTestCase):
    """Every action that the script returns must be one of these."""

    suite: ClassVar[SuiteName] = "discovery"

    actions: tuple[ResourceAction, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionTestCase(RuleTestCase):
    """The action must produce the content of the output file, or fail with this error."""

    suite: ClassVar[SuiteName] = "action"

    action: str = ""
    output: str = ""
    error: str = ""
    params: Mapping[str, str] = field(default_factory=dict)


class ScriptLookup(Protocol):
    """Finds the script for a kind. Raises UserError if there is none."""

    def find_health_script(self, group: str, kind: str) -> str: ...

    def find_discovery_script(self, group: str, kind: str) -> str: ...

    def find_action_script(self, group: str, kind: str, name: str) -> str: ...


class CaseInputs(Protocol):
    """Reads the files of a case. Raises UserError for an unreadable one."""

    def load_document(self, folder: str, path: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class RuleTestSuite:
    """All cases of a folder, with access to their scripts and files. `notes` lists rules that are not tested."""

    cases: tuple[RuleTestCase, ...]
    scripts: ScriptLookup = field(repr=False)
    inputs: CaseInputs = field(repr=False)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Result of a case; `expected` and `got` are JSON data whose form depends on the suite."""

    case: RuleTestCase
    ok: bool
    expected: Any = None
    got: Any = None

    def to_wire(self) -> dict[str, Any]:
        case = self.case
        identity = {"suite": case.suite, "group": case.group, "kind": case.kind, "name": case.name}
        return identity | {"ok": self.ok, "expected": self.expected, "got": self.got}
