"""Caches rendered sources until a file or setting that was read for them changes.

In: an Application, one of its sources, checkouts. Out: RenderResult. Never: renders again what gives the same
manifests; fetches a remote base that the project does not permit.
"""

from __future__ import annotations

import copy
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol

import orjson

from argosy.annotations import MANIFEST_GENERATE_PATHS
from argosy.errors import ArgosyError, LimitError, RenderError, UserError
from argosy.gitops.application import Application, Source
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.application.step_results import Checkout, Rendered
from argosy.gitops.render import BuildSettings, are_current, build_environment, render
from argosy.isolation.backoff import backoff_seconds
from argosy.kube.names import ResourceKey

log = logging.getLogger("argosy.gitops.render")  # the logger name that users filter by
MOST_REMEMBERED: Final = 20_000
MOST_REMOTES: Final = 100
MOST_CARRIED: Final = 100
TRIED_AGAIN: Final = 300.0  # seconds; a render may have failed for lack of memory
FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 10.0, 600.0  # seconds; after a render that exhausted its worker

Fetched = Mapping[tuple[str, str], Tree]
FetchRemote = Callable[[str, str], Awaitable[Checkout]]  # URL and ref of a remote base; raises if it is not permitted


class Crew(Protocol):
    async def run(self, function: Callable[..., Any], *args: Any) -> Any: ...


class RemoteWanted(ArgosyError):
    """A render met a remote base that has not been fetched yet."""

    def __init__(self, url: str, ref: str) -> None:
        super().__init__(f"{url} at {ref or 'HEAD'} is wanted")
        self.url, self.ref = url, ref


@dataclass(frozen=True)
class Remotes:
    """The remote bases for a worker: returns those that were fetched, and raises RemoteBaseNeeded for others."""

    known: Fetched

    def __call__(self, url: str, ref: str) -> Tree:
        found = self.known.get((url, ref))
        if found is None:
            raise RemoteWanted(url, ref)
        return found


@dataclass(frozen=True, slots=True)
class Asked:
    """One source of an Application with its checkout."""

    app: Application
    source: Source
    checkout: Checkout
    settings: BuildSettings
    refs: Mapping[str, Checkout] = field(default_factory=dict)

    @property
    def revisions(self) -> tuple[str, ...]:
        return (self.checkout.revision, *(each.revision for each in self.refs.values()))

    @property
    def about(self) -> tuple[Any, ...]:
        return _about(self.app)

    def digest(self) -> str:
        return digest_source(self.app, self.source, self.settings)


def _about(app: Application) -> tuple[Any, ...]:
    return (app.name, app.project, tuple(app.destination), app.annotations.get(MANIFEST_GENERATE_PATHS, ""))


