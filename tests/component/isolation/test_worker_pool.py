"""WorkerPool: batches, fair queueing, cancellation, worker replacement, and no leaked process or descriptor."""

from __future__ import annotations

import asyncio
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import uvloop

import argosy
from argosy.errors import TransientError
from argosy.fair_share import Tenant, charge_work_to
from argosy.isolation import CallLimits, CrashError, LimitExceeded, WorkerPool
from argosy.isolation.worker_connection import CallBatch
from support.deadlines import HANG_SECONDS, wait_until, wait_until_async
from support.file_pools import FilePool
from support.loop_clock import LoopClock
from support.own_process import run_in_own_process
from support.paths import TESTS
from support.processes import children, cpu_ticks, descriptors, is_running
from support.proof_scale import is_full

HOSTILE = "support.hostile_functions"
PATH = [str(TESTS), str(Path(argosy.__file__).parents[1])]
LOOPING = CallLimits(wall=HANG_SECONDS, cpu=HANG_SECONDS)
POOL = FilePool(workers=2, preload=[HOSTILE])
close_pool = POOL.fixture()
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here to count processes in")


def play(scene, *, workers=2, runner=asyncio.run):
    """Run `scene` with its own pool."""

    async def whole():
        pool = WorkerPool(workers=workers, preload=[HOSTILE])
        try:
            return await scene(pool)
        finally:
            await pool.close()

    return runner(whole())


async def looping(pool, pid):
    """Start an endless call, and wait until the idle worker `pid` executes it."""
    idle = cpu_ticks(pid)
    call = asyncio.create_task(pool.run(f"{HOSTILE}:loop", None, limits=LOOPING))
    await wait_until_async(lambda: cpu_ticks(pid) > idle + 1, "the worker uses CPU")
    return call


def test_batch_returns_answers_in_payload_order():
    async def scene(pool):
        assert await pool.run_batch(f"{HOSTILE}:twice", range(3000)) == [number * 2 for number in range(3000)]
        assert await pool.run_batch(f"{HOSTILE}:twice", []) == []

    POOL.run(scene)


def test_failing_payloads_of_a_batch_do_not_affect_the_others():
    async def scene(pool):
        payloads = [1, "loop", 2, "leave", "memory", 3, "fail", "x" * 2000, 4]
        limits = CallLimits(wall=HANG_SECONDS, cpu=0.4, memory=64 << 20, input=1000)  # memory runs out long before
        answers = await pool.run_batch(f"{HOSTILE}:twice", payloads, limits=limits)
        assert [answer for answer in answers if isinstance(answer, int)] == [2, 4, 6, 8]
        assert [getattr(answers[i], "limit", None) for i in (1, 4, 7)] == ["cpu", "memory", "input"]
        assert type(answers[3]) is CrashError
        assert str(answers[6]) == "ValueError: None"

    POOL.run(scene)


def test_batch_of_only_rejected_payloads_returns_errors():
    async def scene(pool):
        answers = await pool.run_batch(f"{HOSTILE}:echo", ["x" * 2000] * 3, limits=CallLimits(input=1000))
        assert [answer.limit for answer in answers] == ["input"] * 3
        assert await pool.run(f"{HOSTILE}:echo", 1) == 1

    POOL.run(scene)


def test_batch_larger_than_any_buffer_is_answered():
    async def scene(pool):
        payloads = [str(number) * 100_000 for number in range(10)] * 3
        assert await pool.run_batch(f"{HOSTILE}:echo", payloads, limits=CallLimits(wall=HANG_SECONDS)) == payloads

    POOL.run(scene)


def test_wall_limit_applies_to_each_payload_of_a_batch(monkeypatch):
    async def scene(pool):
        clock, note = LoopClock(), CallBatch.record_answer

        def answer(batch, value):
            """Record the answer, and move the clock by 60 % of the wall limit."""
            note(batch, value)
            clock.leap(0.6 * HANG_SECONDS)

        monkeypatch.setattr(CallBatch, "record_answer", answer)
        assert await pool.run_batch(f"{HOSTILE}:sleep", [0.05] * 4, limits=LOOPING) == [0.05] * 4

    play(scene, workers=1)


