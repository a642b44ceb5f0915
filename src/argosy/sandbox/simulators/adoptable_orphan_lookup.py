"""Finds orphans: objects without a controller that match an owner's selector.

In: an owner and a cache. Out: the orphans it may adopt. Never: returns an object that has a controller.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema import selectors
from argosy.sandbox.simulators.owner_references_and_marks import (
    find_controller_reference,
    is_being_deleted,
    is_simulated_by_other_addon,
)

ORPHAN_INDEX_PREFIX: Final = "simulators-orphan"


class OrphanFinder:
    """Remembers which cache has the index, because building the index twice reads every object again."""

    def __init__(self, kind: GroupKind) -> None:
        self._orphan_kind = kind
        self._index_name = f"{ORPHAN_INDEX_PREFIX}-{kind}"
        self._indexed_cache: InformerCache | None = None

    def list_matching(self, owner: Manifest, cache: InformerCache) -> list[Manifest]:
        """List the orphans in the owner's namespace that its selector matches."""
        if self._indexed_cache is not cache:
            cache.add_index(self._index_name, self._index_orphan_by_namespace)
            self._indexed_cache = cache
        orphans = cache.find(self._index_name, owner["metadata"]["namespace"])
        if not orphans:
            return []
        selector = selectors.label_selector_from_wire(owner["spec"].get("selector"))
        return [orphan for orphan in orphans if selector.matches(orphan["metadata"].get("labels"))]

    def _index_orphan_by_namespace(self, manifest: Manifest) -> Iterator[Hashable]:
        key = key_of(manifest)
        is_orphan = (
            find_controller_reference(manifest) is None
            and not is_being_deleted(manifest)
            and not is_simulated_by_other_addon(manifest)
        )
        if key.group_kind == self._orphan_kind and is_orphan:
            yield key.namespace
