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
from argosy.gitops.diff import Memory
from argosy.gitops.live import CacheReader
from argosy.gitops.reconciler.app_state import Look, Looker
from argosy.gitops.reconciler.desired_state import Assembler
from argosy.gitops.reconciler.operation import Operator
from argosy.gitops.reconciler.read_your_writes import Doorway
from argosy.gitops.reconciler.settings import Rules
from argosy.gitops.status.conditions import Condition, ConditionType
from argosy.kube.names import GroupKind, ResourceKey


def everything(kind: GroupKind) -> bool:
    """Default for a cache that is complete for every kind."""
    return True


def no_trouble(kind: GroupKind) -> str:
    """Default for a cluster whose kinds can all be listed."""
    return ""


def as_they_are(rules: Rules) -> Rules:
    return rules


class Ground:
    def __init__(
        self,
        cluster: Doorway,
        cache: CacheReader,
        assembler: Assembler,
        now: Callable[[], datetime],
        *,
        knows: Callable[[GroupKind], bool] = everything,
        why_unlisted: Callable[[GroupKind], str] = no_trouble,
        applications: CacheReader | None = None,
        localised: Callable[[Rules], Rules] = as_they_are,
    ) -> None:
        """`applications`: the cache with the Applications, if they are in another cluster.

        `localize` adapts the settings to this cluster. `find_list_error` returns why a kind cannot be listed; "" if it
        can.
        """
        self.cluster, self.cache, self._why_unlisted = cluster, cache, why_unlisted
        self.looker = Looker(cluster, cache, Memory(), knows, applications=applications)
        self.operator = Operator(cluster, assembler, self.looker, now)
        self._localised = localised
        self._rules: tuple[Rules, Rules] | None = None

    def rules(self, rules: Rules) -> Rules:
        """Return the settings for this cluster: the identical object for identical settings, because caches compare
        identity.
        """
        if self._rules is None or self._rules[0] is not rules:
            self._rules = rules, self._localised(rules)
        return self._rules[1]

    def unlisted_conditions(self, look: Look) -> tuple[Condition, ...]:
        """Name each kind of the Application that this cluster fails to list. Its objects are read one by one."""
        kinds = {key.group_kind for key in (*look.assembled.keys, *look.live)}
        return tuple(
            Condition(ConditionType.UNKNOWN_ERROR, f"{kind} cannot be listed, its objects are read one by one: {why}")
            for kind in sorted(kinds)
            if (why := self._why_unlisted(kind))
        )


@dataclass(frozen=True, slots=True)
class Shut:
    """The destination cannot be used now. `reason` is empty if it is too early to tell, or if the cluster is busy."""

    said: str = ""
    wait: float | None = None  # seconds until the next try; None: the registry wakes the Application


class Fleet(Protocol):
    """The clusters that Applications are delivered to."""

    def entered(self, app: Application) -> AbstractContextManager[Ground | Shut]:
        """Enter the destination of the Application, a known cluster. It stays in use until the context ends."""

    def passed(self, app: ResourceKey) -> None:
        """Called when the passes of the Application are over for now, also if it never entered its destination."""

    def grounds(self) -> Iterable[Ground]:
        """Return the destinations that are connected."""


class OnlyHere:
    """A registry of one: Applications are delivered only to the cluster that they are in."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def entered(self, app: Application) -> AbstractContextManager[Ground | Shut]:
        if app.destination.is_here:
            return nullcontext(self._ground)
        return nullcontext(Shut(f"no connection to cluster {app.destination.name or app.destination.server}"))

    def passed(self, app: ResourceKey) -> None:
        pass

    def grounds(self) -> Iterable[Ground]:
        return (self._ground,)
