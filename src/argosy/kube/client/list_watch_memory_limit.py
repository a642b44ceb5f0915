"""Limits the memory of the lists and watches of one cluster.

In: the size of each page, object and event. Out: ApiServerUnavailable once the total exceeds the limit, Gone if a new
list would measure the real size. Never: inspects the objects; counts an object twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from argosy.errors import Gone
from argosy.kube.client.status_errors import ApiServerUnavailable

MAX_LIST_SHARE: Final = 0.9  # of the limit; the rest is for events, else every event would cause a new list

ObjectName = tuple[str, str]  # namespace and name


class ReadBudget:
    def __init__(self, limit_bytes: int, host: str = "") -> None:
        """`limit` is in bytes of memory; 0: no limit."""
        self._limit, self._host = limit_bytes, host
        self._collections: dict[str, ListSize] = {}
        self.total = 0  # bytes of all collections, including lists in progress

    @property
    def is_limited(self) -> bool:
        return bool(self._limit)

    @contextmanager
    def track_list(self, collection: str) -> Iterator[ListSize]:
        """Count a list in progress. On success it replaces the old size of the collection, else nothing changes."""
        size = ListSize(self, collection)
        try:
            yield size
        except BaseException:
            self.total -= size.total
            raise
        if self._limit:
            self.total -= self.get_size(collection)
            self._collections[collection] = size

    def get_size(self, collection: str) -> int:
        list_size = self._collections.get(collection)
        return list_size.total if list_size else 0

    def add_event(self, collection: str, name: ObjectName, size: int) -> None:
        """Count an added or modified object; its new size replaces its last known size."""
        if not self._limit:
            return
        list_size = self._collections.setdefault(collection, ListSize(self, collection))
        self.total += list_size.replace_object(name, size)
        if self.total > self._limit:
            raise Gone(f"{self._host}: its events exceed the memory limit of this cluster", reason="Expired")

    def remove_object(self, collection: str, name: ObjectName) -> None:
        """Subtract the size of a deleted object."""
        if list_size := self._collections.get(collection):
            self.total += list_size.replace_object(name, 0)

    def add_page(self, size: int, collection: str) -> None:
        if not self._limit:
            return
        self.total += size
        if self.total - self.get_size(collection) > self._limit * MAX_LIST_SHARE:
            raise ApiServerUnavailable(
                f"{self._host}: its objects take more than {self._limit / 2**30:.3g} GiB of memory; exclude kinds by "
                "resource.exclusions, or raise cluster.maxMemory in argosy-cm"
            )


class ListSize:
    """The size in bytes of one collection, while it is listed and while it is watched."""

    def __init__(self, budget: ReadBudget, collection: str) -> None:
        self._budget, self._collection = budget, collection
        self._objects: dict[int, int] = {}  # last known size by hash of the name: names would take more memory
        self.total = 0

    def add(self, size: int) -> None:
        """Count a page. Raises ApiServerUnavailable."""
        if self._budget.is_limited:
            self.total += size
            self._budget.add_page(size, self._collection)

    def add_objects(self, sizes: Mapping[ObjectName, int]) -> None:
        """Record the size of each object of the pages so far."""
        self._objects.update((hash(name), size) for name, size in sizes.items())

    def replace_object(self, name: ObjectName, size: int) -> int:
        """Change the size of an object (0: deleted); returns the growth of the total."""
        key = hash(name)
        growth = size - self._objects.pop(key, 0)
        if size:
            self._objects[key] = size
        self.total += growth
        return growth


UNLIMITED: Final = ReadBudget(0)
