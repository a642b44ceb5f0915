"""One effect of a change on the cluster: its kind, the object and a sentence.

In, out: values. Never: decides which effects a change has.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from argosy.gitops.analysis.repository_view import PathStep


class EffectKind(StrEnum):
    INVALID = "invalid"  # the API server rejects the object
    REFUSED = "refused"  # the API server rejects the change
    RECREATE = "recreate"  # deleted and created again
    RESTART = "restart"
    PRUNE = "prune"  # deleted by a sync that prunes, or with its Application
    STAYS = "stays"  # removed from Git, but not deleted
    MOVES = "moves"  # removed from one Application and added to another
    TRAFFIC = "traffic"
    SCALE = "scale"
    STALE = "stale"  # changed, but running Pods do not notice
    OPEN = "open"  # unknown here whether anything restarts


@dataclass(frozen=True)
class Effect:
    kind: EffectKind
    name: str  # of the object
    text: str
    noun: str = ""  # workload kind or component that restarts
    has_downtime: bool = False
    has_data: bool = False
    path: tuple[PathStep, ...] = ()  # the affected field

    def to_wire(self) -> dict[str, Any]:
        return {"effect": str(self.kind), "object": self.name, "text": self.text}
