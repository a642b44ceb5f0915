"""The nouns that travel through the rooms, in the order in which they come to be.

In, out: nothing but values. Never: logic that a room could hold.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from argosy.gitops.application.file_tree import Tree
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

if TYPE_CHECKING:
    from argosy.gitops.application.step_results.comparison import (
        Assessment,
        Comparison,
        Difference,
        Health,
        Pair,
        SyncStatus,
        Task,
    )

__all__ = [
    "Assessment",
    "Checkout",
    "Comparison",
    "Difference",
    "Health",
    "Input",
    "Origin",
    "Origins",
    "Pair",
    "Rendered",
    "SyncStatus",
    "Task",
]

# What comes after a render is imported on first use: a command that only renders is over by then.
_LATER: Final = frozenset({"Assessment", "Comparison", "Difference", "Health", "Pair", "SyncStatus", "Task"})


@dataclass(frozen=True, slots=True)
class Checkout:
    """A source at one revision: the commit's id, and its files."""

    tree: Tree
    revision: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a field is written, and what that overruled: an overlay's line stands before the base's."""

    file: str
    line: int = 0  # the first is 1; 0 where only the file is known
    repository: str = ""  # that of a remote base; empty for the source's own
    overrules: Origin | None = None


class Origins(Protocol):
    def find(self, key: ResourceKey, pointer: str) -> Origin | None:
        """Where the field at a JSON pointer is written, or else what holds it; None where nobody knows."""


class Input(NamedTuple):
    """Something that a render read. Its place is empty for the source's own tree, else what names another one."""

    place: str
    path: str


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Rendered:
    """What a source asks for. `inputs` are ids of all that was read, empty for what was looked for and is not there."""

    manifests: Sequence[Manifest]
    origins: Origins
    inputs: Mapping[Input, str] = field(default_factory=dict)
    tool: str = ""  # argo: Directory, Helm, Kustomize or Plugin
    notes: tuple[str, ...] = ()  # what may have been meant otherwise, each with its file


def __getattr__(name: str) -> Any:
    if name in _LATER:
        value = getattr(importlib.import_module(f"{__name__}.comparison"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
