"""Hub of live pages: tracks open pages, renders them after changes, and sends events to their readers.

In: live page definitions, changes from the cluster view. Out: an event stream for each open page. Never: more than four
renders of a page per second; an event to a reader who lost the permission more than a second ago.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import secrets
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from dataclasses import replace
from datetime import UTC
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from argosy.errors import ArgosyError
from argosy.kube.controller.clock import Backoff
from argosy.kube.objects import Manifest
from argosy.web import authorization
from argosy.web.live_updates.live_page_definitions import LivePage
from argosy.web.live_updates.viewer_group import PageViewer, ViewerGroup, encode_event
from argosy.web.preference_cookies import read_preferences
from argosy.web.request import NotFoundOrForbidden, ObjectNotFound, QueryParameters, RequestContext, RequestMemory
from argosy.web.route import RouteTree
from argosy.web.secret_mask_by_request_scope import conceal_secrets

if TYPE_CHECKING:
    from argosy.gitops.cluster_view.cluster_view import ClusterView

log = logging.getLogger(__name__)
MIN_RENDER_INTERVAL_SECONDS: Final = 0.25  # seconds between renders of one page
MAX_CONCURRENT_RENDERS: Final = 4  # pages rendered concurrently; other requests run in between
RENDER_TIMEOUT_SECONDS: Final = 30.0  # seconds for one render
HEARTBEAT_SECONDS: Final = 15.0
PERMISSION_CHECK_SECONDS: Final = 0.9  # seconds between permission checks
RENDER_BACKOFF: Final = Backoff(first_seconds=0.5, max_seconds=15.0)  # retries of a page that could not be rendered
UNVIEWED_PAGE_SECONDS: Final = 30.0  # seconds for which a page without readers is kept, for reconnects
MAX_UNVIEWED_PAGES: Final = 200  # number of such pages
MAX_RECENT_CHANGES: Final = 500  # changes
RECENT_CHANGE_SECONDS: Final = 30.0
SIGNED_OUT_EVENT: Final = encode_event("bye", {"why": "signed-out"})
GONE_EVENT: Final = encode_event("bye", {"why": "gone"})  # or forbidden by now: the event does not reveal which
GroupKey = tuple[str, ...]


class _NumberedChange(NamedTuple):
    number: int
    at: float
    old: Manifest | None
    new: Manifest | None


class LivePageHub:
    """Belongs to one event loop. Its tasks run while there are readers."""

    def __init__(self, cluster_view: ClusterView, live_pages: Iterable[LivePage]) -> None:
        self._cluster_view = cluster_view
        self._live_pages = {live_page.path: live_page for live_page in live_pages}
        self._tree = RouteTree([live_page.route for live_page in self._live_pages.values()])
        self._groups: dict[GroupKey, ViewerGroup] = {}
        self._unviewed_since: dict[GroupKey, float] = {}  # time since there are no readers, oldest first
        self._tasks: dict[GroupKey, asyncio.Task[None]] = {}
        self._watch_task: asyncio.Task[None] | None = None
        self._render_slots = asyncio.Semaphore(MAX_CONCURRENT_RENDERS)
        self._recent_changes: deque[_NumberedChange] = deque(maxlen=MAX_RECENT_CHANGES)
        self._process_id = secrets.token_hex(8)  # id of this process: counters of another process mean nothing here
        self._group_numbers = itertools.count()
        self._change_count = 0
        self._stop = cluster_view.add_listener(self._on_change)

    # -- one page ------------------------------------------------------------------------------------------------

    @property
    def position(self) -> str:
        """Position in the change feed of this process; pages send it back."""
        return f"{self._process_id}-{self._change_count}"

    async def stream(self, request: RequestContext) -> AsyncGenerator[bytes, None]:
        """Stream events for `GET /live?at=PAGE`. Raises before the first event if the page is not live or forbidden."""
        page, live = await self._authorize_page(request)
        key, reader = self._build_group_key(page), PageViewer(page)
        group = self._get_or_create_group(key, live, page)
        group.readers[reader] = None  # before the first await: a page with a reader is kept and refreshed
        self._unviewed_since.pop(key, None)
        try:
            async with self._render_slots, asyncio.timeout(RENDER_TIMEOUT_SECONDS):
                await group.ensure_rendered(self._format_view_time)
            async for event in self._stream_events(group, reader, request):
                yield event
        finally:
            group.readers.pop(reader, None)
            if not group.readers and self._groups.get(key) is group:
                self._mark_unviewed(key)

    async def _stream_events(
        self, group: ViewerGroup, reader: PageViewer, request: RequestContext
    ) -> AsyncIterator[bytes]:
        yield b"retry: 2000\n\n"
        reader.start()
        missed_events = group.find_missed_events(request.headers.get("last-event-id", ""))
        if missed_events is None and not self._is_up_to_date(group, request.query.get_text("since")):
            missed_events = [group.encode_all_parts(self._format_view_time())]
        for event in missed_events or [self._build_heartbeat(group)]:
            yield event
        while (next_event := await reader.next()) is not None:
            yield next_event

    async def _authorize_page(self, request: RequestContext) -> tuple[RequestContext, LivePage]:
        try:
            url = urlsplit(request.query.get_text("at"))
            match = self._tree.find("GET", url.path) if url.path.startswith("/") and not url.netloc else None
        except ValueError:  # malformed URL or invalid UTF-8
            raise NotFoundOrForbidden from None
        if match is None or match.route is None:
            raise NotFoundOrForbidden
        live_page = self._live_pages[match.route.path]
        page = replace(
            request,
            path=url.path,
            path_parameters=match.values,
            query=QueryParameters.parse(url.query),
            read_body=None,
            memory=RequestMemory(),
            live_position="",
            subject=None,
            rbac_object="",
            rbac_resource=live_page.route.rbac_resource,
        )
        page = await authorization.authorize(live_page.route, page)
        page = await conceal_secrets(live_page.route, page)
        request.memory.page = page  # its Secrets decide the redaction of events; its URL is echoed
        return page, live_page

    def _get_or_create_group(self, key: GroupKey, live: LivePage, page: RequestContext) -> ViewerGroup:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = ViewerGroup(f"{self._process_id}-{next(self._group_numbers)}", live, page)
            self._tasks[key] = asyncio.create_task(self._render_after_changes(group), name="live page")
        if self._watch_task is None:
            self._watch_task = asyncio.create_task(self._check_readers(), name="live pages")
        return group

    def _mark_unviewed(self, key: GroupKey) -> None:
        self._unviewed_since[key] = _now()
        if len(self._unviewed_since) > MAX_UNVIEWED_PAGES:
            self._drop_group(next(iter(self._unviewed_since)))

    def _build_group_key(self, page: RequestContext) -> GroupKey:
        """Readers with the same permissions and favourites share one group."""
        words = "&".join(f"{name}={value}" for name in sorted(page.query) for value in page.query.get_all(name))
        favourites = read_preferences(page).get("favourites", "")  # the only cookie that live parts depend on
        return page.path, words, get_permission_digest(page), favourites

    def _is_up_to_date(self, group: ViewerGroup, since: str) -> bool:
        """True if no relevant change happened since the page was rendered."""
        name, _, count = since.rpartition("-")
        if name != self._process_id or not count.isdecimal() or len(count) > 15 or int(count) > self._change_count:
            return False
        number = int(count)
        later = [change for change in self._recent_changes if change.number > number]
        if len(later) < self._change_count - number:
            return False
        return not any(self._affects(group, change.old, change.new) for change in later)

    # -- changes -------------------------------------------------------------------------------------------------

    def _on_change(self, old: Manifest | None, new: Manifest | None) -> None:
        self._change_count += 1
        self._recent_changes.append(_NumberedChange(self._change_count, _now(), old, new))
        for group in self._groups.values():
            if not group.is_dirty.is_set() and self._affects(group, old, new):
                group.is_dirty.set()

    def _affects(self, group: ViewerGroup, old: Manifest | None, new: Manifest | None) -> bool:
        live = group.live
        try:
            return live.may_affect(old, new) and (live.affects_page is None or live.affects_page(group.asked, old, new))
        except Exception:  # an unreadable change may be relevant
            log.exception("%s: cannot decide whether a change affects the page", live.path)
            return True

    async def _render_after_changes(self, group: ViewerGroup) -> None:
        """Render a page after each relevant change, and again after a failure."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RENDER_BACKOFF.delay(group.failures) if group.failures else None):
                    await group.is_dirty.wait()
            if not group.readers:
                group.is_dirty.clear()
                group.is_outdated, group.failures = True, 0
                continue
            async with self._render_slots:
                started, cpu_started = _now(), time.thread_time()
                group.is_dirty.clear()
                await self._render_group(group)
            # Pause as long as a render took; all pages together use at most half of the CPU time.
            work = (time.thread_time() - cpu_started) * len(self._groups) * 2
            await asyncio.sleep(max(MIN_RENDER_INTERVAL_SECONDS, _now() - started, work))

    async def _render_group(self, group: ViewerGroup) -> None:
        if not group.readers:  # readers left while others were rendered
            group.is_outdated = True
            return
        failures, group.failures = group.failures, 0
        try:
            async with asyncio.timeout(RENDER_TIMEOUT_SECONDS):
                page = await authorization.authorize(group.live.route, _reset_page(next(iter(group.readers)).asked))
                await group.render_changes(page, self._format_view_time)
        except (NotFoundOrForbidden, ObjectNotFound, authorization.NotAuthenticated):
            return  # `_check_group` tells the readers
        except Exception as error:
            group.is_outdated, group.failures = True, failures + 1
            if not failures:
                is_known = isinstance(error, ArgosyError | TimeoutError)
                log.warning("%s: cannot render the live page: %r", group.live.path, error, exc_info=not is_known)
        if bool(failures) != bool(group.failures):
            self._send_event(group, self._build_heartbeat(group))

    # -- readers -------------------------------------------------------------------------------------------------

    async def _check_readers(self) -> None:
        """Check permissions of readers and the state of the cluster view, and send heartbeats."""
        last_heartbeat, was_up = _now(), self._is_up()
        try:
            while self._groups:
                await asyncio.sleep(PERMISSION_CHECK_SECONDS)
                for key, group in tuple(self._groups.items()):
                    await self._check_group(key, group)
                for key in [
                    key for key, since in self._unviewed_since.items() if _now() - since > UNVIEWED_PAGE_SECONDS
                ]:
                    self._drop_group(key)
                if _now() - last_heartbeat >= HEARTBEAT_SECONDS or self._is_up() != was_up:
                    last_heartbeat, was_up = _now(), self._is_up()
                    for group in self._groups.values():
                        self._send_event(group, self._build_heartbeat(group))
                while self._recent_changes and _now() - self._recent_changes[0].at > RECENT_CHANGE_SECONDS:
                    self._recent_changes.popleft()
        finally:
            self._watch_task = None

    async def _check_group(self, key: GroupKey, group: ViewerGroup) -> None:
        if not group.readers:
            return
        try:
            await authorization.authorize(group.live.route, _reset_page(group.asked))
        except (NotFoundOrForbidden, ObjectNotFound):
            self._disconnect_readers(group, GONE_EVENT)
        except authorization.NotAuthenticated:
            self._disconnect_readers(group, SIGNED_OUT_EVENT)
        except ArgosyError:
            self._disconnect_readers(group)  # the page shows the error when the reader reconnects
        except Exception:  # other pages are still checked
            log.exception("%s: cannot check the permissions of readers", group.live.path)
        for reader in tuple(group.readers):
            identities, caller = reader.asked.authenticator, reader.asked.caller
            if not identities.is_still_valid(caller):
                # An expired token: the browser may have a newer one and reconnects with it.
                reader.disconnect(b"" if identities.is_expired(caller) else SIGNED_OUT_EVENT)
            elif get_permission_digest(reader.asked) != key[2]:
                reader.disconnect()  # it reconnects and sees what it may see now

    @staticmethod
    def _disconnect_readers(group: ViewerGroup, last: bytes = b"") -> None:
        for reader in tuple(group.readers):
            reader.disconnect(last)

    def _drop_group(self, key: GroupKey) -> None:
        self._unviewed_since.pop(key, None)
        self._groups.pop(key, None)
        if (task := self._tasks.pop(key, None)) is not None:
            task.cancel()

    @staticmethod
    def _send_event(group: ViewerGroup, event: bytes) -> None:
        for reader in tuple(group.readers):
            reader.send(event)

    async def close(self) -> None:
        self._stop()
        tasks = [*self._tasks.values(), *([self._watch_task] if self._watch_task else [])]
        for group in self._groups.values():
            self._disconnect_readers(group)
        for collection in (self._groups, self._unviewed_since, self._tasks):
            collection.clear()
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)

    # -- freshness -----------------------------------------------------------------------------------------------

    def _is_up(self) -> bool:
        return self._cluster_view.as_of.is_up

    def _format_view_time(self) -> str:
        return self._cluster_view.as_of.fresh_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _build_heartbeat(self, group: ViewerGroup) -> bytes:
        """Return a heartbeat. A page that cannot be rendered reports the time of its last render."""
        is_failing = group.failures > 0
        rendered_at = group.rendered_at if is_failing else self._format_view_time()
        return encode_event("beat", {"at": rendered_at, "isUp": self._is_up() and not is_failing}, group.id)


def _reset_page(page: RequestContext) -> RequestContext:
    return replace(page, subject=None, rbac_object="", rbac_resource="", live_position="", memory=RequestMemory())


def _now() -> float:
    return asyncio.get_running_loop().time()


def get_permission_digest(request: RequestContext) -> str:
    """Digest of the caller's permissions; equal for callers with the same permissions."""
    return request.authenticator.permissions(request.caller).digest
