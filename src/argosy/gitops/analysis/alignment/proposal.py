"""A proposal, as a value: what to change, why, and whether it can be done without asking.

In, out: nothing but values. Never: a value of a field, for that may be a secret.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.gitops.application import IgnoreDifference
from argosy.kube.objects.yaml_edits import Edit


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
    def changes(self) -> bool:
        """Whether something in Git would become different."""
        return self not in (ProposalKind.ACCEPT, ProposalKind.INFORM)


ORDER: Final = tuple(ProposalKind)  # the smallest change first


@dataclass(frozen=True, slots=True)
class Dropped:
    """One pointer or expression of one ignore rule, and why it can go."""

    rule: IgnoreDifference
    pointer: str
    why: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """`fix` is a word or two for a table. `file` is empty for the Application's own, else one of its source's tree."""

    application: str
    kind: ProposalKind
    text: str
    fix: str
    certain: bool = True  # False: only who is responsible can say
    evidence: tuple[str, ...] = field(default=(), compare=False)  # seen again, it is the same proposal
    ignores: tuple[IgnoreDifference, ...] = ()  # to be added
    drops: tuple[Dropped, ...] = ()
    options: tuple[str, ...] = ()  # of the sync, to be added
    ref: str = ""  # to be followed instead
    sets: tuple[Edit, ...] = ()  # other fields of the Application
    file: str = ""
    labels: tuple[str, ...] = ()  # that a kustomization writes into selectors
    on_pods: bool = False  # those that live have them, too
    target: tuple[str, str, str] = ("", "", "")  # group, kind and name of the object that is concerned
    commands: tuple[str, ...] = ()  # what to type where Git alone does not help

    @property
    def mark(self) -> str:
        """`[auto]` where it needs no decision, `[ask]` where it does; nothing where nothing changes."""
        return ("[auto]" if self.certain else "[ask]") if self.kind.changes else ""

    def document(self) -> dict[str, Any]:
        """As data for other programs, without what is empty."""
        told = {
            "application": self.application,
            "kind": self.kind.value,
            "text": self.text,
            "fix": self.fix,
            "certain": self.certain,
            "evidence": list(self.evidence),
            "ignoreDifferences": [rule_wire(each) for each in self.ignores],
            "drop": [{"kind": each.rule.kind, "pointer": each.pointer, "why": each.why} for each in self.drops],
            "syncOptions": list(self.options),
            "targetRevision": self.ref,
            "file": self.file,
            "commands": list(self.commands),
        }
        return {name: value for name, value in told.items() if value not in ("", [])}


def rule_wire(rule: IgnoreDifference) -> dict[str, Any]:
    """As an Application writes it, without what is not said."""
    wire: dict[str, Any] = {"group": rule.group} if rule.group else {}
    wire["kind"] = rule.kind
    wire |= {name: value for name, value in (("name", rule.name), ("namespace", rule.namespace)) if value}
    lists = zip(("jsonPointers", "jqPathExpressions", "managedFieldsManagers"), rule[4:], strict=True)
    return wire | {name: list(values) for name, values in lists if values}
