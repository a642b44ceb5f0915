"""A proposal: what to change, why, and whether it can be done without asking.

In, out: values. Never: a field's value, because it may be a secret.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.gitops.application import IgnoreDifference
from argosy.kube.objects.yaml_edits import YamlEdit


class ProposalKind(enum.StrEnum):
    IGNORE = "Ignore"
    SYNC_OPTION = "SyncOption"
    DROP = "Drop"
    BRANCH = "Branch"
    SELECTORS = "Selectors"
    RECREATE = "Recreate"
    ACCEPT = "Accept"
    INFORM = "Inform"

    @property
    def changes_git(self) -> bool:
        """True if the proposal changes something in Git."""
        return self not in (ProposalKind.ACCEPT, ProposalKind.INFORM)


PROPOSAL_ORDER: Final = tuple(ProposalKind)  # smallest change first
DECISION_TAG_LEGEND: Final = "[auto]: the fix needs no decision; [ask]: you decide"


@dataclass(frozen=True, slots=True)
class DroppedPointer:
    """A pointer or jq expression of an ignore rule that can be removed, and why."""

    rule: IgnoreDifference
    pointer: str
    reason: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """`fix` is a word or two for a table. `file` is empty for the Application's manifest, else a file of its source."""

    application: str
    kind: ProposalKind
    text: str
    fix: str
    certain: bool = True  # False: a person must decide
    evidence: tuple[str, ...] = field(default=(), compare=False)  # not part of a proposal's identity
    ignores: tuple[IgnoreDifference, ...] = ()  # to be added
    drops: tuple[DroppedPointer, ...] = ()
    options: tuple[str, ...] = ()  # sync options to be added
    ref: str = ""  # the ref to follow instead
    sets: tuple[YamlEdit, ...] = ()  # other fields of the Application
    file: str = ""
    labels: tuple[str, ...] = ()  # labels that a kustomization writes into selectors
    on_pods: bool = False  # the live Pods have the labels, too
    target: tuple[str, str, str] = ("", "", "")  # group, kind and name of the affected object
    commands: tuple[str, ...] = ()  # commands to type if a change in Git is not enough

    @property
    def decision_tag(self) -> str:
        """`[auto]` if no decision is needed, `[ask]` if one is; empty if nothing changes."""
        return ("[auto]" if self.certain else "[ask]") if self.kind.changes_git else ""

    def to_wire(self) -> dict[str, Any]:
        """Data for JSON and YAML output, without empty values."""
        fields = {
            "application": self.application,
            "kind": self.kind.value,
            "text": self.text,
            "fix": self.fix,
            "certain": self.certain,
            "evidence": list(self.evidence),
            "ignoreDifferences": [ignore_rule_to_wire(entry) for entry in self.ignores],
            "drop": [{"kind": entry.rule.kind, "pointer": entry.pointer, "why": entry.reason} for entry in self.drops],
            "syncOptions": list(self.options),
            "targetRevision": self.ref,
            "file": self.file,
            "commands": list(self.commands),
        }
        return {name: value for name, value in fields.items() if value not in ("", [])}


def ignore_rule_to_wire(rule: IgnoreDifference) -> dict[str, Any]:
    """Convert to the format of an Application, without empty values."""
    wire: dict[str, Any] = {"group": rule.group} if rule.group else {}
    wire["kind"] = rule.kind
    wire |= {name: value for name, value in (("name", rule.name), ("namespace", rule.namespace)) if value}
    lists = zip(("jsonPointers", "jqPathExpressions", "managedFieldsManagers"), rule[4:], strict=True)
    return wire | {name: list(values) for name, values in lists if values}
