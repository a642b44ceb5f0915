"""What the reconciler remembers of each Application between passes: its state in one map, who delivers it in another.

In: keys of Applications. Out: one AppMemo and one OwnershipMemo for each. Never: holds what must survive a restart:
that is in the status of the Application.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.application import Application, Source
from argosy.gitops.application.step_results import Checkout, RenderResult
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.fetched_objects import FetchedObjects
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.render import BuildSettings, ChartRequest
from argosy.gitops.status.conditions import AppCondition
from argosy.gitops.sync.wave_step import AppliedMessages
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey


@dataclass(frozen=True, slots=True, weakref_slot=True)
class CachedRender:
    """The last render of one source, or the error that it ended with."""

    digest: str
    revisions: tuple[str, ...]
    rendered: RenderResult | None
    error: UserError | None = None
    retry_at: float = 0.0  # monotonic time of the next try
    exhausted_count: int = 0  # how often in a row it exhausted its worker
    equal_revisions: tuple[str, ...] = ()  # earlier revisions with the same manifests
    charts: Mapping[ChartRequest, Checkout] = field(default_factory=dict)  # dependencies that were fetched for it


@dataclass(frozen=True, slots=True)
class CachedDigest:
    """The digest of the inputs of a render, except for files."""

    source: Source
    settings: BuildSettings
    app_inputs: tuple[Any, ...]
    digest: str


@dataclass(slots=True)
class SourceMemo:
    render: CachedRender | None = None
    digest: CachedDigest | None = None


@dataclass(frozen=True, slots=True)
class TrackedManifests:
    """Desired manifests with tracking marks. Holds its inputs, so that no other object can get their identity."""

    inputs: tuple[Any, ...]
    namespace: str
    manifests: Sequence[Manifest]
    conditions: tuple[AppCondition, ...]
    keys: Sequence[ResourceKey]

    def is_valid_for(self, inputs: tuple[Any, ...], namespace: str) -> bool:
        same = len(self.inputs) == len(inputs) and all(map(operator.is_, self.inputs, inputs))
        return same and self.namespace == namespace


@dataclass(frozen=True, slots=True)
class CachedAppState:
    """An AppState and its inputs. It is valid as long as the inputs are identical."""

    inputs: tuple[Any, ...]
    spec: Any
    live: Mapping[ResourceKey, Manifest]
    app_state: AppState
    until: float  # monotonic; a health check may read the clock

    def is_valid_for(self, inputs: tuple[Any, ...], spec: Any, live: Mapping[ResourceKey, Manifest]) -> bool:
        return (
            all(map(operator.is_, self.inputs, inputs))
            and self.live.keys() == live.keys()
            and all(map(operator.is_, map(self.live.__getitem__, live), live.values()))
            and bool(self.spec == spec)
        )


@dataclass(frozen=True, slots=True)
class DryRunPrediction:
    """The response of a dry run for a manifest, while the live object had this version."""

    manifest: Manifest
    version: object
    predicted: Manifest


@dataclass(frozen=True, slots=True)
class CachedSummary:
    live: Mapping[ResourceKey, Manifest]
    annotations: Mapping[str, str]
    summary: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SettledPass:
    """The inputs of a pass that left nothing to do. While they are the same, no pass is needed."""

    app: Application
    app_state: AppState
    settings: ReconcilerSettings
    unlisted_conditions: tuple[AppCondition, ...] = ()

    def is_same_as(self, other: SettledPass) -> bool:
        return (
            self.app.wire is other.app.wire
            and self.app_state is other.app_state
            and self.settings is other.settings
            and self.unlisted_conditions == other.unlisted_conditions
        )


@dataclass(slots=True)
class ComparisonMemo:
    """The last comparison, and what was fetched for it."""

    cached: CachedAppState | None = None
    converted: FetchedObjects = field(default_factory=FetchedObjects)  # in the apiVersion that Git uses
    full_objects: FetchedObjects = field(default_factory=FetchedObjects)  # full versions of slim cache entries
    predictions: Mapping[ResourceKey, DryRunPrediction] = field(default_factory=dict)


@dataclass(slots=True)
class ConnectionMemo:
    """The part of a memo that is valid for one connection to one destination cluster."""

    connection: object
    comparison: ComparisonMemo = field(default_factory=ComparisonMemo)
    # Of an operation that syncs other revisions or sources than those of the Application: a rollback, or a branch that
    # moved on meanwhile.
    operation_comparison: ComparisonMemo | None = None
    # Start and number of an attempt of an operation, and the messages of what it applied. A pass whose state could not
    # be written is repeated, and must report the work of the first try.
    applied_messages: tuple[tuple[str, int], AppliedMessages] | None = None
    # The start of an operation that lies in the future because the clock was set back, and the monotonic time at which
    # that was seen.
    future_start: tuple[str, float] | None = None


@dataclass(slots=True)
class AppMemo:
    """Each part may be missing; then it is computed or observed again. Times are monotonic, in seconds."""

    parsed: tuple[Manifest, Application] | None = None
    requested_at: float | None = None  # last request for a refresh or an operation
    hard_refreshed_at: float | None = None
    owned_since: float | None = None  # when this replica took it over; None: it owns it since its start
    unreachable_since: float | None = None  # since when the Git host does not answer
    sources: dict[int, SourceMemo] = field(default_factory=dict)  # by their number
    local_render: tuple[tuple[str, ...], RenderResult] | None = None  # of manifests that an operation carries
    tracked: TrackedManifests | None = None
    summary: CachedSummary | None = None
    orphan_count: int | None = None  # in the last comparison
    settled: SettledPass | None = None
    unwritten: SettledPass | None = None  # settled once its patch is written
    _connection: ConnectionMemo | None = None

    def get_connection(self, connection: object) -> ConnectionMemo:
        """Return the part for this connection; the part for another one is dropped."""
        if self._connection is None or self._connection.connection is not connection:
            self._connection = ConnectionMemo(connection)
        return self._connection

    def drop_connection(self, connection: object) -> None:
        if self._connection is not None and self._connection.connection is connection:
            self._connection = None

    def drop_sources_from(self, count: int) -> None:
        """Free what was cached of sources that the Application no longer has."""
        for number in [number for number in self.sources if number >= count]:
            del self.sources[number]

    def invalidate(self) -> None:
        """Forget the last result, because a child of a managed object changed and health may differ."""
        self.settled = self.unwritten = self.summary = None


class AppMemos:
    """The memos of all Applications that one engine reconciles, or that one reader compares."""

    def __init__(self) -> None:
        self._memos: dict[ResourceKey, AppMemo] = {}

    def __getitem__(self, app: ResourceKey) -> AppMemo:
        """Return the memo of an Application; it is created on first use, so ask only for those that exist."""
        memo = self._memos.get(app)
        if memo is None:
            memo = self._memos[app] = AppMemo()
        return memo

    def __iter__(self) -> Iterator[AppMemo]:
        return iter(self._memos.values())

    def find(self, app: ResourceKey) -> AppMemo | None:
        return self._memos.get(app)

    def forget(self, app: ResourceKey) -> None:
        self._memos.pop(app, None)

    def drop_connection(self, connection: object) -> None:
        """Free what was cached of a cluster whose connection ended."""
        for memo in self._memos.values():
            memo.drop_connection(connection)


@dataclass(frozen=True, slots=True)
class OwnershipMemo:
    """Who delivers an Application, as far as this replica has seen it.

    It is no part of AppMemo, which is forgotten when another engine delivers the Application: this says that one does.
    """

    was_delivered_by_another_engine: bool = False  # until the handover is over
    handed_over_at: float | None = None  # monotonic; None: not handed over to argosy
    warning: str = ""  # the last one about its delivery, which is logged once
    fence: str = ""  # that this replica wrote; "": not claimed
    is_owned: bool = False  # by this replica, as of the last update, plus later claims


_NOTHING_SEEN: Final = OwnershipMemo()


class OwnershipMemos:
    """The ownership of all Applications that one engine watches."""

    def __init__(self) -> None:
        self._memos: dict[ResourceKey, OwnershipMemo] = {}

    def __getitem__(self, app: ResourceKey) -> OwnershipMemo:
        return self._memos.get(app, _NOTHING_SEEN)

    def __setitem__(self, app: ResourceKey, memo: OwnershipMemo) -> None:
        if memo == _NOTHING_SEEN:
            self.forget(app)
        else:
            self._memos[app] = memo

    def forget(self, app: ResourceKey) -> None:
        self._memos.pop(app, None)

    def list_owned(self) -> set[ResourceKey]:
        return {app for app, memo in self._memos.items() if memo.is_owned}
