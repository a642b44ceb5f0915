"""An informer for every watched kind of a cluster, in one cache; informers start and stop as CRDs come and go.

In: a cluster, a filter of kinds, the kinds that define others (CRDs), and the required kinds. Out: a filled cache, and
one call for each change. Never: treats a kind that cannot be listed as empty; drops cached objects because the server
is unreachable; keeps more than metadata of a kind whose full objects are not needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from argosy.errors import ArgosyError, ClusterError
from argosy.kube.client import Catalog, ClusterReader
from argosy.kube.client.forwarding_cluster import Call, ForwardingReader, Send
from argosy.kube.client.reachability_log import choose_log_level
from argosy.kube.controller.cache import InformerCache
from argosy.kube.controller.clock import SYSTEM_CLOCK, Backoff, Clock, run_with_timeout, sleep
from argosy.kube.controller.informer import REFUSED_CODES, ChangeListener, Informer
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind

log = logging.getLogger(__name__)
T = TypeVar("T")

IsWatched = Callable[[GroupKind, Sequence[str]], bool]  # a kind, and the verbs that it is served with

UNREACHABLE_BACKOFF = Backoff(first_seconds=0.2, max_seconds=30.0, jitter=0.5)
REFUSED_BACKOFF = Backoff(first_seconds=30.0, max_seconds=600.0, jitter=0.2)  # a person must change a role first
DISCOVERY_DELAYS_SECONDS = (
    0.3,
    0.5,
    1.0,
    2.0,
    4.0,
)  # seconds between discoveries after a CRD change: its kind is served a little later
MIN_DISCOVERY_INTERVAL_SECONDS = 0.2  # seconds, minimum: many CRDs change together
DISCOVERY_INTERVAL_SECONDS = 120.0  # seconds between discoveries: kinds of extension API servers have no CRD
MAX_REFUSALS = 3  # refused lists of a kind after which `wait_synced` does not wait for it
MAX_LONE_FAILURES = (
    6  # failed lists of a kind, while other kinds work, after which it does not wait: about twelve seconds
)


class CachePolicy(Protocol):
    """Decides which parts of manifests the cache keeps."""

    def needs_full_objects(self, kind: GroupKind) -> bool:
        """True if full objects of the kind are always needed."""

    def requires_full_kind(self, manifest: Manifest) -> bool:
        """True if this object, cached as metadata, requires full objects of its kind."""

    def is_trimmed_too_much(self, manifest: Manifest) -> bool:
        """True if the full object is needed, but the cached one was trimmed."""

    def trim(self, manifest: Manifest) -> Manifest:
        """Return the manifest without the fields that are not needed."""


class KeepAll:
    """A policy that keeps full manifests of all kinds."""

    def needs_full_objects(self, kind: GroupKind) -> bool:
        return True

    def requires_full_kind(self, manifest: Manifest) -> bool:
        return False

    def is_trimmed_too_much(self, manifest: Manifest) -> bool:
        return False

    def trim(self, manifest: Manifest) -> Manifest:
        return manifest


@dataclass
class _WatchedKind:
    """A watched kind and its informer."""

    version: str
    is_full: bool
    informer: Informer
    task: asyncio.Task[None]
    failures: int = 0
    settled: asyncio.Event = field(default_factory=asyncio.Event)  # the first list succeeded or failed for good


class InformerSet:
    def __init__(
        self,
        cluster: ClusterReader,
        is_watched: IsWatched,
        cache: InformerCache,
        on_change: ChangeListener,
        *,
        definition_kinds: Iterable[GroupKind] = (),
        required_kinds: Iterable[GroupKind] = (),
        clock: Clock = SYSTEM_CLOCK,
        max_concurrent_lists: int = 8,
        cache_policy: CachePolicy | None = None,
    ) -> None:
        """A change of any object of the definition kinds (CRDs) triggers discovery.

        Required kinds are watched regardless of `is_watched`, and `wait_synced` waits for them without a time limit.
        """
        self._cache_policy: CachePolicy = cache_policy or KeepAll()
        self._full_kinds: set[GroupKind] = set()  # kinds whose full manifests are needed
        self._cluster, self._is_watched, self._cache, self._clock = cluster, is_watched, cache, clock
        self._limited_cluster = _ListLimitedReader(cluster, max_concurrent_lists)
        self._on_change = on_change
        self._definition_kinds, self._required_kinds = frozenset(definition_kinds), frozenset(required_kinds)
        self._watched: dict[GroupKind, _WatchedKind] = {}
        self._definition_tasks: dict[
            GroupKind, asyncio.Task[None]
        ] = {}  # watches of definition kinds, only to trigger discovery
        self._absent_kinds: set[GroupKind] = set()
        self._discovery_count = len(DISCOVERY_DELAYS_SECONDS)
        self._wakeup = asyncio.Event()
        self._discovered = asyncio.Event()
        self._state_changed = asyncio.Event()  # the state of a kind has changed since the last clear
        self._errors: dict[GroupKind, ArgosyError] = {}
        self._context = contextvars.copy_context()

    def require_kinds(self, kinds: Iterable[GroupKind]) -> None:
        """Add required kinds; call it before `run`."""
        self._required_kinds |= frozenset(kinds)

    async def run(self) -> None:
        """Discover kinds and run their informers until cancelled."""
        self._context, failures = contextvars.copy_context(), 0
        try:
            while True:
                try:
                    catalog = await self._cluster.kinds()
                except ArgosyError as error:
                    failures += 1
                    log.log(choose_log_level(error, logging.WARNING), "API discovery failed: error=%s", error)
                    await sleep(self._clock, UNREACHABLE_BACKOFF.delay(failures))
                    continue
                failures = 0
                await self._update_informers(catalog)
                self._discovered.set()
                await self._wait_for_next_discovery()
        finally:
            await _cancel_all([*(watched.task for watched in self._watched.values()), *self._definition_tasks.values()])
            self._watched.clear()
            self._definition_tasks.clear()

    async def wait_synced(self) -> None:
        """Wait until every kind of the first discovery was listed once; kinds that cannot be listed are in `errors`.

        Required kinds are always waited for: a server that starts may refuse any request for a short time.
        """
        await self._discovered.wait()
        for kind in tuple(self._watched):
            while (watched := self._watched.get(kind)) is not None and not watched.settled.is_set():
                await watched.settled.wait()  # loop: the informer may have been replaced meanwhile to get full objects
        last_logged: Sequence[str] = ()
        while missing := self.describe_unsynced_kinds():
            if missing != last_logged:
                log.warning("waiting for the initial list of required kinds: %s", "; ".join(missing))
            last_logged = missing
            self._state_changed.clear()
            await self._state_changed.wait()

    def describe_unsynced_kinds(self) -> list[str]:
        """List the reasons why required kinds are not synced yet."""
        return [
            f"{kind} is required, but cannot be listed: {self._errors.get(kind) or 'the cluster does not serve it'}"
            for kind in sorted(self._required_kinds)
            if not self.is_synced(kind)
        ]

    def rediscover(self) -> None:
        """Discover again, because the results of `is_watched` or the cache policy have changed."""
        for kind in tuple(self._watched):
            if any(map(self._cache_policy.is_trimmed_too_much, self._cache.list(kind))):
                self._full_kinds.add(kind)
                self._restart_in_full(kind)
        self._wakeup.set()

    @property
    def watched_kinds(self) -> frozenset[GroupKind]:
        """All watched kinds, including those that cannot be listed."""
        return frozenset(self._watched)

    def is_synced_in_full(self, kind: GroupKind) -> bool:
        """Like `is_synced`, but require full manifests: a kind cached as metadata is listed again in full."""
        self._require_full(kind)
        return self.is_synced(kind)

    def is_synced(self, kind: GroupKind) -> bool:
        """True if the cache has all objects of this kind. If False, an object missing in the cache may still exist."""
        if kind in self._errors or not self.was_synced(kind):
            return False
        # k8s: a server that starts may not serve all kinds yet, and required kinds were served before
        return kind not in self._required_kinds or self._watched[kind].informer.is_served

    def was_synced(self, kind: GroupKind) -> bool:
        """True if the cache had all objects of this kind once; it may be stale while the server is unreachable."""
        watched = self._watched.get(kind)
        return watched is not None and watched.informer.synced.is_set()

    @property
    def errors(self) -> Mapping[GroupKind, ArgosyError]:
        """Errors by kind; the cache of these kinds may be incomplete."""
        return self._errors

    def describe_list_error(self, kind: GroupKind) -> str:
        """Return why a kind cannot be listed; empty if it can, or if the server refuses it (401, 403, 405)."""
        error = self._errors.get(kind)
        is_refusal = isinstance(error, ClusterError) and error.code in REFUSED_CODES
        return "" if error is None or is_refusal else str(error)

    # -- discovery

    async def _wait_for_next_discovery(self) -> None:
        """Wait for a definition change or the next interval."""
        await sleep(self._clock, MIN_DISCOVERY_INTERVAL_SECONDS)
        seconds = (
            DISCOVERY_DELAYS_SECONDS[self._discovery_count]
            if self._discovery_count < len(DISCOVERY_DELAYS_SECONDS)
            else DISCOVERY_INTERVAL_SECONDS
        )
        self._discovery_count += 1
        with contextlib.suppress(TimeoutError):
            await run_with_timeout(self._clock, seconds, self._wakeup.wait())
        if self._wakeup.is_set():
            self._wakeup.clear()
            self._discovery_count = 0

    async def _update_informers(self, catalog: Catalog) -> None:
        versions = {
            kind: info.version
            for kind, info in catalog.items()
            if {"list", "watch"}.issubset(info.verbs)
            and (kind in self._required_kinds or self._is_watched(kind, info.verbs))
        }
        await self._remove_kinds([kind for kind in self._watched if kind not in versions], catalog)
        for kind, version in versions.items():
            watched = self._watched.get(kind)
            if watched is not None and watched.version == version:
                continue
            if watched is not None:  # cached objects stay, and are updated to the other version
                await _cancel_all([watched.task])
                watched.settled.set()
            self._watched[kind] = self._start_informer(kind, version)
        self._full_kinds &= catalog.keys()
        for kind in self._definition_kinds & catalog.keys() - self._definition_tasks.keys():
            self._definition_tasks[kind] = self._watch_definitions(kind)
        self._state_changed.set()

    async def _remove_kinds(self, kinds: Sequence[GroupKind], catalog: Catalog) -> None:
        """Stop informers. A kind counts as removed if two discoveries miss it: a starting server may omit kinds."""
        absent = {kind for kind in kinds if kind not in catalog}
        removed = [kind for kind in kinds if kind in catalog or kind in self._absent_kinds]
        self._absent_kinds = absent - set(removed)
        if self._absent_kinds:
            self._discovery_count = 0
        for kind in removed:
            watched = self._watched.pop(kind)
            await _cancel_all([watched.task])
            watched.settled.set()
            self._errors.pop(kind, None)
            for key in self._cache.keys(kind):
                self._notify(self._cache.drop(key), None)

    # -- one kind

    def _require_full(self, kind: GroupKind) -> None:
        """Cache full objects of the kind. Until they are listed, the kind is not synced."""
        if kind in self._full_kinds:
            return
        self._full_kinds.add(kind)
        watched = self._watched.get(kind)
        if watched is not None and not watched.is_full:
            self._restart_in_full(kind)

    def _restart_in_full(self, kind: GroupKind) -> None:
        log.debug("caching full objects: kind=%s", kind)
        watched = self._watched[kind]
        watched.task.cancel()  # if this is the current task, it ends at its next await
        self._watched[kind] = self._start_informer(kind, watched.version, force_update=True)
        watched.settled.set()

    def _start_informer(self, kind: GroupKind, version: str, *, force_update: bool = False) -> _WatchedKind:
        is_full = kind in self._full_kinds or self._cache_policy.needs_full_objects(kind)
        informer = Informer(
            self._limited_cluster,
            kind,
            self._cache,
            metadata_only=not is_full,
            clock=self._clock,
            refused_backoff=None
            if kind in self._required_kinds
            else REFUSED_BACKOFF,  # everything waits for required kinds
            transform=self._cache_policy.trim if is_full else _trim_to_metadata,
            force_update=force_update,
        )
        informer.listeners.append(self._notify if is_full else self._notify_metadata)
        watched = _WatchedKind(version, is_full, informer, self._run_informer(kind, informer))

        def report(error: ArgosyError | None) -> None:
            self._handle_report(kind, watched, error)

        informer.report_error = report
        return watched

    def _watch_definitions(self, kind: GroupKind) -> asyncio.Task[None]:
        informer = Informer(
            self._limited_cluster,
            kind,
            InformerCache(),
            metadata_only=True,
            clock=self._clock,
            refused_backoff=REFUSED_BACKOFF,
        )
        informer.listeners.append(lambda before, after: self._wakeup.set())
        return self._run_informer(kind, informer)

    def _run_informer(self, kind: GroupKind, informer: Informer) -> asyncio.Task[None]:
        async def run_forever() -> None:
            failures = 0
            while True:
                try:
                    await informer.run()
                except Exception as error:  # a failure of one kind must not stop the others
                    failures += 1
                    log.exception("informer failed, listing again: kind=%s", kind)
                    informer.reset_after_failure(error)
                    await sleep(self._clock, UNREACHABLE_BACKOFF.delay(failures))

        # Not the context of the caller: the informer outlives the reconcile that needed the kind first.
        return asyncio.create_task(run_forever(), name=f"everything {kind}", context=self._context.copy())

    def _handle_report(self, kind: GroupKind, watched: _WatchedKind, error: ArgosyError | None) -> None:
        self._state_changed.set()
        if error is None:
            watched.failures = 0
            watched.settled.set()
            self._errors.pop(kind, None)
            return
        watched.failures += 1
        self._errors[kind] = error
        # Wait for an unreachable server, because it comes back. A refusal may last for ever, and so may the failure of
        # a single kind, whose extension API server may be down.
        is_refused = isinstance(error, ClusterError) and (
            error.code in REFUSED_CODES or watched.failures >= MAX_REFUSALS
        )
        if is_refused or (watched.failures >= MAX_LONE_FAILURES and self._has_working_kind()):
            watched.settled.set()

    def _has_working_kind(self) -> bool:
        """True if at least one kind is listed and watched without errors."""
        return any(watched.settled.is_set() and not watched.failures for watched in self._watched.values())

    def _notify_metadata(self, old: Manifest | None, new: Manifest | None) -> None:
        if new is not None and self._cache_policy.requires_full_kind(new):
            self._require_full(key_of(new).group_kind)
        self._notify(old, new)

    def _notify(self, old: Manifest | None, new: Manifest | None) -> None:
        try:
            self._on_change(old, new)
        except Exception:  # a manifest that the listener cannot handle must not end the watch of its kind
            log.exception("change listener failed")


class _ListLimitedReader(ForwardingReader):
    """Limits concurrent lists."""

    def __init__(self, cluster: ClusterReader, max_concurrent_lists: int) -> None:
        super().__init__(cluster)
        self._semaphore = asyncio.Semaphore(max_concurrent_lists)

    async def _send(self, call: Call, send: Send[T]) -> T:
        if call.method != "list":
            return await send()
        async with self._semaphore:
            return await send()


def _trim_to_metadata(manifest: Manifest) -> Manifest:
    """Keep only metadata, without managedFields, even if the server returned the full object."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "managedFields"}
    return {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": metadata}


async def _cancel_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