@pytest.mark.tier("all")
def test_batch_over_the_cpu_lifetime_of_a_worker_is_finished_by_others():
    async def scene(pool):
        # With a limit of 0.1 s per call, a worker is killed after 2 s of CPU and must be replaced before that.
        answers = await pool.run_batch(f"{HOSTILE}:burn", [0.05] * 60, limits=CallLimits(wall=HANG_SECONDS, cpu=0.1))
        assert answers == [0.05] * 60

    play(scene)


def test_twenty_callers_share_two_workers_and_get_their_own_answers():
    async def scene(pool):
        async def caller(number):
            for turn in range(20):
                assert await pool.run(f"{HOSTILE}:echo", [number, turn]) == [number, turn]
            return (await pool.run(f"{HOSTILE}:identity", None))["pid"]

        pids = await asyncio.gather(*(caller(number) for number in range(20)))
        assert len(set(pids)) <= 2

    play(scene)


@pytest.mark.tier("all")
def test_calls_with_different_limits_do_not_grow_the_pool():
    async def scene(pool):
        server = (await pool.run(f"{HOSTILE}:identity", None))["ppid"]

        async def caller(number):
            await pool.run(f"{HOSTILE}:echo", 1, limits=CallLimits(memory=(100 + number) << 20))

        for _ in range(3):
            await asyncio.gather(*(caller(number) for number in range(6)))
            # A worker that is being stopped may take a while to end on a busy machine.
            await wait_until_async(lambda: len([pid for pid in children(server) if is_running(pid)]) <= 2)

    play(scene)


def test_slow_call_does_not_block_the_other_worker():
    async def scene(pool):
        slow = asyncio.create_task(pool.run(f"{HOSTILE}:sleep", 50, limits=CallLimits(wall=HANG_SECONDS)))
        for number in range(20):
            assert await pool.run(f"{HOSTILE}:echo", number) == number
        assert not slow.done()
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)

    POOL.run(scene)


@needs_proc
def test_tenant_holding_all_workers_does_not_block_another_tenant():
    async def scene(pool):
        with charge_work_to(Tenant("hostile")):
            stuck = [asyncio.create_task(pool.run(f"{HOSTILE}:sleep", 600, limits=LOOPING)) for _ in range(6)]
        await wait_until_async(lambda: pool.list_depths() == {"hostile": 4})
        with charge_work_to(Tenant("team")):
            assert await asyncio.gather(*(pool.run(f"{HOSTILE}:echo", number) for number in range(10))) == list(
                range(10)
            )
        assert pool.list_depths() == {"hostile": 4} and not any(call.done() for call in stuck)
        for call in stuck:
            call.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)

    play(scene)


def test_batch_with_killed_calls_lets_other_batches_use_the_worker():
    order = []

    async def scene(pool):
        async def batch(name, payloads, function="loop"):
            with charge_work_to(Tenant(name)):
                await pool.run_batch(f"{HOSTILE}:{function}", payloads, limits=CallLimits(cpu=0.2))
            order.append(name)

        hostile = asyncio.create_task(batch("team", [None] * 20))
        await wait_until_async(lambda: pool._slots.running == 1)
        await batch("team", [1], "echo")
        assert order == ["team"] and not hostile.done()
        hostile.cancel()
        await asyncio.gather(hostile, return_exceptions=True)

    play(scene, workers=1)


def test_cancelling_a_call_kills_its_worker_and_frees_its_slot():
    async def scene(pool):
        pid = (await pool.run(f"{HOSTILE}:identity", None, limits=LOOPING))["pid"]
        call = await looping(pool, pid)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await pool.run(f"{HOSTILE}:identity", None, limits=LOOPING))["pid"] != pid
        await wait_until_async(lambda: not is_running(pid))

    play(scene, workers=1)


