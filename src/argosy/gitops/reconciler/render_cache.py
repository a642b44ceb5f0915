"""Caches rendered sources until a file or setting that was read for them changes.

In: an Application, one of its sources, checkouts. Out: RenderResult. Never: renders again what gives the same
manifests; fetches a remote base that the project does not permit.
"""

from __future__ import annotations

import copy
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol

import orjson

from argosy.annotations import MANIFEST_GENERATE_PATHS
from argosy.errors import LimitError, RenderError
from argosy.gitops.application import Application, Source
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.application.step_results import Checkout, RenderResult
from argosy.gitops.reconciler.app_memo import AppMemos, CachedDigest, CachedRender, SourceMemo
from argosy.gitops.reconciler.worker_remote_bases import (
    ChartsNeeded,
    FetchedCharts,
    FetchedRemoteBases,
    GitAccessNeeded,
    PluginGitAccess,
    RemoteBaseNeeded,
)
from argosy.gitops.render import BuildSettings, ChartRequest, are_inputs_unchanged, build_environment, render
from argosy.isolation.script_backoff import backoff_seconds
from argosy.kube.objects.shared_texts import SHARED_TEXTS
from argosy.kube.resource_key import ResourceKey

log = logging.getLogger("argosy.gitops.render")  # the logger name that users filter by
MAX_REMOTE_BASES: Final = 100
MAX_CHART_DEPENDENCIES: Final = 100  # of one chart, that are not in the repository
MAX_EQUAL_REVISIONS: Final = 100
FAILED_RENDER_RETRY_SECONDS: Final = 300.0  # seconds; a render may have failed for lack of memory
FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 10.0, 600.0  # seconds; after a render that exhausted its worker

FetchRemote = Callable[[str, str], Awaitable[Checkout]]  # URL and ref of a remote base; raises if it is not permitted
FetchDependencies = Callable[[Sequence[ChartRequest]], Awaitable[Sequence[Checkout]]]  # the same, of a chart

OpenGitAccess = Callable[[], AbstractAsyncContextManager[Mapping[str, str]]]


