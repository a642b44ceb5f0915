"""Cluster liveness probe: refusals are reported at once, silence after a threshold, and calls then fail fast."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable

import pytest

from argosy.errors import ClusterError, TransientError, UserError
from argosy.kube.client import User
from argosy.kube.client.status_errors import ApiServerNotTrusted, ApiServerUnavailable
from argosy.kube.controller.clock import SYSTEM_CLOCK, run_with_timeout
from argosy.kube.controller.cluster_liveness import (
    FAILURE_THRESHOLD_SECONDS,
    PROBE_TIMEOUT_SECONDS,
    FailFastCluster,
    LivenessProbe,
)
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS
from support.engine import LeapingClock
from support.loop_clock import turns


async def answers() -> None:
    return None


async def silent() -> None:
    await asyncio.Event().wait()


async def refuses() -> None:
    raise ClusterError("Unauthorized", code=401, reason="Unauthorized")


async def is_away() -> None:
    raise ApiServerUnavailable("far: cannot be reached")


async def distrusts() -> None:
    raise ApiServerNotTrusted("far: its certificate is not trusted: unknown authority")


async def is_odd() -> None:
    raise AttributeError("'NoneType' object has no attribute 'get'")


async def has_no_program() -> None:
    raise UserError("the program is not installed")


async def beating(ask: Callable[[], Awaitable[None]], clock: LeapingClock) -> LivenessProbe:
    pulse = LivenessProbe(ask, clock)
    task = asyncio.create_task(pulse.run())
    await turns()
    pulse.task = task  # type: ignore[attr-defined]
    return pulse


@pytest.mark.parametrize("ask", [refuses, distrusts, has_no_program])
async def test_refusal_marks_the_cluster_dead_at_once(ask: Callable[[], Awaitable[None]]) -> None:
    pulse = await beating(ask, LeapingClock())
    assert pulse.dead.is_set() and pulse.failure and not pulse.alive.is_set()


@pytest.mark.parametrize("ask", [silent, is_away, is_odd])
async def test_silence_marks_the_cluster_dead_only_after_the_threshold(ask: Callable[[], Awaitable[None]]) -> None:
    clock = LeapingClock()
    pulse = await beating(ask, clock)
    assert not pulse.dead.is_set() and not pulse.failure
    for _ in range(4):
        clock.leap(max(PROBE_TIMEOUT_SECONDS, FAILURE_THRESHOLD_SECONDS / 2) + 0.1)
        await turns()
    assert pulse.dead.is_set()
    assert any(words in pulse.failure for words in ("in time", "reached", "cannot process"))
    pulse._probe = answers
    clock.leap(PROBE_TIMEOUT_SECONDS + 0.1)
    await asyncio.wait_for(pulse.alive.wait(), HANG_SECONDS)


async def test_running_call_is_cancelled_when_the_probe_fails() -> None:
    clock, ended = LeapingClock(), asyncio.Event()
    pulse = await beating(answers, clock)
    assert pulse.alive.is_set() and not pulse.is_slow

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    call = asyncio.create_task(pulse.run_while_alive(work()))
    pulse._probe = refuses
    clock.leap(6.0)
    with pytest.raises(ApiServerUnavailable, match="Unauthorized"):
        await asyncio.wait_for(call, HANG_SECONDS)
    assert ended.is_set()
    pulse._probe = answers
    clock.leap(2.0)
    await asyncio.wait_for(pulse.alive.wait(), HANG_SECONDS)
    assert not pulse.failure and not pulse.dead.is_set()


async def test_slow_probe_marks_the_cluster_slow() -> None:
    clock = LeapingClock()
    pulse = await beating(answers, clock)
    pulse._probe = silent
    clock.leap(6.0)
    await turns()
    clock.leap(3.0)
    assert pulse.is_slow and not pulse.failure


class Silent(EmbeddedCluster):
    """Cluster that never answers, for any user."""

    def acting_as(self, user: User) -> Silent:
        return self

    async def get(self, key: ResourceKey) -> Manifest | None:
        await silent()
        return None


async def test_impersonated_calls_fail_fast_too() -> None:
    async with ControlPlane.open() as plane:
        pulse = await beating(refuses, LeapingClock())
        other = FailFastCluster(Silent(plane), pulse).acting_as(User("ann"))
        with pytest.raises(ApiServerUnavailable, match="Unauthorized"):
            await other.get(ResourceKey("", "ConfigMap", "default", "a"))


async def test_failure_during_cancellation_is_not_logged_as_unretrieved() -> None:
    error_contexts: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: error_contexts.append(context))

    async def fails(gate: asyncio.Event) -> None:
        await gate.wait()
        raise TransientError("nobody is there")

    pulse = LivenessProbe(asyncio.Event().wait)
    for waits in (pulse.run_while_alive, lambda work: run_with_timeout(SYSTEM_CLOCK, 60.0, work)):
        gate = asyncio.Event()
        task = asyncio.create_task(waits(fails(gate)))
        await turns()
        gate.set()
        await asyncio.sleep(0)  # it has failed, and its waiter does not know yet
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        del task
    gc.collect()
    assert error_contexts == []
