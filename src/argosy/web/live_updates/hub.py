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
from argosy.web.live_updates.live_parts import Live
from argosy.web.live_updates.viewer_group import Group, Reader, encoded
from argosy.web.middleware import authorization
from argosy.web.request import Absent, Asked, Query, Refused
from argosy.web.route import Tree

if TYPE_CHECKING:
    from argosy.gitops.cluster_view.cluster_view import Lookout

log = logging.getLogger(__name__)
BETWEEN: Final = 0.25  # seconds between renders of one page
AT_ONCE: Final = 4  # pages rendered concurrently; other requests run in between
PATIENCE: Final = 30.0  # seconds for one render
BEAT: Final = 15.0
LOOK: Final = 0.9  # seconds between permission checks
AGAIN: Final = Backoff(first=0.5, most=15.0)  # retries of a page that could not be rendered
KEPT: Final = 30.0  # seconds for which a page without readers is kept, for reconnects
MOST_LEFT: Final = 200  # number of such pages
RECENT: Final = 500  # changes
RECENT_SECONDS: Final = 30.0
FAVOURITES: Final = "argosy-favourites"  # the only cookie that page content depends on
SIGNED_OUT: Final = encoded("bye", {"why": "signed-out"})
GONE: Final = encoded("bye", {"why": "gone"})  # or forbidden by now: the event does not reveal which
Key = tuple[str, ...]


class _Change(NamedTuple):
    number: int
    at: float
    before: Manifest | None
    after: Manifest | None