class RenderWorkers(Protocol):
    async def run(self, function: Callable[..., Any], *args: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """One source of an Application with its checkout."""

    app: Application
    source: Source
    checkout: Checkout
    settings: BuildSettings
    refs: Mapping[str, Checkout] = field(default_factory=dict)
    open_git_access: OpenGitAccess | None = None  # for a plug-in that wants credentials

    @property
    def revisions(self) -> tuple[str, ...]:
        return (self.checkout.revision, *(checkout.revision for checkout in self.refs.values()))

    @property
    def app_inputs(self) -> tuple[Any, ...]:
        return _list_app_inputs(self.app)

    def compute_digest(self) -> str:
        return digest_source(self.app, self.source, self.settings)


def _list_app_inputs(app: Application) -> tuple[Any, ...]:
    return (app.name, app.project, tuple(app.destination), app.annotations.get(MANIFEST_GENERATE_PATHS, ""))


def digest_source(app: Application, source: Source, settings: BuildSettings) -> str:
    """Digest all inputs except files: equal digests and equal files give equal manifests."""
    content = orjson.dumps((*_list_app_inputs(app), dict(source.wire)), option=orjson.OPT_SORT_KEYS)
    content += repr(settings).encode()
    return hashlib.sha256(content).hexdigest()


def _utc_now() -> datetime:
    return datetime.now(UTC)


class RenderCache:
    def __init__(
        self,
        workers: RenderWorkers,
        memos: AppMemos,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        """`clock` is monotonic; `now` is for messages."""
        self._workers, self._memos, self._clock, self._now = workers, memos, clock, now
        self.control_namespace = ""  # messages omit this namespace
        self.render_count = 0  # renders that were executed

    async def render(
        self,
        request: RenderRequest,
        source_index: int,
        fetch: FetchRemote,
        fetch_charts: FetchDependencies | None = None,
        *,
        ignores_cache: bool = False,
    ) -> RenderResult:
        """Return the cached render of a source, or render it. `ignores_cache` always renders it."""
        memo = self._source_memo(request.app, source_index)
        digest = _compute_digest_once(request, memo)
        cached = None if ignores_cache else memo.render
        if cached is not None and cached.digest == digest:
            is_same_revision = cached.revisions == request.revisions
            if cached.error is not None and is_same_revision and self._clock() < cached.retry_at:
                raise copy.copy(cached.error)  # a copy, because a raised error collects tracebacks
            if cached.rendered is not None and await _are_charts_current(cached.charts, fetch_charts):
                if is_same_revision and not _list_remote_bases(cached.rendered, request):
                    return cached.rendered
                if await _is_current(cached.rendered, request, fetch):
                    equal_revisions = (
                        () if request.refs else (*cached.equal_revisions, cached.revisions[0])[-MAX_EQUAL_REVISIONS:]
                    )
                    memo.render = replace(cached, revisions=request.revisions, equal_revisions=equal_revisions)
                    return cached.rendered
        try:
            rendered, charts = await self._render_in_worker(request, fetch, fetch_charts)
        except RenderError as error:
            until = self._clock() + FAILED_RENDER_RETRY_SECONDS
            memo.render = CachedRender(digest, request.revisions, None, copy.copy(error), until)
            log.info(
                "manifest generation failed: app=%s revision=%s error=%s",
                request.app.name,
                request.checkout.revision,
                error,
            )
            raise
        except LimitError as error:
            if not error.exhaustion_reason:
                raise
            is_repeated = cached is not None and (cached.digest, cached.revisions) == (digest, request.revisions)
            exhausted_count = cached.exhausted_count + 1 if cached is not None and is_repeated else 1
            raise self._remember_exhausted(error, request, memo, digest, exhausted_count) from None
        log.info(
            "manifests generated: app=%s path=%s repo=%s revision=%s manifests=%s tool=%s",
            request.app.name,
            request.source.path or request.source.chart or ".",
            request.source.repo_url,  # a URL that was checked out contains no password
            request.checkout.revision,
            len(rendered.manifests),
            rendered.tool,
        )
        memo.render = CachedRender(digest, request.revisions, rendered, charts=charts)
        return rendered

    def _source_memo(self, app: Application, source_index: int) -> SourceMemo:
        return self._memos[app.key].sources.setdefault(source_index, SourceMemo())

    def _find_render(self, app: ResourceKey, source_index: int) -> CachedRender | None:
        memo = self._memos.find(app)
        source_memo = None if memo is None else memo.sources.get(source_index)
        return None if source_memo is None else source_memo.render

    def _remember_exhausted(
        self,
        error: LimitError,
        request: RenderRequest,
        memo: SourceMemo,
        digest: str,
        exhausted_count: int,
    ) -> LimitError:
        """Remember a render that exhausted its worker; return the error with the time of the next try."""
        seconds = backoff_seconds(exhausted_count, FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS)
        retry_time = (self._now() + timedelta(seconds=seconds)).strftime("%H:%M:%S")
        key = request.app.key
        is_elsewhere = key.namespace and key.namespace != self.control_namespace
        name = f"{key.namespace}/{key.name}" if is_elsewhere else key.name
        new_error = copy.copy(error)
        new_error.message = (
            f"{error.message}; render {error.exhaustion_reason} ({_format_ordinal(exhausted_count)} time); "
            f"next try {retry_time} UTC; "
            f"retry now: argosy app get {name} --hard-refresh"
        )
        memo.render = CachedRender(
            digest, request.revisions, None, copy.copy(new_error), self._clock() + seconds, exhausted_count
        )
        log.warning(
            "render %s: app=%s revision=%s times=%s retry_seconds=%g",
            error.exhaustion_reason, request.app.name, request.checkout.revision, exhausted_count, seconds,
        )  # fmt: skip
        return new_error

    def seconds_until_retry(self, app: Application) -> float | None:
        """Return the seconds until an exhausted render of the Application is retried; None if none is waiting.

        A retry that is due does not count: if the pass fails before it renders, the entry stays as it is.
        """
        entries = [self._find_render(app.key, number) for number in range(len(app.sources))]
        waits = [entry.retry_at - self._clock() for entry in entries if entry is not None and entry.exhausted_count]
        return min((wait for wait in waits if wait > 0), default=None)

    def may_render_differently(self, request: RenderRequest, source_index: int) -> bool:
        """True if the source must be rendered again, as far as that is known without network access."""
        cached = self._find_render(request.app.key, source_index)
        if cached is None or cached.rendered is None or _list_remote_bases(cached.rendered, request):
            return True
        trees: dict[str, FileTree] = {"": request.checkout.tree}
        trees |= {f"${alias}": checkout.tree for alias, checkout in request.refs.items()}
        environment = build_environment(request.app, request.source, request.checkout.revision, request.settings)
        return not are_inputs_unchanged(cached.rendered.inputs, trees, environment)

    def list_entries(self, app: ResourceKey, source_count: int) -> tuple[object, ...]:
        """Return the cache entries of that many sources, to compare by identity."""
        return tuple(self._find_render(app, number) for number in range(source_count))

    def find_rendered(
        self, app: Application, settings: BuildSettings, revisions: Sequence[str]
    ) -> tuple[RenderResult, ...] | None:
        """Return the cached renders of all sources at these revisions. None if one is missing. Renders nothing."""
        if len(revisions) != len(app.sources):
            return None
        renders = []
        for number, source in enumerate(app.sources):
            if source.alias and not source.path and not source.chart:
                continue
            cached = self._find_render(app.key, number)
            if cached is None or cached.rendered is None or cached.digest != digest_source(app, source, settings):
                return None
            own_revision, *other_revisions = cached.revisions
            if revisions[number] not in (own_revision, *cached.equal_revisions) or not set(other_revisions) <= set(
                revisions
            ):
                return None
            renders.append(cached.rendered)
        return tuple(renders)

    def is_unchanged_since(self, app: ResourceKey, source_index: int, revision: str) -> bool:
        """True if this revision gave the same manifests as the newest one, and so did all between them."""
        cached = self._find_render(app, source_index)
        return cached is not None and revision in (*cached.revisions[:1], *cached.equal_revisions)

    async def _render_in_worker(
        self, request: RenderRequest, fetch: FetchRemote, fetch_charts: FetchDependencies | None
    ) -> tuple[RenderResult, Mapping[ChartRequest, Checkout]]:
        """Return the result, and the dependencies that were fetched for it."""
        try:
            return await self._render_with_variables(request, fetch, fetch_charts, PluginGitAccess(None))
        except GitAccessNeeded:
            if request.open_git_access is None:
                return await self._render_with_variables(request, fetch, fetch_charts, PluginGitAccess({}))
            async with request.open_git_access() as variables:
                access = PluginGitAccess(variables)
                return await self._render_with_variables(request, fetch, fetch_charts, access)

    async def _render_with_variables(
        self,
        request: RenderRequest,
        fetch: FetchRemote,
        fetch_charts: FetchDependencies | None,
        git_access: PluginGitAccess,
    ) -> tuple[RenderResult, Mapping[ChartRequest, Checkout]]:
        fetched: dict[tuple[str, str], FileTree] = {}
        charts: dict[ChartRequest, Checkout] = {}
        app = replace(request.app, wire={}, status={}, operation=None, state=None)  # reduces what is sent to the worker
        while True:
            self.render_count += 1
            call = partial(
                render,
                refs=dict(request.refs),
                fetch=FetchedRemoteBases(dict(fetched)),
                fetch_charts=FetchedCharts({chart: item.tree for chart, item in charts.items()})
                if fetch_charts
                else None,
                find_git_environment=git_access,
            )
            try:
                rendered: RenderResult = await self._workers.run(
                    call, request.checkout, app, request.source, request.settings
                )
                for manifest in rendered.manifests:
                    SHARED_TEXTS.share(manifest)
                return rendered, charts
            except RemoteBaseNeeded as needed:
                if len(fetched) >= MAX_REMOTE_BASES:
                    message = f"more than {MAX_REMOTE_BASES} remote bases; copy them into the repository"
                    raise RenderError(message, where=request.source.path) from None
                fetched[needed.url, needed.ref] = (await fetch(needed.url, needed.ref)).tree
            except ChartsNeeded as needed:
                if fetch_charts is None or len(charts) + len(needed.requests) > MAX_CHART_DEPENDENCIES:
                    message = f"the chart has more than {MAX_CHART_DEPENDENCIES} dependencies; put them into charts/"
                    raise RenderError(message, where=request.source.path or request.source.chart) from None
                charts |= zip(needed.requests, await fetch_charts(needed.requests), strict=True)


def _compute_digest_once(request: RenderRequest, memo: SourceMemo) -> str:
    """Return the digest of the last request if its inputs are identical."""
    cached = memo.digest
    if (
        cached is not None
        and cached.source is request.source
        and cached.settings is request.settings
        and cached.app_inputs == request.app_inputs
    ):
        return cached.digest
    memo.digest = CachedDigest(request.source, request.settings, request.app_inputs, request.compute_digest())
    return memo.digest.digest


def _format_ordinal(number: int) -> str:
    is_teen = 10 < number % 100 < 20
    return f"{number}{'th' if is_teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _list_remote_bases(rendered: RenderResult, request: RenderRequest) -> list[str]:
    """Return the remote bases among the inputs: they may change without a new revision of the source."""
    own_scopes = {"", *(f"${alias}" for alias in request.refs)}
    remote_scopes = {entry.scope for entry in rendered.inputs} - own_scopes
    return [scope for scope in remote_scopes if "/" in scope.rpartition("@")[0]]


async def _are_charts_current(charts: Mapping[ChartRequest, Checkout], fetch: FetchDependencies | None) -> bool:
    """True if the same archives are still there. Raises PolicyError if the project does not permit one any more.

    argo: a range is not resolved again before the next render.
    """
    if not charts:
        return True
    if fetch is None:
        return False
    pinned = [request._replace(version=checkout.revision) for request, checkout in charts.items()]
    return [item.tree for item in await fetch(pinned)] == [item.tree for item in charts.values()]


async def _is_current(rendered: RenderResult, request: RenderRequest, fetch: FetchRemote) -> bool:
    trees: dict[str, FileTree] = {"": request.checkout.tree}
    trees |= {f"${alias}": checkout.tree for alias, checkout in request.refs.items()}
    for base in _list_remote_bases(rendered, request):
        url, _, ref = base.rpartition("@")
        trees[base] = (await fetch(url, ref)).tree
    environment = build_environment(request.app, request.source, request.checkout.revision, request.settings)
    return are_inputs_unchanged(rendered.inputs, trees, environment)
