"""Caches objects that were fetched because the informer cache does not have them, per Application.

In: keys, each with a version and a fetch function. Out: manifests; each is fetched once per version.
Never: keeps an object that the last comparison of its Application did not need.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest


class Asked(NamedTuple):
    key: ResourceKey
    mark: object  # the object is the same as long as this is equal
    ask: Callable[[], Awaitable[Manifest | None]]


class Answers:
    def __init__(self) -> None:
        self._known: dict[ResourceKey, dict[ResourceKey, tuple[object, Manifest]]] = {}

    async def to(self, app: ResourceKey, asked: Iterable[Asked]) -> dict[ResourceKey, Manifest]:
        """Return the objects that exist; identical manifests as last time for those whose version did not change."""
        before, found = self._known.get(app, {}), dict[ResourceKey, tuple[object, Manifest]]()
        for key, mark, ask in asked:
            known = before.get(key)
            if known is None or known[0] != mark:
                there = await ask()
                known = None if there is None else (mark, there)
            if known is not None:
                found[key] = known
        self.forget(app)
        if found:
            self._known[app] = found
        return {key: there for key, (_, there) in found.items()}

    def forget(self, app: ResourceKey) -> None:
        self._known.pop(app, None)

    def count(self) -> int:
        return sum(map(len, self._known.values()))
