"""Bounds the memory that the lists and watches of one cluster take.

In: how much each page and each event takes. Out: Unavailable once all together take more than the limit, Gone where a
new list would tell how much is really there. Never: knows what the objects are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from argosy.cluster.refusals import Unavailable
from argosy.model.errors import Gone

LIST_SHARE: Final = 0.9  # of the limit; the rest is for events, else each would lead to a new list


class ReadBudget:
    def __init__(self, limit: int, host: str = "") -> None:
        """`limit` is in bytes of memory; 0: none."""
        self._limit, self._host = limit, host
        self._held: dict[str, int] = {}  # by collection: its last list and the events since
        self._total = 0  # of all that is held or being listed

    @contextmanager
    def listing(self, collection: str) -> Iterator[ListSize]:
        """What is listed takes the place of what the collection held before. A list that fails changes nothing."""
        size = ListSize(self, self._held.get(collection, 0))
        try:
            yield size
        except BaseException:
            self._total -= size.total if self._limit else 0
            raise
        if self._limit:
            self._total -= self._held.get(collection, 0)
            self._held[collection] = size.total

    def add_event(self, collection: str, size: int) -> None:
        """Events of objects that changed count again each time, so a new list may well find room."""
        if not self._limit:
            return
        self._held[collection] = self._held.get(collection, 0) + size
        self._total += size
        if self._total > self._limit:
            raise Gone(f"{self._host}: its events take more memory than there is for this cluster", reason="Expired")

    def add_page(self, size: int, replaced: int) -> None:
        if not self._limit:
            return
        self._total += size
        if self._total - replaced > self._limit * LIST_SHARE:
            raise Unavailable(
                f"{self._host}: its objects take more than {self._limit / 2**30:.3g} GiB of memory; exclude kinds by "
                "resource.exclusions, or raise cluster.maxMemory in argosy-cm"
            )


class ListSize:
    """The size of one list while its pages come in."""

    def __init__(self, budget: ReadBudget, replaced: int) -> None:
        self._budget, self._replaced = budget, replaced
        self.total = 0

    def add(self, size: int) -> None:
        self.total += size
        self._budget.add_page(size, self._replaced)


UNLIMITED: Final = ReadBudget(0)
