"""The nouns that travel through the rooms, in the order in which they come to be.

In, out: nothing but values. Never: logic that a room could hold.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from argosy.model.manifest import Manifest
from argosy.model.names import ResourceKey
from argosy.model.tree import Tree


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


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a source asks for. `inputs` are ids of all that was read, empty for what was looked for and is not there."""

    manifests: Sequence[Manifest]
    origins: Origins
    inputs: Mapping[Input, str] = field(default_factory=dict)
    tool: str = ""  # argo: Directory, Helm, Kustomize or Plugin


class Health(enum.StrEnum):
    """How a live manifest fares, best to worst, in Argo CD's spelling."""

    HEALTHY = "Healthy"
    SUSPENDED = "Suspended"
    PROGRESSING = "Progressing"
    MISSING = "Missing"
    DEGRADED = "Degraded"
    UNKNOWN = "Unknown"

    def is_worse_than(self, other: Health) -> bool:
        return _WORSE[self] > _WORSE[other]


_WORSE = {health: place for place, health in enumerate(Health)}


@dataclass(frozen=True, slots=True)
class Assessment:
    """What came of judging one live manifest. A kind that has no health gives None instead."""

    health: Health | None  # argo: None is its empty health: a script that returned nil or an empty table
    message: str = ""
    rule: str = ""  # which rule judged
    fault: str = ""  # why the rule itself failed; health is then Unknown
