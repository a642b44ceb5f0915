"""Objects of one Application that were fetched because the informer cache does not have them.

In: keys, each with a version and a fetch function. Out: manifests; each is fetched once per version.
Never: keeps an object that the last comparison of the Application did not need.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey


class ObjectFetch(NamedTuple):
    key: ResourceKey
    version: object  # the object is the same as long as this is equal
    fetch: Callable[[], Awaitable[Manifest | None]]


class FetchedObjects:
    __slots__ = ("_cached",)

    def __init__(self) -> None:
        self._cached: dict[ResourceKey, tuple[object, Manifest]] = {}

    def __len__(self) -> int:
        return len(self._cached)

    async def fetch_all(self, fetches: Iterable[ObjectFetch]) -> dict[ResourceKey, Manifest]:
        """Return the objects that exist; identical manifests as last time for those whose version did not change."""
        fetched: dict[ResourceKey, tuple[object, Manifest]] = {}
        for key, version, fetch in fetches:
            entry = self._cached.get(key)
            if entry is None or entry[0] != version:
                manifest = await fetch()
                entry = None if manifest is None else (version, manifest)
            if entry is not None:
                fetched[key] = entry
        self._cached = fetched
        return {key: manifest for key, (_, manifest) in fetched.items()}
