"""Decides whether an automated sync starts. Pure.

In: an Application, its comparison, the time. Out: a request, a delay, a refusal, or None. Never: starts a sync.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from argosy.gitops.application import Application, OperationRequest, OperationState, Progress, Retry, SyncRequest
from argosy.gitops.application.step_results import Comparison, Pair, SyncStatus
from argosy.kube.objects.timestamps import backoff_delay, remaining_delay
from argosy.kube.patch.merge_patch import without_nulls

USUAL_RETRY = Retry(limit=5)  # argo: retries of an automated sync without a retry policy


@dataclass(frozen=True, slots=True)
class HealBackoff:
    """The delay between two self-heals."""

    first: float = 2.0
    factor: float = 3.0
    longest: float = 300.0
    flat: float = 0.0  # argo: a constant delay, used if `first_seconds` is 0

    def delay(self, heals: int) -> float:
        if self.first <= 0:
            return self.flat
        return 0.0 if heals < 1 else backoff_delay(self.first, self.factor, min(heals - 1, 64), self.longest)


@dataclass(frozen=True, slots=True)
class Target:
    """The revisions to sync, in the order of the sources."""

    revisions: tuple[str, ...]
    may_hold_changes: bool = True  # argo: False if no file of the Application changed


@dataclass(frozen=True, slots=True)
class Start:
    request: OperationRequest


@dataclass(frozen=True, slots=True)
class Later:
    seconds: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """Becomes the condition SyncError."""

    message: str


Decision = Start | Later | Refusal | None


@dataclass(frozen=True, slots=True)
class _Facts:
    app: Application
    target: Target
    outdated: Sequence[Pair] = field(default_factory=tuple)


def decide(
    app: Application, comparison: Comparison, target: Target, now: datetime, backoff: HealBackoff | None = None
) -> Decision:
    """argo: checks in Argo CD's order; each is a reason to do nothing."""
    automated = app.policy.automated
    if automated is None or not automated.is_on or app.operation or app.deleted:
        return None
    if comparison.status is not SyncStatus.OUT_OF_SYNC:
        return None
    outdated = [pair for pair in comparison.pairs if pair.differs]
    if not automated.prune and all(pair.desired is None for pair in outdated):
        return None
    facts = _Facts(app, target, outdated)
    state = app.state
    is_heal = state is not None and is_attempted(app, state, target)
    if is_heal and state is not None:
        if state.progress is not Progress.SUCCEEDED:
            return Refusal(f"Failed last sync attempt to {_named(target)}: {state.message}")
        if not automated.self_heal:
            return None
        if (wait := _wait(state, now, backoff or HealBackoff())) > 0:
            return Later(wait)
    if automated.prune and not automated.allow_empty and _would_wipe(comparison):
        return Refusal("Skipping sync attempt to " + _named(target) + ": auto-sync will wipe out all resources")
    return Start(_request(facts, state if is_heal else None))


def _would_wipe(comparison: Comparison) -> bool:
    return bool(comparison.pairs) and all(pair.desired is None for pair in comparison.pairs)


def is_attempted(app: Application, state: OperationState, target: Target) -> bool:
    """True if the operation synced the same revisions and sources that a sync would use now."""
    if not state.has_result:
        return state.progress.is_over
    if target.may_hold_changes:
        synced = state.revisions if app.has_many_sources else (state.revision,)
        if synced != target.revisions:
            return False
    return are_same(state.sources, [source.wire for source in app.sources])


def are_same(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> bool:
    """k8s: a merge patch drops the nulls that sources may contain, for example in valuesObject, so they are ignored."""
    return [without_nulls(dict(each)) for each in one] == [without_nulls(dict(each)) for each in other]


def _wait(state: OperationState, now: datetime, backoff: HealBackoff) -> float:
    if not state.finished:
        return 0.0
    return remaining_delay(datetime.fromisoformat(state.finished), backoff.delay(state.request.sync.heals), now)


def _named(target: Target) -> str:
    return f"[{' '.join(target.revisions)}]"  # argo: formatted as Go prints a list


def _request(facts: _Facts, healed: OperationState | None) -> OperationRequest:
    app, revisions = facts.app, facts.target.revisions
    automated = app.policy.automated
    chosen = tuple(pair.key for pair in facts.outdated) if healed else ()
    sync = SyncRequest(
        revision="" if app.has_many_sources else (revisions[0] if revisions else ""),
        revisions=revisions if app.has_many_sources else (),
        prune=automated is not None and automated.prune,
        options=app.policy.options,
        sources=app.sources,
        resources=tuple(key._replace(namespace="") for key in chosen),  # argo: selected by kind and name
        heals=healed.request.sync.heals + 1 if healed else 0,
    )
    return OperationRequest(sync=sync, is_automated=True, retry=app.policy.retry or USUAL_RETRY)
