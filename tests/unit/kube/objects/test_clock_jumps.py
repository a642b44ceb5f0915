"""Delays counted from a stored time stay within their bounds when the clock jumps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.gitops.application import RetryStrategy
from argosy.kube.objects.timestamps_and_delays import MAX_CLOCK_SKEW, remaining_delay
from support.examples import examples

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 30 * 86400.0
DELAYS = st.floats(0, 3600)
JUMPS = st.one_of(st.floats(-DAYS, DAYS), st.floats(-15, 15), st.sampled_from([-3600.0, 3600.0, -86400.0, 86400.0]))


@settings(max_examples=examples(500), deadline=None)
@given(DELAYS, st.floats(0, 1), JUMPS)
def test_clock_jump_never_extends_a_delay(delay: float, share: float, jump: float) -> None:
    now = BEGAN + timedelta(seconds=delay * share + jump)
    wait = remaining_delay(BEGAN, delay, now)
    assert 0 <= wait <= delay
    later = now + timedelta(seconds=wait) + MAX_CLOCK_SKEW
    assert wait == 0 or remaining_delay(BEGAN, delay, later) <= 1e-3


@settings(max_examples=examples(200), deadline=None)
@given(DELAYS, st.floats(0, 7200))
def test_remaining_delay_without_a_jump_is_the_delay_minus_elapsed_time(delay: float, passed: float) -> None:
    wait = remaining_delay(BEGAN, delay, BEGAN + timedelta(seconds=passed))
    assert abs(wait - max(delay - passed, 0)) < 1e-3


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(-(10**400), 10**400) | st.integers(-9, 10**6), st.integers(0, 10**6), st.floats(0, 1e300))
def test_retry_delay_is_between_zero_and_its_maximum_for_any_factor(factor: int, attempts: int, first: float) -> None:
    assert 0 <= RetryStrategy(limit=-1, duration=first, factor=factor).delay_seconds(attempts) <= 180
