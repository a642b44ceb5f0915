"""The cause of a differing field: its kind, a sentence, the line in Git, the writer, and the next command.

In, out: values. Never: holds a field's value, because it may be a secret.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Final


class CauseKind(enum.StrEnum):
    GIT_CHANGE = "YourChange"
    DEFAULTING = "Defaulting"
    WEBHOOK = "Webhook"
    OTHER_CONTROLLER = "OtherController"
    IMMUTABLE = "Immutable"
    REFUSED = "Refused"
    OTHER_REVISION = "OtherRevision"  # compared with a revision that the Application does not follow
    STALE_BRANCH = "StaleBranch"
    MISSING_CRD = "MissingCRD"
    UNKNOWN_FIELD = "UnknownField"
    PRUNE = "Prune"
    DELETED = "Deleted"
    MATCHES_GIT = "AsAsked"  # of a field that does not differ
    UNKNOWN = "Unknown"

    @property
    def label(self) -> str:
        return _LABELS[self]

    @property
    def needs_more_than_sync(self) -> bool:
        """True if a sync alone does not resolve the difference."""
        return self in _NOT_FIXED_BY_SYNC


_LABELS: Final = {
    CauseKind.GIT_CHANGE: "Git change",
    CauseKind.DEFAULTING: "a default",
    CauseKind.WEBHOOK: "a webhook",
    CauseKind.OTHER_CONTROLLER: "drift",
    CauseKind.IMMUTABLE: "immutable",
    CauseKind.REFUSED: "refused",
    CauseKind.OTHER_REVISION: "another revision",
    CauseKind.STALE_BRANCH: "stale branch",
    CauseKind.MISSING_CRD: "missing CRD",
    CauseKind.UNKNOWN_FIELD: "unknown field",
    CauseKind.PRUNE: "to be pruned",
    CauseKind.DELETED: "deleted in the cluster",
    CauseKind.MATCHES_GIT: "matches Git",
    CauseKind.UNKNOWN: "unknown",
}


_NOT_FIXED_BY_SYNC: Final = frozenset(
    {
        CauseKind.DEFAULTING,
        CauseKind.WEBHOOK,
        CauseKind.IMMUTABLE,
        CauseKind.REFUSED,
        CauseKind.STALE_BRANCH,
        CauseKind.MISSING_CRD,
        CauseKind.UNKNOWN_FIELD,
    }
)


# k8s: field managers of tools that people use; argo: edits made in its web page are written as argocd-server
_INTERACTIVE_CLIENT_PREFIXES: Final = ("kubectl", "Mozilla", "k9s", "Lens", "OpenLens", "headlamp")
_INTERACTIVE_CLIENTS: Final = frozenset({"oc", "argocd-server"})  # ocs-operator is not a person, hence no prefix match


def is_interactive_client(manager: str) -> bool:
    """True if the field manager is a tool that a person used interactively."""
    return manager.startswith(_INTERACTIVE_CLIENT_PREFIXES) or manager in _INTERACTIVE_CLIENTS


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a field differs. `next` is the command to type or the action to take; unknown parts are empty."""

    kind: CauseKind
    text: str
    next: str = ""
    file: str = ""
    line: int = 0
    repository: str = ""  # of a remote base; empty for the source's own
    revision: str = ""  # the commit that wrote the line
    author: str = ""
    subject: str = ""  # first line of the commit message
    manager: str = ""  # field manager that wrote the live value
    at: str = ""  # time of that write
    has_changed_in_git: bool = False  # Git changed the field since the last sync, so the new value is intended

    @property
    def labeled_text(self) -> str:
        """The text after the label of its kind. Texts about a change in Git say so themselves."""
        return self.text if self.kind is CauseKind.GIT_CHANGE else f"{self.kind.label}: {self.text}"

    @property
    def location(self) -> str:
        """`file:line`, as editors accept it; empty if the file is unknown."""
        line = f":{self.line}" if self.line else ""
        return f"{self.repository}{'//' if self.repository else ''}{self.file}{line}" if self.file else ""

    @property
    def commit_summary(self) -> str:
        """`a1b2c3d Ann "Raise the limit"`."""
        quoted_subject = f'"{self.subject}"' if self.subject else ""
        return " ".join(filter(None, (self.revision[:7], self.author, quoted_subject))) if self.revision else ""

    def to_wire(self) -> dict[str, Any]:
        """Data for JSON and YAML output, without unknown parts."""
        names = ("file", "line", "repository", "revision", "author", "subject", "manager", "at", "next")
        known_fields = {name: value for name in names if (value := getattr(self, name))}
        return {"kind": self.kind.value, "text": self.text, **known_fields}
