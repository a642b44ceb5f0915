"""One destination, and who works on it for the applications that go there.

In: a cluster, what is cached of it. Out: a Ground to look at and to operate on, or a Shut that says why nobody can.
Never: knows of another destination; decides when a cluster is opened.
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
    """Where the cache has all of every kind."""
    return True


def no_trouble(kind: GroupKind) -> str:
    """Where every kind can be listed."""
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
        """`applications`: where these are, if not here. `localised`: the rules as they hold for this cluster.

        `why_unlisted` says why a kind cannot be listed; empty if it can.
        """
        self.cluster, self.cache, self._why_unlisted = cluster, cache, why_unlisted
        self.looker = Looker(cluster, cache, Memory(), knows, applications=applications)
        self.operator = Operator(cluster, assembler, self.looker, now)
        self._localised = localised
        self._rules: tuple[Rules, Rules] | None = None

    def rules(self, rules: Rules) -> Rules:
        """The very same value as long as the rules are the same: what came of them is known by it."""
        if self._rules is None or self._rules[0] is not rules:
            self._rules = rules, self._localised(rules)
        return self._rules[1]

    def unlisted_conditions(self, look: Look) -> tuple[Condition, ...]:
        """Name each kind of the application that this cluster fails to list. Its objects are read one by one."""
        kinds = {key.group_kind for key in (*look.assembled.keys, *look.live)}
        return tuple(
            Condition(ConditionType.UNKNOWN_ERROR, f"{kind} cannot be listed, its objects are read one by one: {why}")
            for kind in sorted(kinds)
            if (why := self._why_unlisted(kind))
        )


@dataclass(frozen=True, slots=True)
class Shut:
    """Nobody can work there now. `said` is why; empty: it is too early to say, or others are in the way."""

    said: str = ""
    wait: float | None = None  # seconds until it is worth another try; None: whoever opens it tells


class Fleet(Protocol):
    """Where applications go."""

    def entered(self, app: Application) -> AbstractContextManager[Ground | Shut]:
        """The ground of its destination, which is in use until the end. The destination is one that is known."""

    def passed(self, app: ResourceKey) -> None:
        """Its passes are over for now, whether or not it came to its ground."""

    def grounds(self) -> Iterable[Ground]:
        """Those that are open."""


class OnlyHere:
    """A Fleet of one: all applications go to the cluster that they are in."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def entered(self, app: Application) -> AbstractContextManager[Ground | Shut]:
        if app.destination.is_here:
            return nullcontext(self._ground)
        return nullcontext(Shut(f"nobody here opens cluster {app.destination.name or app.destination.server}"))

    def passed(self, app: ResourceKey) -> None:
        pass

    def grounds(self) -> Iterable[Ground]:
        return (self._ground,)