def cancel_calls_at_any_moment():
    async def scene(pool):
        server = (await pool.run(f"{HOSTILE}:identity", None))["ppid"]
        before = descriptors()
        for number in range(60 if is_full() else 20):
            # Different limits each time, so each call needs a new worker.
            limits = CallLimits(wall=HANG_SECONDS, memory=(64 + number) << 20)
            call = asyncio.create_task(pool.run(f"{HOSTILE}:loop", None, limits=limits))
            await asyncio.sleep(number / 10_000 * (1 if is_full() else 3))
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        assert await pool.run(f"{HOSTILE}:echo", 1) == 1
        await wait_until_async(lambda: len(children(server)) <= 2)
        await wait_until_async(lambda: descriptors() <= before + 1, "as few descriptors as before")

    play(scene)


@needs_proc
@pytest.mark.tier("test", "prove")
def test_cancelling_at_any_moment_leaks_no_process_and_no_descriptor():
    run_in_own_process(cancel_calls_at_any_moment)


def test_answer_in_time_is_accepted_even_if_the_event_loop_was_busy():
    async def scene(pool):
        await pool.run(f"{HOSTILE}:echo", 1)
        call = asyncio.create_task(pool.run(f"{HOSTILE}:sleep", 0.02, limits=CallLimits(wall=0.2)))
        await asyncio.sleep(0)
        (worker,) = pool._workers
        assert worker._batch, "the worker has its call"
        # Block the event loop until the answer has arrived, and then until the limit has passed.
        assert select.select([worker._channel], [], [], HANG_SECONDS)[0]
        time.sleep(0.3)
        assert await call == 0.02

    play(scene)


def test_worker_is_reused_and_replaced_after_many_calls():
    async def scene(pool):
        first = (await pool.run(f"{HOSTILE}:identity", None))["pid"]
        assert (await pool.run(f"{HOSTILE}:identity", None))["pid"] == first
        await pool.run_batch(f"{HOSTILE}:echo", range(1000))
        assert (await pool.run(f"{HOSTILE}:identity", None))["pid"] != first

    play(scene, workers=1)


@needs_proc
def test_killed_fork_server_raises_transient_error_and_is_restarted():
    async def scene(pool):
        identity = await pool.run(f"{HOSTILE}:identity", None, limits=LOOPING)
        call = await looping(pool, identity["pid"])
        os.kill(identity["ppid"], signal.SIGKILL)
        with pytest.raises(TransientError):
            await call
        assert (await pool.run(f"{HOSTILE}:identity", None))["ppid"] != identity["ppid"]
        await wait_until_async(lambda: not is_running(identity["pid"]))

    play(scene)


def test_worker_killed_while_idle_is_replaced_without_an_error():
    async def scene(pool):
        pid = (await pool.run(f"{HOSTILE}:identity", None))["pid"]
        os.kill(pid, signal.SIGKILL)
        assert (await pool.run(f"{HOSTILE}:identity", None))["pid"] != pid

    play(scene, workers=1)


def test_close_fails_running_and_waiting_calls():
    async def scene(pool):
        call = asyncio.create_task(pool.run(f"{HOSTILE}:loop", None, limits=CallLimits(wall=HANG_SECONDS)))
        waiting = asyncio.create_task(pool.run(f"{HOSTILE}:echo", None))
        await wait_until_async(lambda: any(worker._batch for worker in pool._workers), "a worker has the first call")
        await pool.close()
        for task in (call, waiting):
            with pytest.raises(TransientError, match="the pool was closed"):
                await task

    play(scene, workers=1)


def test_pool_moves_to_a_new_event_loop_and_rejects_two_at_once():
    pool = WorkerPool(preload=[HOSTILE])

    async def use():
        return (await pool.run(f"{HOSTILE}:identity", None))["ppid"]

    with asyncio.Runner() as first:
        server = first.run(use())
        with asyncio.Runner() as second, pytest.raises(RuntimeError, match="belongs to one event loop"):
            second.run(use())

    async def use_and_close():
        try:
            return await use()
        finally:
            await pool.close()

    assert asyncio.run(use_and_close()) != server
    assert not is_running(server)


