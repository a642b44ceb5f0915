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

from argosy.web.live_updates.live_page_definitions import LivePage
from argosy.web.request import RequestContext

MAX_BUFFERED_EVENTS: Final = 32  # events buffered per reader
MAX_BUFFERED_BYTES: Final = 4 << 20
MAX_REPLAY_EVENTS: Final = 16  # events, for readers that reconnect
MAX_REPLAY_EVENT_BYTES: Final = 1 << 20
ANNOUNCEMENT_KEY: Final = "say"  # not an element: text for screen readers


class PageViewer:
    """One open page. `is_late`: it read too slowly and is disconnected; the browser reconnects by itself.

    It counts as a reader at once, but receives events only after `start`, when it gets the initial state.
    """

    def __init__(self, request: RequestContext) -> None:
        self.asked = request
        self._buffer: deque[bytes] = deque()
        self._size = 0
        self._wake_event = asyncio.Event()
        self.is_closed = self.is_late = self._has_begun = False

    def start(self) -> None:
        self._has_begun = True

    def send(self, event: bytes) -> None:
        if self.is_closed or not self._has_begun:
            return
        if len(self._buffer) >= MAX_BUFFERED_EVENTS or self._size + len(event) > MAX_BUFFERED_BYTES:
            self.is_late = True
            self._buffer.clear()
            self._size = 0
            self.disconnect()
            return
        self._buffer.append(event)
        self._size += len(event)
        self._wake_event.set()

    def disconnect(self, last: bytes = b"") -> None:
        if last and not self.is_closed:
            self._buffer.append(last)
        self.is_closed = True
        self._wake_event.set()

    async def next(self) -> bytes | None:
        while not self._buffer:
            if self.is_closed:
                return None
            self._wake_event.clear()
            await self._wake_event.wait()
        event = self._buffer.popleft()
        self._size -= len(event)
        return event


class ViewerGroup:
    def __init__(self, name: str, live: LivePage, request: RequestContext) -> None:
        self.name, self.live, self.asked = name, live, request
        self.readers: dict[PageViewer, None] = {}
        self.number = 0
        self.is_dirty = asyncio.Event()
        self.is_outdated = True  # it changed while there were no readers, or a render failed
        self.failures = 0  # failed renders in a row
        self.rendered_at = ""  # time of the last render
        self._lock = asyncio.Lock()
        self._parts: dict[str, str] = {}
        self._digests: dict[str, bytes] = {}
        self._replay_events: deque[tuple[int, bytes]] = deque(maxlen=MAX_REPLAY_EVENTS)

    @property
    def id(self) -> str:
        return f"{self.name}.{self.number}"

    async def ensure_rendered(self, get_time: Callable[[], str]) -> None:
        """Render for a new reader if the parts are outdated; other readers get the changes."""
        async with self._lock:
            if self.is_outdated:
                is_first = not self._digests
                self.is_outdated = False
                try:
                    changed = await self._render()
                except BaseException:
                    self.is_outdated = True
                    raise
                self.rendered_at = get_time()
                if changed and not is_first:
                    self.send_changes(changed, self.rendered_at)

    async def render_changes(self, request: RequestContext, get_time: Callable[[], str]) -> None:
        async with self._lock:
            self.asked = request
            changed = await self._render()
            self.rendered_at, self.is_outdated = get_time(), False
            if changed:
                self.send_changes(changed, self.rendered_at)

    async def _render(self) -> dict[str, str | None]:
        """Return parts that changed since the last render; None for parts that were removed."""
        fragments: Mapping[str, str] = await self.live.fragments(self.asked)
        digests = {name: hashlib.blake2b(html.encode(), digest_size=16).digest() for name, html in fragments.items()}
        changed: dict[str, str | None] = {
            name: fragments[name] for name, digest in digests.items() if self._digests.get(name) != digest
        }
        changed |= {name: None for name in self._digests if name not in digests}
        self._parts, self._digests = dict(fragments), digests
        return changed

    def send_changes(self, parts: Mapping[str, str | None], rendered_at: str) -> None:
        """Send changed parts to all readers; encoded once."""
        self.number += 1
        event = self.encode_patch(parts, rendered_at)
        if len(event) <= MAX_REPLAY_EVENT_BYTES:
            self._replay_events.append((self.number, event))
        else:
            self._replay_events.clear()
        for reader in tuple(self.readers):
            reader.send(event)

    def encode_patch(self, parts: Mapping[str, str | None], rendered_at: str) -> bytes:
        elements = {name: html for name, html in parts.items() if name != ANNOUNCEMENT_KEY}
        announcement = {ANNOUNCEMENT_KEY: parts[ANNOUNCEMENT_KEY]} if parts.get(ANNOUNCEMENT_KEY) else {}
        return encode_event("patch", {"at": rendered_at, "parts": elements, **announcement}, self.id)

    def encode_all_parts(self, rendered_at: str) -> bytes:
        return self.encode_patch(
            {name: html for name, html in self._parts.items() if name != ANNOUNCEMENT_KEY}, rendered_at
        )

    def find_missed_events(self, last: str) -> list[bytes] | None:
        """Return the events after the last one that a reader saw; None if they are no longer known."""
        name, _, number = last.rpartition(".")
        if name != self.name or not number.isdecimal() or len(number) > 15:
            return None
        last_number = int(number)
        missed = [event for event_number, event in self._replay_events if event_number > last_number]
        return missed if last_number <= self.number and len(missed) == self.number - last_number else None


def encode_event(kind: str, data: Any, name: str = "") -> bytes:
    """Encode a server-sent event; JSON has no line breaks."""
    header = f"id: {name}\n".encode() if name else b""
    return b"%sevent: %s\ndata: %s\n\n" % (header, kind.encode(), orjson.dumps(data))
