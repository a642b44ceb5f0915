"""The committed objects of one bucket (one resource), sorted by path.

In: entries as they are committed. Out: one entry in O(1), a range as a list slice. Never: sorts on a read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from argosy.sandbox.store.entries_and_events import StoreEntry, object_path

CHARACTER_AFTER_SLASH = "0"  # the character that follows "/": `ns/` … `ns0` spans exactly the paths of one namespace


class BucketIndex:
    __slots__ = ("_by_path", "_entries", "_paths")

    def __init__(self, entries: Iterable[StoreEntry] = ()) -> None:
        self._by_path: dict[str, StoreEntry] = {object_path(entry.namespace, entry.name): entry for entry in entries}
        self._paths: list[str] = sorted(self._by_path)
        self._entries: list[StoreEntry] = [self._by_path[path] for path in self._paths]

    def get(self, path: str) -> StoreEntry | None:
        return self._by_path.get(path)

    def put(self, path: str, entry: StoreEntry) -> None:
        index = bisect_left(self._paths, path)
        if path in self._by_path:
            self._entries[index] = entry
        else:
            self._paths.insert(index, path)
            self._entries.insert(index, entry)
        self._by_path[path] = entry

    def remove(self, path: str) -> None:
        if self._by_path.pop(path, None) is not None:
            index = bisect_left(self._paths, path)
            del self._paths[index], self._entries[index]

    def find_range(self, namespace: str) -> tuple[int, int]:
        """Index range of a namespace; of all namespaces if `namespace` is empty."""
        if not namespace:
            return 0, len(self._paths)
        low = bisect_left(self._paths, f"{namespace}/")
        return low, bisect_left(self._paths, namespace + CHARACTER_AFTER_SLASH, low)

    def slice(self, low: int, high: int) -> list[StoreEntry]:
        return self._entries[low:high]

    def __len__(self) -> int:
        return len(self._paths)
