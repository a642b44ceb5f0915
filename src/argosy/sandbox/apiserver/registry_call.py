"""A call to the registry: who writes and how; and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from argosy.kube.client import User
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.served_kind import Served
from argosy.sandbox.store import Entry

ADMIN = User("admin", ("system:masters", "system:authenticated"), uid="admin")
Validation = Literal["Ignore", "Warn", "Strict"]


@dataclass(frozen=True, slots=True)
class Call:
    """Who writes, and how."""

    user: User = ADMIN
    manager: str = "unknown"
    dry_run: bool = False
    validation: Validation = "Warn"
    force: bool = False
    duplicates: tuple[str, ...] = ()  # fields that the text named twice
    size: int = 0  # bytes of what was sent: decides whether the loop waits for the work on it


@dataclass(frozen=True, slots=True)
class Written:
    """An object as it is after the call. `entry` of a dry run was never stored."""

    served: Served
    entry: Entry
    created: bool = False
    warnings: Sequence[str] = ()

    @property
    def manifest(self) -> Manifest:
        return self.served.read(self.entry)
