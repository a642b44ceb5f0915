"""What a cluster was asked for beside its cache: answers, kept for each application as long as its looks need them.

In: keys, each with a mark of its state and how it is asked for. Out: manifests; each is asked for once for each mark.
Never: keeps an answer that the last look of its application did not need.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest


class Asked(NamedTuple):
    key: ResourceKey
    mark: object  # as long as it is the same, so is the answer
    ask: Callable[[], Awaitable[Manifest | None]]


class Answers:
    def __init__(self) -> None:
        self._known: dict[ResourceKey, dict[ResourceKey, tuple[object, Manifest]]] = {}

    async def to(self, app: ResourceKey, asked: Iterable[Asked]) -> dict[ResourceKey, Manifest]:
        """Of those that have an answer. The very same manifests as last time, where nothing has changed."""
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