class Hub:
    """Belongs to one event loop. Its tasks run while there are readers."""

    def __init__(self, lookout: Lookout, lives: Iterable[Live]) -> None:
        self._lookout = lookout
        self._lives = {live.path: live for live in lives}
        self._tree = Tree([live.route for live in self._lives.values()])
        self._groups: dict[Key, Group] = {}
        self._left: dict[Key, float] = {}  # time since there are no readers, oldest first
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._watching: asyncio.Task[None] | None = None
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._recent: deque[_Change] = deque(maxlen=RECENT)
        self._name = secrets.token_hex(8)  # id of this process: counters of another process mean nothing here
        self._numbers = itertools.count()
        self._changes = 0
        self._stop = lookout.listen(self._noticed)

    # -- one page ------------------------------------------------------------------------------------------------

    @property
    def mark(self) -> str:
        """Position in the change feed of this process; pages send it back."""
        return f"{self._name}-{self._changes}"

    async def stream(self, asked: Asked) -> AsyncGenerator[bytes, None]:
        """Stream events for `GET /live?at=PAGE`. Raises before the first event if the page is not live or forbidden."""
        page, live = await self._page(asked)
        key, reader = self._key(page), Reader(page)
        group = self._group(key, live, page)
        group.readers[reader] = None  # before the first await: a page with a reader is kept and refreshed
        self._left.pop(key, None)
        try:
            async with self._turns, asyncio.timeout(PATIENCE):
                await group.fresh(self._at)
            async for event in self._events(group, reader, asked):
                yield event
        finally:
            group.readers.pop(reader, None)
            if not group.readers and self._groups.get(key) is group:
                self._leave(key)

    async def _events(self, group: Group, reader: Reader, asked: Asked) -> AsyncIterator[bytes]:
        yield b"retry: 2000\n\n"
        reader.begin()
        missed = group.since(asked.headers.get("last-event-id", ""))
        if missed is None and not self._is_known(group, asked.query.text("since")):
            missed = [group.whole(self._at())]
        for event in missed or [self._beat(group)]:
            yield event
        while (coming := await reader.next()) is not None:
            yield coming

    async def _page(self, asked: Asked) -> tuple[Asked, Live]:
        try:
            at = urlsplit(asked.query.text("at"))
            match = self._tree.find("GET", at.path) if at.path.startswith("/") and not at.netloc else None
        except ValueError:  # malformed URL or invalid UTF-8
            raise Refused from None
        if match is None or match.route is None:
            raise Refused
        live = self._lives[match.route.path]
        page = replace(
            asked, path=at.path, values=match.values, query=Query.read(at.query), read=None,
            kept={"needs": live.needs}, subject=None, thing="",
        )  # fmt: skip
        page = await asked.entry.conceal(live.route, await authorization.permitted(live.route, page))
        asked.kept["page"] = page  # its Secrets decide the redaction of events; its URL is echoed
        return page, live

    def _group(self, key: Key, live: Live, page: Asked) -> Group:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(f"{self._name}-{next(self._numbers)}", live, page)
            self._tasks[key] = asyncio.create_task(self._keep(group), name="live page")
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="live pages")
        return group

    def _leave(self, key: Key) -> None:
        self._left[key] = _now()
        if len(self._left) > MOST_LEFT:
            self._forget(next(iter(self._left)))

    def _key(self, page: Asked) -> Key:
        """Readers with the same permissions and favourites share one group."""
        words = "&".join(f"{name}={value}" for name in sorted(page.query) for value in page.query.all(name))
        return page.path, words, eyes(page), favourites(page)

    def _is_known(self, group: Group, since: str) -> bool:
        """True if no relevant change happened since the page was rendered."""
        name, _, count = since.rpartition("-")
        if name != self._name or not count.isdecimal() or len(count) > 15 or int(count) > self._changes:
            return False
        number = int(count)
        later = [each for each in self._recent if each.number > number]
        if len(later) < self._changes - number:
            return False
        return not any(self._matters(group, each.before, each.after) for each in later)

    # -- changes -------------------------------------------------------------------------------------------------

    def _noticed(self, before: Manifest | None, after: Manifest | None) -> None:
        self._changes += 1
        self._recent.append(_Change(self._changes, _now(), before, after))
        for group in self._groups.values():
            if not group.is_dirty.is_set() and self._matters(group, before, after):
                group.is_dirty.set()

    def _matters(self, group: Group, before: Manifest | None, after: Manifest | None) -> bool:
        live = group.live
        try:
            return live.touches(before, after) and (live.of is None or live.of(group.asked, before, after))
        except Exception:  # an unreadable change may be relevant
            log.exception("%s: cannot decide whether a change affects the page", live.path)
            return True

    async def _keep(self, group: Group) -> None:
        """Render a page after each relevant change, and again after a failure."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(AGAIN.delay(group.failures) if group.failures else None):
                    await group.is_dirty.wait()
            if not group.readers:
                group.is_dirty.clear()
                group.is_old, group.failures = True, 0
                continue
            async with self._turns:
                started, worked = _now(), time.thread_time()
                group.is_dirty.clear()
                await self._refresh(group)
            # Pause as long as a render took; all pages together use at most half of the CPU time.
            work = (time.thread_time() - worked) * len(self._groups) * 2
            await asyncio.sleep(max(BETWEEN, _now() - started, work))

    async def _refresh(self, group: Group) -> None:
        if not group.readers:  # readers left while others were rendered
            group.is_old = True
            return
        failures, group.failures = group.failures, 0
        try:
            async with asyncio.timeout(PATIENCE):
                page = await authorization.permitted(group.live.route, _anew(next(iter(group.readers)).asked))
                await group.refresh(page, self._at)
        except (Refused, Absent, authorization.Unknown):
            return  # `_check_group` tells the readers
        except Exception as error:
            group.is_old, group.failures = True, failures + 1
            if not failures:
                is_known = isinstance(error, ArgosyError | TimeoutError)
                log.warning("%s: cannot render the live page: %r", group.live.path, error, exc_info=not is_known)
        if bool(failures) != bool(group.failures):
            self._give(group, self._beat(group))

    # -- readers -------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Check permissions of readers and the state of the cluster view, and send heartbeats."""
        beat, was_up = _now(), self._is_up()
        try:
            while self._groups:
                await asyncio.sleep(LOOK)
                for key, group in tuple(self._groups.items()):
                    await self._look_after(key, group)
                for key in [key for key, since in self._left.items() if _now() - since > KEPT]:
                    self._forget(key)
                if _now() - beat >= BEAT or self._is_up() != was_up:
                    beat, was_up = _now(), self._is_up()
                    for group in self._groups.values():
                        self._give(group, self._beat(group))
                while self._recent and _now() - self._recent[0].at > RECENT_SECONDS:
                    self._recent.popleft()
        finally:
            self._watching = None

    async def _look_after(self, key: Key, group: Group) -> None:
        if not group.readers:
            return
        try:
            await authorization.permitted(group.live.route, _anew(group.asked))
        except (Refused, Absent):
            self._end(group, GONE)
        except authorization.Unknown:
            self._end(group, SIGNED_OUT)
        except ArgosyError:
            self._end(group)  # the page shows the error when the reader reconnects
        except Exception:  # other pages are still checked
            log.exception("%s: cannot check the permissions of readers", group.live.path)
        for reader in tuple(group.readers):
            identities, caller = reader.asked.site.identities, reader.asked.caller
            if not identities.still(caller):
                # An expired token: the browser may have a newer one and reconnects with it.
                reader.end(b"" if identities.is_past(caller) else SIGNED_OUT)
            elif eyes(reader.asked) != key[2]:
                reader.end()  # it reconnects and sees what it may see now

    @staticmethod
    def _end(group: Group, last: bytes = b"") -> None:
        for reader in tuple(group.readers):
            reader.end(last)

    def _forget(self, key: Key) -> None:
        self._left.pop(key, None)
        self._groups.pop(key, None)
        if (task := self._tasks.pop(key, None)) is not None:
            task.cancel()

    @staticmethod
    def _give(group: Group, event: bytes) -> None:
        for reader in tuple(group.readers):
            reader.give(event)

    async def close(self) -> None:
        self._stop()
        tasks = [*self._tasks.values(), *([self._watching] if self._watching else [])]
        for group in self._groups.values():
            self._end(group)
        for each in (self._groups, self._left, self._tasks):
            each.clear()
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)

    # -- freshness -----------------------------------------------------------------------------------------------

    def _is_up(self) -> bool:
        return self._lookout.as_of.is_up

    def _at(self) -> str:
        return self._lookout.as_of.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _beat(self, group: Group) -> bytes:
        """Return a heartbeat. A page that cannot be rendered reports the time of its last render."""
        is_failing = group.failures > 0
        at = group.seen if is_failing else self._at()
        return encoded("beat", {"at": at, "isUp": self._is_up() and not is_failing}, group.id)


def _anew(page: Asked) -> Asked:
    return replace(page, subject=None, thing="", kept={})


def _now() -> float:
    return asyncio.get_running_loop().time()


def eyes(asked: Asked) -> str:
    """Digest of the caller's permissions; equal for callers with the same permissions."""
    return asked.site.identities.permissions(asked.caller).digest


def favourites(asked: Asked) -> str:
    for each in asked.headers.get("cookie", "").split(";"):
        name, _, value = each.strip().partition("=")
        if name == FAVOURITES:
            return value
    return ""
