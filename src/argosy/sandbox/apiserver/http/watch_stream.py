"""Streams a watch: initial objects, then changes and bookmarks, until the timeout or until the client disconnects.

Selectors apply to transitions: an object that leaves the selection is DELETED, one that enters it is ADDED.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import AsyncIterator, Sequence

import orjson

from argosy.errors import ClusterError, Gone
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.http.request import PIECE_BYTES
from argosy.sandbox.apiserver.http.response_encoding import Rendering
from argosy.sandbox.apiserver.listing import Matcher, Query, check_options, matching, parse_version
from argosy.sandbox.store import Entry, Event, Store
from argosy.sandbox.store import Watch as StoreWatch

BOOKMARK_EVERY = 60.0
BOOKMARK_BEFORE_END = 2.0
INITIAL_END = "k8s.io/initial-events-end"
BLUEPRINT = "kubernetes.io/initial-events-list-blueprint"


async def stream(store: Store, rendering: Rendering, namespace: str, query: Query) -> AsyncIterator[bytes]:
    """Errors before the first line are raised and become a status code; later errors become events."""
    check_options(query)
    matcher = Matcher(rendering.served, query)
    since = parse_version(query.version) if query.version else 0
    initial = query.initial_events if query.initial_events is not None else since == 0
    start = store.revision if initial or since == 0 else since
    try:
        changes = store.watch(rendering.served.bucket, since=start)
    except Gone:
        too_old = status_errors.expired(f"too old resource version: {since} ({store.revision})")
        return _single(rendering.error(too_old))
    entries = store.list(rendering.served.bucket, namespace) if initial else ()
    return _lines(store, changes, entries, rendering, matcher, namespace, query, start)


async def _single(line: bytes) -> AsyncIterator[bytes]:
    yield line


async def _lines(
    store: Store,
    changes: StoreWatch,
    entries: Sequence[Entry],
    rendering: Rendering,
    matcher: Matcher,
    namespace: str,
    query: Query,
    start: int,
) -> AsyncIterator[bytes]:
    clock = asyncio.get_running_loop().time
    deadline = clock() + (query.timeout or random.uniform(1800, 3600))  # noqa: S311 - spreads reconnects, no secret
    bookmarks = _Bookmarks(clock(), deadline, enabled=query.bookmarks)
    first = True
    seen = start
    try:
        async for piece in _initial_events(entries, rendering, matcher):
            if store.compacted > start:  # the changes since then could not be read
                yield rendering.error(status_errors.expired(f"too old resource version: {start} ({store.revision})"))
                return
            yield piece
            first = False
        entries = ()
        if query.initial_events and query.bookmarks:
            yield rendering.bookmark(start, {INITIAL_END: "true", BLUEPRINT: _blueprint(rendering)}, first=first)
            first = False
        while (left := deadline - clock()) > 0:
            try:
                async with asyncio.timeout(min(left, bookmarks.due(clock()))):
                    batch = await changes.next_batch()
            except TimeoutError:
                if bookmarks.take(clock()):
                    yield rendering.bookmark(max(seen, changes.position), None, first=first)
                    first = False
                continue
            except Gone as error:
                yield rendering.error(status_errors.expired(error.message))
                return
            except ClusterError as error:  # the history on disk is damaged
                yield rendering.error(error)
                return
            if not batch:
                return
            seen = batch[-1].revision
            lines: list[bytes] = []
            size = 0
            for event in batch:
                if line := _line(event, rendering, matcher, namespace, first=first):
                    first = False
                    lines.append(line)
                    size += len(line)
                if size >= PIECE_BYTES:
                    yield b"".join(lines)
                    lines, size = [], 0
            if lines:
                yield b"".join(lines)
    finally:
        changes.close()


async def _initial_events(entries: Sequence[Entry], rendering: Rendering, matcher: Matcher) -> AsyncIterator[bytes]:
    """ADDED events of existing objects, in chunks; each is built when the previous one was written."""
    lines: list[bytes] = []
    size = 0
    first = True
    async for entry in matching(entries, matcher):
        line = rendering.event("ADDED", entry, first=first)
        first = False
        lines.append(line)
        size += len(line)
        if size >= PIECE_BYTES:
            yield b"".join(lines)
            lines, size = [], 0
            await asyncio.sleep(0)
    if lines:
        yield b"".join(lines)


def _line(event: Event, rendering: Rendering, matcher: Matcher, namespace: str, *, first: bool) -> bytes | None:
    if namespace and event.namespace != namespace:
        return None
    seen = matcher.transition(event)
    return rendering.event(*seen, first=first) if seen else None


class _Bookmarks:
    """Schedule of bookmarks: once a minute, and shortly before the end, so that clients resume from there."""

    def __init__(self, now: float, deadline: float, *, enabled: bool) -> None:
        self._enabled = enabled
        self._last = deadline - BOOKMARK_BEFORE_END
        self._next = min(now + BOOKMARK_EVERY, self._last if self._last > now else now + BOOKMARK_EVERY)

    def due(self, now: float) -> float:
        return max(0.0, self._next - now) if self._enabled else BOOKMARK_EVERY

    def take(self, now: float) -> bool:
        if not self._enabled or now < self._next:
            return False
        self._next = now + BOOKMARK_EVERY
        if now < self._last:
            self._next = min(self._next, self._last)
        return True


def _blueprint(rendering: Rendering) -> str:
    resource = rendering.served.resource
    empty: Manifest = {
        "kind": f"{resource.kind}List",
        "apiVersion": resource.api_version,
        "metadata": {},
        "items": None,
    }
    return base64.b64encode(orjson.dumps(empty) + b"\n").decode()
