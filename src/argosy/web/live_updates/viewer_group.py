"""Readers of one page with the same permissions: rendered once for all, changes sent to each.

In: fragments of a page, again and again. Out: events, encoded once. Never: waits for a reader; buffers more than a
limit for one.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from argosy.web.live_updates.live_parts import Live
from argosy.web.request import Asked

MOST_WAITING: Final = 32  # events buffered per reader
MOST_BYTES: Final = 4 << 20
KEPT: Final = 16  # events, for readers that reconnect
KEPT_BYTES: Final = 1 << 20
SAY: Final = "say"  # not an element: text for screen readers


class Reader:
    """One open page. `is_late`: it read too slowly and is disconnected; the browser reconnects by itself.

    It counts as a reader at once, but receives events only after `start`, when it gets the initial state.
    """

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._woken = asyncio.Event()
        self.is_over = self.is_late = self._has_begun = False

    def begin(self) -> None:
        self._has_begun = True

    def give(self, event: bytes) -> None:
        if self.is_over or not self._has_begun:
            return
        if len(self._waiting) >= MOST_WAITING or self._size + len(event) > MOST_BYTES:
            self.is_late = True
            self._waiting.clear()
            self._size = 0
            self.end()
            return
        self._waiting.append(event)
        self._size += len(event)
        self._woken.set()

    def end(self, last: bytes = b"") -> None:
        if last and not self.is_over:
            self._waiting.append(last)
        self.is_over = True
        self._woken.set()

    async def next(self) -> bytes | None:
        while not self._waiting:
            if self.is_over:
                return None
            self._woken.clear()
            await self._woken.wait()
        event = self._waiting.popleft()
        self._size -= len(event)
        return event


class Group:
    def __init__(self, name: str, live: Live, asked: Asked) -> None:
        self.name, self.live, self.asked = name, live, asked
        self.readers: dict[Reader, None] = {}
        self.number = 0
        self.is_dirty = asyncio.Event()
        self.is_old = True  # it changed while there were no readers, or a render failed
        self.failures = 0  # failed renders in a row
        self.seen = ""  # time of the last render
        self._turn = asyncio.Lock()
        self._parts: dict[str, str] = {}
        self._digests: dict[str, bytes] = {}
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=KEPT)

    @property
    def id(self) -> str:
        return f"{self.name}.{self.number}"

    async def fresh(self, at: Callable[[], str]) -> None:
        """Render for a new reader if the parts are outdated; other readers get the changes."""
        async with self._turn:
            if self.is_old:
                is_first = not self._digests
                self.is_old = False
                try:
                    changed = await self._render()
                except BaseException:
                    self.is_old = True
                    raise
                self.seen = at()
                if changed and not is_first:
                    self.tell(changed, self.seen)

    async def refresh(self, asked: Asked, at: Callable[[], str]) -> None:
        async with self._turn:
            self.asked = asked
            changed = await self._render()
            self.seen, self.is_old = at(), False
            if changed:
                self.tell(changed, self.seen)

    async def _render(self) -> dict[str, str | None]:
        """Return parts that changed since the last render; None for parts that were removed."""
        found: Mapping[str, str] = await self.live.fragments(self.asked)
        digests = {name: hashlib.blake2b(html.encode(), digest_size=16).digest() for name, html in found.items()}
        changed: dict[str, str | None] = {
            name: found[name] for name, digest in digests.items() if self._digests.get(name) != digest
        }
        changed |= {name: None for name in self._digests if name not in digests}
        self._parts, self._digests = dict(found), digests
        return changed

    def tell(self, parts: Mapping[str, str | None], at: str) -> None:
        """Send changed parts to all readers; encoded once."""
        self.number += 1
        event = self.patch(parts, at)
        if len(event) <= KEPT_BYTES:
            self._kept.append((self.number, event))
        else:
            self._kept.clear()
        for reader in tuple(self.readers):
            reader.give(event)

    def patch(self, parts: Mapping[str, str | None], at: str) -> bytes:
        elements = {name: html for name, html in parts.items() if name != SAY}
        said = {SAY: parts[SAY]} if parts.get(SAY) else {}
        return encoded("patch", {"at": at, "parts": elements, **said}, self.id)

    def whole(self, at: str) -> bytes:
        return self.patch({name: html for name, html in self._parts.items() if name != SAY}, at)

    def since(self, last: str) -> list[bytes] | None:
        """Return the events after the last one that a reader saw; None if they are no longer known."""
        name, _, number = last.rpartition(".")
        if name != self.name or not number.isdecimal() or len(number) > 15:
            return None
        seen = int(number)
        missed = [event for each, event in self._kept if each > seen]
        return missed if seen <= self.number and len(missed) == self.number - seen else None


def encoded(kind: str, data: Any, name: str = "") -> bytes:
    """Encode a server-sent event; JSON has no line breaks."""
    head = f"id: {name}\n".encode() if name else b""
    return b"%sevent: %s\ndata: %s\n\n" % (head, kind.encode(), orjson.dumps(data))
