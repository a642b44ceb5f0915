"""Finds orphans: objects without a controller that match an owner's selector.

In: an owner and a cache. Out: the orphans it may adopt. Never: returns an object that has a controller.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

from argosy.kube.controller import Cache
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest, key_of
from argosy.kube.schema import selectors
from argosy.sandbox.simulators.constants import is_dying, is_played_by_others, owner_of

INDEX: Final = "simulators-orphan"


class Orphans:
    """Remembers which cache has the index, because building the index twice reads every object again."""

    def __init__(self, kind: GroupKind) -> None:
        self._kind = kind
        self._index = f"{INDEX}-{kind}"
        self._indexed: Cache | None = None

    def fitting(self, owner: Manifest, cache: Cache) -> list[Manifest]:
        """List the orphans in the owner's namespace that its selector matches."""
        if self._indexed is not cache:
            cache.index(self._index, self._places)
            self._indexed = cache
        found = cache.find(self._index, owner["metadata"]["namespace"])
        if not found:
            return []
        selector = selectors.from_label_selector(owner["spec"].get("selector"))
        return [each for each in found if selector.matches(each["metadata"].get("labels"))]

    def _places(self, manifest: Manifest) -> Iterator[Hashable]:
        key = key_of(manifest)
        is_free = owner_of(manifest) is None and not is_dying(manifest) and not is_played_by_others(manifest)
        if key.group_kind == self._kind and is_free:
            yield key.namespace
