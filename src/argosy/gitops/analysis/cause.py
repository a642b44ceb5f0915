"""Why a field differs, as a value: what kind of cause, in a sentence, where it is written, by whom, and what to type.

In, out: nothing but values. Never: holds a value of a field, for that may be a secret.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Final


class CauseKind(enum.StrEnum):
    YOUR_CHANGE = "YourChange"
    DEFAULTING = "Defaulting"
    WEBHOOK = "Webhook"
    OTHER_CONTROLLER = "OtherController"
    IMMUTABLE = "Immutable"
    REFUSED = "Refused"
    OTHER_REVISION = "OtherRevision"  # compared with, though the Application does not follow it
    STALE_BRANCH = "StaleBranch"
    MISSING_CRD = "MissingCRD"
    UNKNOWN_FIELD = "UnknownField"
    PRUNE = "Prune"
    DELETED = "Deleted"
    AS_ASKED = "AsAsked"  # of a field that does not differ
    UNKNOWN = "Unknown"

    @property
    def words(self) -> str:
        return _WORDS[self]

    @property
    def wants_more(self) -> bool:
        """Whether a sync alone is no good answer to it."""
        return self in _WANTS_MORE


_WORDS: Final = {
    CauseKind.YOUR_CHANGE: "your change",
    CauseKind.DEFAULTING: "a default",
    CauseKind.WEBHOOK: "a webhook",
    CauseKind.OTHER_CONTROLLER: "somebody else",
    CauseKind.IMMUTABLE: "immutable",
    CauseKind.REFUSED: "refused",
    CauseKind.OTHER_REVISION: "another revision",
    CauseKind.STALE_BRANCH: "stale branch",
    CauseKind.MISSING_CRD: "missing CRD",
    CauseKind.UNKNOWN_FIELD: "unknown field",
    CauseKind.PRUNE: "to be pruned",
    CauseKind.DELETED: "deleted in the cluster",
    CauseKind.AS_ASKED: "as asked",
    CauseKind.UNKNOWN: "unknown",
}


_WANTS_MORE: Final = frozenset(
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


# k8s: what people write with names itself so; argo: whoever edits in its page writes as argocd-server
_HANDS: Final = ("kubectl", "Mozilla", "k9s", "Lens", "OpenLens", "headlamp")
_HANDS_WHOLE: Final = frozenset({"oc", "argocd-server"})  # ocs-operator is no hand


def is_by_hand(manager: str) -> bool:
    """Whether it is a tool that a person held."""
    return manager.startswith(_HANDS) or manager in _HANDS_WHOLE


@dataclass(frozen=True, slots=True)
class Cause:
    """`next` is what to type or to do; where nothing is known of a part, it is empty."""

    kind: CauseKind
    text: str
    next: str = ""
    file: str = ""
    line: int = 0
    repository: str = ""  # of a remote base; empty for the source's own
    revision: str = ""  # the commit that wrote the line
    author: str = ""
    subject: str = ""  # what the commit says
    manager: str = ""  # who wrote the live value, by managedFields
    at: str = ""  # and when
    is_asked_anew: bool = False  # Git has changed it since the last sync: somebody wants it so

    @property
    def place(self) -> str:
        """`file:line`, as editors take it."""
        line = f":{self.line}" if self.line else ""
        return f"{self.repository}{'//' if self.repository else ''}{self.file}{line}" if self.file else ""

    @property
    def commit(self) -> str:
        """`a1b2c3d Ann "Raise the limit"`."""
        said = f'"{self.subject}"' if self.subject else ""
        return " ".join(filter(None, (self.revision[:7], self.author, said))) if self.revision else ""

    def document(self) -> dict[str, Any]:
        """As data for other programs, without what is not known."""
        names = ("file", "line", "repository", "revision", "author", "subject", "manager", "at", "next")
        known = {name: value for name in names if (value := getattr(self, name))}
        return {"kind": self.kind.value, "text": self.text, **known}
