"""The values that steps of the reconciler hand on, in the order in which they are created.

In, out: values only. Never: logic that belongs to a step.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey

if TYPE_CHECKING:
    from argosy.gitops.application.step_results.comparison_task_health_types import (
        AppComparison,
        Assessment,
        FieldDifference,
        HealthStatus,
        Pair,
        PlannedTask,
        SyncStatus,
    )

__all__ = [
    "AppComparison",
    "Assessment",
    "Checkout",
    "FieldDifference",
    "FieldOrigin",
    "FieldOrigins",
    "HealthStatus",
    "Pair",
    "PlannedTask",
    "RenderInput",
    "RenderResult",
    "SyncStatus",
]

# Imported on first use, because a command that only renders does not need them.
_LAZY_NAMES: Final = frozenset(
    {"Assessment", "AppComparison", "FieldDifference", "HealthStatus", "Pair", "SyncStatus", "PlannedTask"}
)


@dataclass(frozen=True, slots=True)
class Checkout:
    """A source at one revision: the commit ID and its files."""

    tree: FileTree
    revision: str


@dataclass(frozen=True, slots=True)
class FieldOrigin:
    """The file and line of a field, and the origin that it overrides: an overlay comes before its base."""

    file: str
    line: int = 0  # starts at 1; 0 if only the file is known
    repository: str = ""  # of a remote base; empty for the source's own repository
    overrides: FieldOrigin | None = None


class FieldOrigins(Protocol):
    def find(self, key: ResourceKey, pointer: str) -> FieldOrigin | None:
        """Return where the field at a JSON pointer, or its nearest ancestor, is written; None if unknown."""


class RenderInput(NamedTuple):
    """A file or variable that a render read. `scope` is empty for the source's own tree, else it names another one."""

    scope: str
    path: str


@dataclass(frozen=True, slots=True, weakref_slot=True)
class RenderResult:
    """The manifests of a source. `inputs` are the IDs of everything that was read, empty for missing files."""

    manifests: Sequence[Manifest]
    origins: FieldOrigins
    inputs: Mapping[RenderInput, str] = field(default_factory=dict)
    tool: str = ""  # argo: Directory, Helm, Kustomize or Plugin
    warnings: tuple[str, ...] = ()  # likely mistakes, each with its file


def __getattr__(name: str) -> Any:
    if name in _LAZY_NAMES:
        value = getattr(importlib.import_module(f"{__name__}.comparison_task_health_types"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
