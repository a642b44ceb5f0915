"""Reconcile throttling: the more objects a key depends on, the longer it waits."""

from __future__ import annotations

from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.simulators.reconcile_throttle import ReconcileThrottle
from support.engine import LeapingClock

KEY, OTHER = ResourceKey("", "Service", "default", "web"), ResourceKey("", "Service", "default", "other")


def test_reconcile_wait_grows_with_the_number_of_objects() -> None:
    clock, pace = LeapingClock(), ReconcileThrottle(0.0, 0.001)
    pace.record_reconcile(KEY, 5, clock)
    assert pace.compute_wait(KEY, clock) == 0
    pace.record_reconcile(KEY, 1_000, clock)
    assert 0.5 < pace.compute_wait(KEY, clock) <= 1.0 and pace.compute_wait(OTHER, clock) == 0
    clock.leap(1.1)
    assert pace.compute_wait(KEY, clock) == 0


def test_forgotten_key_does_not_wait() -> None:
    clock, pace = LeapingClock(), ReconcileThrottle(10.0, 0.0)
    pace.record_reconcile(KEY, 1, clock)
    pace.forget(KEY)
    assert pace.compute_wait(KEY, clock) == 0
