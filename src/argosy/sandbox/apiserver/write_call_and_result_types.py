"""Values of a registry call: the caller and its options, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from argosy.kube.client import User
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind
from argosy.sandbox.store import StoreEntry

ADMIN = User("admin", ("system:masters", "system:authenticated"), uid="admin")
FieldValidation = Literal["Ignore", "Warn", "Strict"]


@dataclass(frozen=True, slots=True)
class RegistryCall:
    """The user and the options of a write."""

    user: User = ADMIN
    field_manager: str = "unknown"
    dry_run: bool = False
    validation: FieldValidation = "Warn"
    force: bool = False
    duplicates: tuple[str, ...] = ()  # fields that occur twice in the body
    body_bytes: int = 0  # of the request body: decides whether the work runs off the loop


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The object after the call. `entry` of a dry run was never stored."""

    served: ApiKind
    entry: StoreEntry
    is_created: bool = False
    warnings: Sequence[str] = ()

    @property
    def manifest(self) -> Manifest:
        return self.served.read_entry(self.entry)
