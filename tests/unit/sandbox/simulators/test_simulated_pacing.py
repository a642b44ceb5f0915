"""Crowds are looked at together, and a few at once."""

from __future__ import annotations

from argosy.kube.names import ResourceKey
from argosy.sandbox.simulators.requeue_interval import Pace
from support.engine import LeapingClock

KEY, OTHER = ResourceKey("", "Service", "default", "web"), ResourceKey("", "Service", "default", "other")


def test_what_is_about_many_waits_and_what_is_about_few_does_not() -> None:
    clock, pace = LeapingClock(), Pace(0.0, 0.001)
    pace.looked(KEY, 5, clock)
    assert pace.wait(KEY, clock) == 0
    pace.looked(KEY, 1_000, clock)
    assert 0.5 < pace.wait(KEY, clock) <= 1.0 and pace.wait(OTHER, clock) == 0
    clock.leap(1.1)
    assert pace.wait(KEY, clock) == 0


def test_what_is_gone_is_forgotten() -> None:
    clock, pace = LeapingClock(), Pace(10.0, 0.0)
    pace.looked(KEY, 1, clock)
    pace.forget(KEY)
    assert pace.wait(KEY, clock) == 0
