"""What a patch must know of a field: is it a scalar, a map or a list, and how do two writers share it.

`schema` supplies shapes for built-in kinds and for custom ones; this room only asks, so it imports no schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

ShapeKind = Literal["scalar", "struct", "map", "list", "untyped"]
ListType = Literal["atomic", "set", "map"]


class Shape(Protocol):
    """One type. `untyped` is free JSON: its maps are granular, its lists atomic."""

    @property
    def kind(self) -> ShapeKind: ...

    @property
    def atomic(self) -> bool:
        """A map or struct that has one owner as a whole (x-kubernetes-map-type: atomic)."""

    @property
    def list_type(self) -> ListType: ...

    @property
    def map_keys(self) -> Sequence[str]:
        """Keys of a `map` list (x-kubernetes-list-map-keys)."""

    @property
    def merge_key(self) -> str:
        """Strategic merge: the key of this list's elements, "" if none (x-kubernetes-patch-merge-key)."""

    @property
    def strategies(self) -> Sequence[str]:
        """Strategic merge: of `merge`, `replace`, `retainKeys` (x-kubernetes-patch-strategy)."""

    def field(self, name: str) -> Shape | None:
        """The shape of a struct's field; None where the schema does not declare it. A map gives its values' shape."""

    def items(self) -> Shape:
        """The shape of a list's elements."""

    def key_default(self, name: str) -> object:
        """The default of an element's key field (ports: protocol TCP), None if it has none."""