@pytest.mark.tier("all")
def test_pool_works_on_uvloop():
    async def scene(pool):
        limits = CallLimits(wall=HANG_SECONDS, cpu=0.2)
        answers = await pool.run_batch(f"{HOSTILE}:twice", [1, "leave", "loop", 2], limits=limits)
        assert (answers[0], answers[3]) == (2, 4)
        assert isinstance(answers[1], CrashError) and isinstance(answers[2], LimitExceeded)

    play(scene, runner=uvloop.run)


def kill_five_hundred_calls():
    async def scene(pool):
        server = (await pool.run(f"{HOSTILE}:identity", None))["ppid"]
        before = descriptors()
        short = CallLimits(wall=0.01)
        for start in range(0, 500, 10):
            late = [pool.run(f"{HOSTILE}:loop", None, limits=short) for _ in range(2)]
            floods = [pool.run(f"{HOSTILE}:raw_flood", None) for _ in range(8)]
            ends = await asyncio.gather(*late, *floods, return_exceptions=True)
            assert {type(end) for end in ends} == {LimitExceeded}, start
        await wait_until_async(lambda: children(server) == [])
        await wait_until_async(lambda: descriptors() <= before, "as few descriptors as before")
        return server

    before = descriptors()
    server = play(scene)
    wait_until(lambda: not Path(f"/proc/{server}").exists(), "the fork server has ended")
    wait_until(lambda: descriptors() <= before, "as few descriptors as before")


@needs_proc
@pytest.mark.tier("all")
def test_five_hundred_killed_calls_leak_no_process_and_no_descriptor():
    run_in_own_process(kill_five_hundred_calls)


PARENT = """
import asyncio, sys
sys.path[:0] = {path!r}
from argosy.isolation import CallLimits, WorkerPool

async def main():
    pool = WorkerPool(workers=2, preload=["support.hostile_functions"])
    found = [await pool.run("support.hostile_functions:identity", None)]
    looping = [pool.run("support.hostile_functions:loop", None, limits=CallLimits(wall=9999, cpu=60)) for _ in range(2)]
    calls = [asyncio.create_task(call) for call in looping]
    print(found[0]["ppid"], flush=True)
    await asyncio.gather(*calls)

asyncio.run(main())
"""


ROOT_FOR_GOOD = """
import asyncio, json, sys
sys.path[:0] = {path!r}
from argosy.isolation import WorkerPool

async def main():
    pool = WorkerPool(workers=1, preload=["support.hostile_functions"])
    pids = await pool.run("support.hostile_functions:fork", None)
    print(json.dumps([pool.get_confinement().uid, pool.get_confinement().missing, pids]))
    await pool.close()

asyncio.run(main())
"""


@needs_proc
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_unchangeable_root_user_is_reported_and_forked_processes_are_killed():
    powers = "-setuid,-setgid,-sys_admin"
    command = ["setpriv", "--bounding-set", powers, sys.executable, "-c", ROOT_FOR_GOOD.format(path=PATH)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=HANG_SECONDS)
    uid, missing, pids = json.loads(done.stdout)
    assert uid == 0 and any(sentence.startswith("user: still root") for sentence in missing)
    assert len(pids) == 20
    wait_until(lambda: not any(is_running(pid) for pid in pids))


def running_children(pid: int) -> list[int]:
    """Return only children that still run: an idle worker ends when one with other limits replaces it."""
    return [child for child in children(pid) if is_running(child)]


@needs_proc
def test_sigkill_of_the_parent_leaves_no_process():
    command = [sys.executable, "-c", PARENT.format(path=PATH)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        server = int(parent.stdout.readline())
        family = [server, *wait_until(lambda: (workers := running_children(server))[1:] and workers, "two workers")]
        parent.kill()
    wait_until(lambda: not any(is_running(pid) for pid in family))
