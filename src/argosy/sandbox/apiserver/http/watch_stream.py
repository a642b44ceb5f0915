"""Streams a watch: initial objects, then changes and bookmarks, until the timeout or until the client disconnects.

Selectors apply to transitions: an object that leaves the selection is DELETED, one that enters it is ADDED.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import AsyncIterator, Iterator, Sequence

import orjson

from argosy.errors import ClusterError, Gone
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.http.request_and_response_io import WRITE_CHUNK_BYTES
from argosy.sandbox.apiserver.http.response_encoding import ResponseEncoder
from argosy.sandbox.apiserver.listing import (
    ListOptions,
    SelectorMatcher,
    check_list_options,
    filter_entries,
    parse_resource_version,
)
from argosy.sandbox.store import BucketWatch as StoreWatch
from argosy.sandbox.store import Store, StoreEntry, StoreEvent

BOOKMARK_INTERVAL_SECONDS = 60.0
LAST_BOOKMARK_LEAD_SECONDS = 2.0
INITIAL_EVENTS_END_ANNOTATION = "k8s.io/initial-events-end"
BLUEPRINT_ANNOTATION = "kubernetes.io/initial-events-list-blueprint"


async def open_watch_stream(
    store: Store, encoder: ResponseEncoder, namespace: str, options: ListOptions
) -> AsyncIterator[bytes]:
    """Errors before the first line are raised and become a status code; later errors become events."""
    check_list_options(options)
    matcher = SelectorMatcher(encoder.served, options)
    since = parse_resource_version(options.version) if options.version else 0
    initial = options.send_initial_events if options.send_initial_events is not None else since == 0
    start = store.revision if initial or since == 0 else since
    try:
        watch = store.watch(encoder.served.bucket, since=start)
    except Gone:
        too_old = status_errors.expired(f"too old resource version: {since} ({store.revision})")
        return _yield_line(encoder.encode_error(too_old))
    entries = store.list(encoder.served.bucket, namespace) if initial else ()
    return _stream_lines(store, watch, entries, encoder, matcher, namespace, options, start)


async def _yield_line(line: bytes) -> AsyncIterator[bytes]:
    yield line


async def _stream_lines(
    store: Store,
    watch: StoreWatch,
    entries: Sequence[StoreEntry],
    encoder: ResponseEncoder,
    matcher: SelectorMatcher,
    namespace: str,
    options: ListOptions,
    start_revision: int,
) -> AsyncIterator[bytes]:
    clock = asyncio.get_running_loop().time
    deadline = clock() + (options.timeout_seconds or random.uniform(1800, 3600))  # noqa: S311 - spreads reconnects, no secret
    bookmarks = _BookmarkSchedule(clock(), deadline, enabled=options.allow_bookmarks)
    is_first = True
    last_revision = start_revision
    try:
        async for chunk in _stream_initial_events(entries, encoder, matcher):
            if store.compacted > start_revision:  # the changes since then could not be read
                yield encoder.encode_error(
                    status_errors.expired(f"too old resource version: {start_revision} ({store.revision})")
                )
                return
            yield chunk
            is_first = False
        entries = ()
        if options.send_initial_events and options.allow_bookmarks:
            yield encoder.encode_bookmark(
                start_revision,
                {INITIAL_EVENTS_END_ANNOTATION: "true", BLUEPRINT_ANNOTATION: _build_list_blueprint(encoder)},
                is_first=is_first,
            )
            is_first = False
        while (seconds_left := deadline - clock()) > 0:
            try:
                async with asyncio.timeout(min(seconds_left, bookmarks.seconds_until_due(clock()))):
                    batch = await watch.next_batch()
            except TimeoutError:
                if bookmarks.take_if_due(clock()):
                    yield encoder.encode_bookmark(max(last_revision, watch.position), None, is_first=is_first)
                    is_first = False
                continue
            except Gone as error:
                yield encoder.encode_error(status_errors.expired(error.message))
                return
            except ClusterError as error:  # the history on disk is damaged
                yield encoder.encode_error(error)
                return
            if not batch:
                return
            last_revision = batch[-1].revision
            for chunk in _encode_batch(batch, encoder, matcher, namespace, is_first=is_first):
                yield chunk
                is_first = False
    finally:
        watch.close()


async def _stream_initial_events(
    entries: Sequence[StoreEntry], encoder: ResponseEncoder, matcher: SelectorMatcher
) -> AsyncIterator[bytes]:
    """ADDED events of existing objects, in chunks; each is built when the previous one was written."""
    lines: list[bytes] = []
    chunk_bytes = 0
    is_first = True
    async for entry in filter_entries(entries, matcher):
        line = encoder.encode_event("ADDED", entry, is_first=is_first)
        is_first = False
        lines.append(line)
        chunk_bytes += len(line)
        if chunk_bytes >= WRITE_CHUNK_BYTES:
            yield b"".join(lines)
            lines, chunk_bytes = [], 0
            await asyncio.sleep(0)
    if lines:
        yield b"".join(lines)


def _encode_batch(
    batch: Sequence[StoreEvent], encoder: ResponseEncoder, matcher: SelectorMatcher, namespace: str, *, is_first: bool
) -> Iterator[bytes]:
    """Encode the matching events of a batch, in chunks; each is built when the previous one was written."""
    lines: list[bytes] = []
    chunk_bytes = 0
    for event in batch:
        if line := _encode_matching_event(event, encoder, matcher, namespace, is_first=is_first):
            is_first = False
            lines.append(line)
            chunk_bytes += len(line)
        if chunk_bytes >= WRITE_CHUNK_BYTES:
            yield b"".join(lines)
            lines, chunk_bytes = [], 0
    if lines:
        yield b"".join(lines)


def _encode_matching_event(
    event: StoreEvent, encoder: ResponseEncoder, matcher: SelectorMatcher, namespace: str, *, is_first: bool
) -> bytes | None:
    if namespace and event.namespace != namespace:
        return None
    transition = matcher.filter_event(event)
    return encoder.encode_event(*transition, is_first=is_first) if transition else None


class _BookmarkSchedule:
    """Schedule of bookmarks: once a minute, and shortly before the end, so that clients resume from there."""

    def __init__(self, now: float, deadline: float, *, enabled: bool) -> None:
        self._is_enabled = enabled
        self._last_time = deadline - LAST_BOOKMARK_LEAD_SECONDS
        self._next_time = min(
            now + BOOKMARK_INTERVAL_SECONDS,
            self._last_time if self._last_time > now else now + BOOKMARK_INTERVAL_SECONDS,
        )

    def seconds_until_due(self, now: float) -> float:
        return max(0.0, self._next_time - now) if self._is_enabled else BOOKMARK_INTERVAL_SECONDS

    def take_if_due(self, now: float) -> bool:
        if not self._is_enabled or now < self._next_time:
            return False
        self._next_time = now + BOOKMARK_INTERVAL_SECONDS
        if now < self._last_time:
            self._next_time = min(self._next_time, self._last_time)
        return True


def _build_list_blueprint(encoder: ResponseEncoder) -> str:
    resource = encoder.served.resource
    empty_list: Manifest = {
        "kind": f"{resource.kind}List",
        "apiVersion": resource.api_version,
        "metadata": {},
        "items": None,
    }
    return base64.b64encode(orjson.dumps(empty_list) + b"\n").decode()
