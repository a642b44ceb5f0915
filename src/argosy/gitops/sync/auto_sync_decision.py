"""Decides whether an automated sync starts. Pure.

In: an Application, its comparison, the time. Out: a request, a delay, a refusal, or None. Never: starts a sync.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from argosy.gitops.application import (
    Application,
    OperationPhase,
    OperationRequest,
    OperationState,
    RetryStrategy,
    SyncRequest,
)
from argosy.gitops.application.sources import are_sources_equal
from argosy.gitops.application.step_results import AppComparison, Pair, SyncStatus
from argosy.kube.objects.timestamps_and_delays import backoff_delay, remaining_delay

DEFAULT_AUTO_SYNC_RETRY = RetryStrategy(limit=5)  # argo: retries of an automated sync without a retry policy


@dataclass(frozen=True, slots=True)
class HealBackoff:
    """The delay between two self-heals."""

    first_seconds: float = 2.0
    factor: float = 3.0
    max_seconds: float = 300.0
    constant_seconds: float = 0.0  # argo: a constant delay, used if `first_seconds` is 0

    def delay_seconds(self, heals: int) -> float:
        if self.first_seconds <= 0:
            return self.constant_seconds
        return (
            0.0 if heals < 1 else backoff_delay(self.first_seconds, self.factor, min(heals - 1, 64), self.max_seconds)
        )


@dataclass(frozen=True, slots=True)
class SyncTarget:
    """The revisions to sync, in the order of the sources."""

    revisions: tuple[str, ...]
    may_hold_changes: bool = True  # argo: False if no file of the Application changed


@dataclass(frozen=True, slots=True)
class StartSync:
    request: OperationRequest


@dataclass(frozen=True, slots=True)
class DelaySync:
    seconds: float


@dataclass(frozen=True, slots=True)
class RefuseSync:
    """Becomes the condition SyncError."""

    message: str


AutoSyncDecision = StartSync | DelaySync | RefuseSync | None


@dataclass(frozen=True, slots=True)
class _SyncFacts:
    app: Application
    target: SyncTarget
    out_of_sync: Sequence[Pair] = field(default_factory=tuple)


def decide_auto_sync(
    app: Application, comparison: AppComparison, target: SyncTarget, now: datetime, backoff: HealBackoff | None = None
) -> AutoSyncDecision:
    """argo: checks in Argo CD's order; each is a reason to do nothing."""
    automated = app.policy.automated
    if automated is None or not automated.is_on or app.operation or app.deletion_timestamp:
        return None
    if comparison.status is not SyncStatus.OUT_OF_SYNC:
        return None
    out_of_sync = [pair for pair in comparison.pairs if pair.differs]
    if not automated.prune and all(pair.desired is None for pair in out_of_sync):
        return None
    facts = _SyncFacts(app, target, out_of_sync)
    state = app.state
    is_heal = state is not None and is_already_attempted(app, state, target)
    if is_heal and state is not None:
        if state.phase is not OperationPhase.SUCCEEDED:
            return RefuseSync(f"Failed last sync attempt to {_format_revisions(target)}: {state.message}")
        if not automated.self_heal:
            return None
        if (wait := _seconds_until_heal(state, now, backoff or HealBackoff())) > 0:
            return DelaySync(wait)
    if automated.prune and not automated.allow_empty and _would_delete_everything(comparison):
        return RefuseSync(
            "Skipping sync attempt to " + _format_revisions(target) + ": auto-sync will wipe out all resources"
        )
    return StartSync(_build_request(facts, state if is_heal else None))


def _would_delete_everything(comparison: AppComparison) -> bool:
    return bool(comparison.pairs) and all(pair.desired is None for pair in comparison.pairs)


def is_already_attempted(app: Application, state: OperationState, target: SyncTarget) -> bool:
    """True if the operation synced the same revisions and sources that a sync would use now."""
    if state.request.sync.manifests:
        return False  # it synced nothing from Git
    if not state.has_result:
        return state.phase.is_over
    if target.may_hold_changes:
        synced = state.revisions if app.has_many_sources else (state.revision,)
        if synced != target.revisions:
            return False
    return are_sources_equal(state.sources, [source.wire for source in app.sources])


def _seconds_until_heal(state: OperationState, now: datetime, backoff: HealBackoff) -> float:
    if not state.finished:
        return 0.0
    return remaining_delay(
        datetime.fromisoformat(state.finished), backoff.delay_seconds(state.request.sync.heal_attempts), now
    )


def _format_revisions(target: SyncTarget) -> str:
    return f"[{' '.join(target.revisions)}]"  # argo: formatted as Go prints a list


def _build_request(facts: _SyncFacts, healed_operation: OperationState | None) -> OperationRequest:
    app, revisions = facts.app, facts.target.revisions
    automated = app.policy.automated
    selected_keys = tuple(pair.key for pair in facts.out_of_sync) if healed_operation else ()
    sync = SyncRequest(
        revision="" if app.has_many_sources else (revisions[0] if revisions else ""),
        revisions=revisions if app.has_many_sources else (),
        prune=automated is not None and automated.prune,
        options=app.policy.options,
        sources=app.sources,
        resources=tuple(key._replace(namespace="") for key in selected_keys),  # argo: selected by kind and name
        heal_attempts=healed_operation.request.sync.heal_attempts + 1 if healed_operation else 0,
    )
    return OperationRequest(sync=sync, is_automated=True, retry=app.policy.retry or DEFAULT_AUTO_SYNC_RETRY)
