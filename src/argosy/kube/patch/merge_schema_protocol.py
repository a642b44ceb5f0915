"""Protocol for merge schemas: whether a field is a scalar, a map or a list, and how it merges.

`kube.schema` implements it for built-in and custom kinds, so this package does not import `kube.schema`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

ShapeKind = Literal["scalar", "struct", "map", "list", "untyped"]
ListType = Literal["atomic", "set", "map"]


class Shape(Protocol):
    """Merge schema of one type. `untyped` is free-form JSON: its maps are granular, its lists atomic."""

    @property
    def kind(self) -> ShapeKind: ...

    @property
    def atomic(self) -> bool:
        """True if a map or struct has one owner as a whole (x-kubernetes-map-type: atomic)."""

    @property
    def list_type(self) -> ListType: ...

    @property
    def map_keys(self) -> Sequence[str]:
        """Key fields of a list of type `map` (x-kubernetes-list-map-keys)."""

    @property
    def merge_key(self) -> str:
        """Strategic merge: the merge key of this list's elements, or "" (x-kubernetes-patch-merge-key)."""

    @property
    def strategies(self) -> Sequence[str]:
        """Strategic merge: any of `merge`, `replace`, `retainKeys` (x-kubernetes-patch-strategy)."""

    def field(self, name: str) -> Shape | None:
        """Return the shape of a struct's field, None if it is not declared. A map returns the shape of its values."""

    def items(self) -> Shape:
        """Return the shape of a list's elements."""

    def key_default(self, name: str) -> object:
        """Return the default of an element's key field (ports: protocol TCP), None if it has none."""
