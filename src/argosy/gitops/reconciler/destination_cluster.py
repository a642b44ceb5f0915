"""One destination cluster, with what compares and operates on it for Applications.

In: a cluster and its cache. Out: a DestinationCluster, or a DestinationUnavailable that says why. Never: knows another
destination; decides when a connection is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from argosy.gitops.application import Application
from argosy.gitops.diff import DiffCache
from argosy.gitops.live import CacheReader
from argosy.gitops.reconciler.app_memo import AppMemos
from argosy.gitops.reconciler.app_state_comparison import AppStateComparer
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.desired_state_builder import DesiredStateBuilder
from argosy.gitops.reconciler.operation_runner import OperationRunner
from argosy.gitops.reconciler.read_your_writes import ReadYourWritesClient
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.status.conditions import AppCondition, ConditionType
from argosy.kube.resource_key import GroupKind, ResourceKey


def every_kind_is_cached(kind: GroupKind) -> bool:
    """Default for a cache that is complete for every kind."""
    return True


def no_list_error(kind: GroupKind) -> str:
    """Default for a cluster whose kinds can all be listed."""
    return ""


def use_settings_unchanged(settings: ReconcilerSettings) -> ReconcilerSettings:
    return settings


class DestinationCluster:
    def __init__(
        self,
        cluster: ReadYourWritesClient,
        cache: CacheReader,
        desired_states: DesiredStateBuilder,
        memos: AppMemos,
        now: Callable[[], datetime],
        *,
        is_kind_cached: Callable[[GroupKind], bool] = every_kind_is_cached,
        find_list_error: Callable[[GroupKind], str] = no_list_error,
        applications: CacheReader | None = None,
        localize: Callable[[ReconcilerSettings], ReconcilerSettings] = use_settings_unchanged,
    ) -> None:
        """`applications`: the cache with the Applications, if they are in another cluster.

        `localize` adapts the settings to this cluster. `find_list_error` returns why a kind cannot be listed; "" if it
        can.
        """
        self.cluster, self.cache, self._find_list_error = cluster, cache, find_list_error
        self.comparer = AppStateComparer(cluster, cache, DiffCache(), is_kind_cached, applications=applications)
        self.operation_runner = OperationRunner(cluster, desired_states, self.comparer, now, memos)
        self._localize = localize
        self._localized: tuple[ReconcilerSettings, ReconcilerSettings] | None = None

    def localize_settings(self, settings: ReconcilerSettings) -> ReconcilerSettings:
        """Return the settings for this cluster: the identical object for identical settings, because caches compare
        identity.
        """
        if self._localized is None or self._localized[0] is not settings:
            self._localized = settings, self._localize(settings)
        return self._localized[1]

    def unlisted_conditions(self, app_state: AppState) -> tuple[AppCondition, ...]:
        """Name each kind of the Application that this cluster fails to list. Its objects are read one by one."""
        kinds = {key.group_kind for key in (*app_state.desired.keys, *app_state.live)}
        return tuple(
            AppCondition(
                ConditionType.UNKNOWN_ERROR, f"{kind} cannot be listed, its objects are read one by one: {why}"
            )
            for kind in sorted(kinds)
            if (why := self._find_list_error(kind))
        )


@dataclass(frozen=True, slots=True)
class DestinationUnavailable:
    """The destination cannot be used now. `reason` is empty if it is too early to tell, or if the cluster is busy."""

    reason: str = ""
    wait: float | None = None  # seconds until the next try; None: the registry wakes the Application


class DestinationRegistry(Protocol):
    """The clusters that Applications are delivered to."""

    def enter(self, app: Application) -> AbstractContextManager[DestinationCluster | DestinationUnavailable]:
        """Enter the destination of the Application, a known cluster. It stays in use until the context ends."""

    def on_passes_finished(self, app: ResourceKey) -> None:
        """Called when the passes of the Application are over for now, also if it never entered its destination."""

    def list_connected(self) -> Iterable[DestinationCluster]:
        """Return the destinations that are connected."""


class LocalDestinationRegistry:
    """A registry of one: Applications are delivered only to the cluster that they are in."""

    def __init__(self, destination: DestinationCluster) -> None:
        self._destination = destination

    def enter(self, app: Application) -> AbstractContextManager[DestinationCluster | DestinationUnavailable]:
        if app.destination.is_in_cluster:
            return nullcontext(self._destination)
        return nullcontext(
            DestinationUnavailable(f"no connection to cluster {app.destination.name or app.destination.server}")
        )

    def on_passes_finished(self, app: ResourceKey) -> None:
        pass

    def list_connected(self) -> Iterable[DestinationCluster]:
        return (self._destination,)