def digest_source(app: Application, source: Source, settings: BuildSettings) -> str:
    """Digest all inputs except files: equal digests and equal files give equal manifests."""
    words = orjson.dumps((*_about(app), dict(source.wire)), option=orjson.OPT_SORT_KEYS)
    words += repr(settings).encode()
    return hashlib.sha256(words).hexdigest()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class _Known:
    digest: str
    revisions: tuple[str, ...]
    rendered: Rendered | None
    error: UserError | None = None
    until: float = 0.0  # monotonic time of the next try
    exhausted: int = 0  # how often in a row it exhausted its worker
    carried: tuple[str, ...] = ()  # earlier revisions with the same manifests


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Renders:
    def __init__(
        self, crew: Crew, clock: Callable[[], float] = time.monotonic, now: Callable[[], datetime] = _utc_now
    ) -> None:
        """`clock` is monotonic; `now` is for messages."""
        self._crew, self._clock, self._now = crew, clock, now
        self._known: OrderedDict[tuple[ResourceKey, int], _Known] = OrderedDict()
        self._digests: dict[tuple[ResourceKey, int], tuple[Source, BuildSettings, tuple[Any, ...], str]] = {}
        self.control_namespace = ""  # messages omit this namespace
        self.count = 0  # renders that were executed

    async def render(self, asked: Asked, number: int, fetch: FetchRemote, *, afresh: bool = False) -> Rendered:
        """Return the cached render of a source, or render it. `ignores_cache` always renders it."""
        place = (asked.app.key, number)
        digest = self._digest(asked, place)
        known = None if afresh else self._known.get(place)
        if known is not None and known.digest == digest:
            is_same = known.revisions == asked.revisions
            if known.error is not None and is_same and self._clock() < known.until:
                raise copy.copy(known.error)  # a copy, because a raised error collects tracebacks
            if known.rendered is not None:
                if is_same and not _remote_places(known.rendered, asked):
                    return known.rendered
                if await _is_current(known.rendered, asked, fetch):
                    carried = () if asked.refs else (*known.carried, known.revisions[0])[-MOST_CARRIED:]
                    self._remember(place, replace(known, revisions=asked.revisions, carried=carried))
                    return known.rendered
        try:
            rendered = await self._rendered(asked, fetch)
        except RenderError as error:
            until = self._clock() + TRIED_AGAIN
            self._remember(place, _Known(digest, asked.revisions, None, copy.copy(error), until))
            log.info(
                "manifest generation failed: app=%s revision=%s error=%s",
                asked.app.name,
                asked.checkout.revision,
                error,
            )
            raise
        except LimitError as error:
            if not error.exhausted:
                raise
            is_repeated = known is not None and (known.digest, known.revisions) == (digest, asked.revisions)
            times = known.exhausted + 1 if known is not None and is_repeated else 1
            raise self._backed_off(error, asked, place, digest, times) from None
        log.info(
            "manifests generated: app=%s path=%s repo=%s revision=%s manifests=%s tool=%s",
            asked.app.name,
            asked.source.path or asked.source.chart or ".",
            asked.source.repo_url,  # a URL that was checked out contains no password
            asked.checkout.revision,
            len(rendered.manifests),
            rendered.tool,
        )
        self._remember(place, _Known(digest, asked.revisions, rendered))
        return rendered

    def _backed_off(
        self, error: LimitError, asked: Asked, place: tuple[ResourceKey, int], digest: str, times: int
    ) -> LimitError:
        """Remember a render that exhausted its worker; return the error with the time of the next try."""
        seconds = backoff_seconds(times, FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS)
        at = (self._now() + timedelta(seconds=seconds)).strftime("%H:%M:%S")
        key = asked.app.key
        is_elsewhere = key.namespace and key.namespace != self.control_namespace
        name = f"{key.namespace}/{key.name}" if is_elsewhere else key.name
        told = copy.copy(error)
        told.message = (
            f"{error.message}; render {error.exhausted} ({_ordinal(times)} time); next try {at} UTC; "
            f"retry now: argosy app get {name} --hard-refresh"
        )
        self._remember(place, _Known(digest, asked.revisions, None, copy.copy(told), self._clock() + seconds, times))
        log.warning(
            "render %s: app=%s revision=%s times=%s retry_seconds=%g",
            error.exhausted, asked.app.name, asked.checkout.revision, times, seconds,
        )  # fmt: skip
        return told

    def retry_seconds(self, app: Application) -> float | None:
        """Return the seconds until an exhausted render of the Application is retried; None if none is waiting.

        A retry that is due does not count: if the pass fails before it renders, the entry stays as it is.
        """
        places = [self._known.get((app.key, number)) for number in range(len(app.sources))]
        waits = [known.until - self._clock() for known in places if known is not None and known.exhausted]
        return min((wait for wait in waits if wait > 0), default=None)

    def _digest(self, asked: Asked, place: tuple[ResourceKey, int]) -> str:
        """Return the cached digest if its inputs are identical."""
        known = self._digests.get(place)
        if known is not None and known[0] is asked.source and known[1] is asked.settings and known[2] == asked.about:
            return known[3]
        digest = asked.digest()
        self._digests[place] = asked.source, asked.settings, asked.about, digest
        return digest

    def is_touched(self, asked: Asked, number: int) -> bool:
        """True if the source must be rendered again, as far as that is known without network access."""
        known = self._known.get((asked.app.key, number))
        if known is None or known.rendered is None or _remote_places(known.rendered, asked):
            return True
        trees: dict[str, Tree] = {"": asked.checkout.tree}
        trees |= {f"${alias}": each.tree for alias, each in asked.refs.items()}
        environment = build_environment(asked.app, asked.source, asked.checkout.revision, asked.settings)
        return not are_current(known.rendered.inputs, trees, environment)

    def peek(self, app: ResourceKey, sources: int) -> tuple[object, ...]:
        """Return the cache entries of that many sources, to compare by identity."""
        return tuple(self._known.get((app, number)) for number in range(sources))

    def find_rendered(
        self, app: Application, settings: BuildSettings, revisions: Sequence[str]
    ) -> tuple[Rendered, ...] | None:
        """Return the cached renders of all sources at these revisions. None if one is missing. Renders nothing."""
        if len(revisions) != len(app.sources):
            return None
        found = []
        for number, source in enumerate(app.sources):
            if source.alias and not source.path and not source.chart:
                continue
            known = self._known.get((app.key, number))
            if known is None or known.rendered is None or known.digest != digest_source(app, source, settings):
                return None
            own, *others = known.revisions
            if revisions[number] not in (own, *known.carried) or not set(others) <= set(revisions):
                return None
            found.append(known.rendered)
        return tuple(found)

    def is_carried(self, app: ResourceKey, number: int, revision: str) -> bool:
        """True if this revision gave the same manifests as the newest one, and so did all between them."""
        known = self._known.get((app, number))
        return known is not None and revision in (*known.revisions[:1], *known.carried)

    def forget(self, app: ResourceKey) -> None:
        for place in [place for place in self._known if place[0] == app]:
            del self._known[place]
        for place in [place for place in self._digests if place[0] == app]:
            del self._digests[place]

    def _remember(self, place: tuple[ResourceKey, int], known: _Known) -> None:
        self._known[place] = known
        self._known.move_to_end(place)
        if len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)

    async def _rendered(self, asked: Asked, fetch: FetchRemote) -> Rendered:
        fetched: dict[tuple[str, str], Tree] = {}
        app = replace(asked.app, wire={}, status={}, operation=None, state=None)  # reduces what is sent to the worker
        while True:
            self.count += 1
            call = partial(render, refs=dict(asked.refs), fetch=Remotes(dict(fetched)))
            try:
                found: Rendered = await self._crew.run(call, asked.checkout, app, asked.source, asked.settings)
                return found
            except RemoteWanted as wanted:
                if len(fetched) >= MOST_REMOTES:
                    message = f"more than {MOST_REMOTES} remote bases; copy them into the repository"
                    raise RenderError(message, where=asked.source.path) from None
                fetched[wanted.url, wanted.ref] = (await fetch(wanted.url, wanted.ref)).tree


def _ordinal(number: int) -> str:
    is_teen = 10 < number % 100 < 20
    return f"{number}{'th' if is_teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _remote_places(rendered: Rendered, asked: Asked) -> list[str]:
    """Return the remote bases among the inputs: they may change without a new revision of the source."""
    own = {"", *(f"${alias}" for alias in asked.refs)}
    found = {each.place for each in rendered.inputs} - own
    return [place for place in found if "/" in place.rpartition("@")[0]]


async def _is_current(rendered: Rendered, asked: Asked, fetch: FetchRemote) -> bool:
    trees: dict[str, Tree] = {"": asked.checkout.tree}
    trees |= {f"${alias}": each.tree for alias, each in asked.refs.items()}
    for place in _remote_places(rendered, asked):
        url, _, ref = place.rpartition("@")
        trees[place] = (await fetch(url, ref)).tree
    environment = build_environment(asked.app, asked.source, asked.checkout.revision, asked.settings)
    return are_current(rendered.inputs, trees, environment)
