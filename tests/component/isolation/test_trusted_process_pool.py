"""ProcessPool of trusted workers: results, error transport, deadlines, crashes and cleanup of processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import uvloop

import argosy
from argosy.errors import Conflict, LimitError, RenderError, TransientError, UnknownRef
from argosy.fair_share import Tenant, charge_work_to
from argosy.isolation import LimitExceeded, ProcessPool
from argosy.kube.resource_key import ResourceKey
from support import crew_functions
from support.deadlines import HANG_SECONDS, wait_until, wait_until_async
from support.own_process import run_in_own_process
from support.paths import TESTS
from support.processes import children, descriptors, is_running

PATH = [str(TESTS), str(Path(argosy.__file__).parents[1])]
MIB = 1 << 20
pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here to count processes in")


def play(scene, *, runner=asyncio.run, **options):
    """Run `scene` with its own process pool, and check that no worker is left."""

    async def whole():
        crew = ProcessPool(**options)
        try:
            return await scene(crew)
        finally:
            await crew.close()

    answer = runner(whole())
    wait_until(lambda: not workers(), "no worker is left")
    return answer


_of_others: set[int] = set()  # workers of pools left over from earlier tests in this process


@pytest.fixture(autouse=True)
def _note_workers_of_others() -> None:
    _of_others.clear()
    _of_others.update(workers())


def workers() -> set[int]:
    """Return the PIDs of the workers that this test has started, including zombies."""
    return {pid for pid in children(os.getpid()) if "trusted_pool_worker" in _command(pid)} - _of_others


def _command(pid: int) -> str:
    try:
        name = Path(f"/proc/{pid}/comm").read_text()
        return Path(f"/proc/{pid}/cmdline").read_text() or f"trusted_pool_worker? {name}"  # empty for a zombie
    except OSError:
        return ""


def test_prestarted_worker_takes_first_call_with_modules_imported():
    async def scene(crew):
        crew.start_first_worker()
        crew.start_first_worker()
        (worker_pid,) = workers()
        assert await crew.run(crew_functions.whoami) == worker_pid
        assert await crew.run(crew_functions.is_imported, "colorsys")
        crew.start_first_worker()
        assert workers() == {worker_pid}

    play(scene, modules=["colorsys"])


def test_unused_prestarted_worker_ends_with_the_pool():
    async def scene(crew):
        crew.start_first_worker()
        assert workers()

    play(scene)


def test_first_call_fails_if_the_worker_cannot_import_its_modules():
    async def scene(crew):
        crew.start_first_worker()
        with pytest.raises(TransientError, match="did not start"):
            await crew.run(crew_functions.whoami)

    play(scene, modules=["there_is_no_such_module"])


@pytest.mark.parametrize("runner", [asyncio.run, pytest.param(uvloop.run, marks=pytest.mark.tier("all"))])
def test_function_runs_in_another_process_and_returns_its_value(runner):
    async def scene(crew):
        assert await crew.run(crew_functions.add, 1, 2) == 3
        assert await crew.run(crew_functions.whoami) != os.getpid()
        large = b"x" * (20 * MIB)
        assert await crew.run(partial(crew_functions.add, other=b"y"), large) == large + b"y"

    play(scene, runner=runner)


def test_workers_start_on_demand_up_to_the_limit():
    async def scene(crew):
        sums = await asyncio.gather(*(crew.run(crew_functions.add, number, 1) for number in range(30)))
        assert sums == [*range(1, 31)]
        return len(workers())

    crew = ProcessPool(workers=2)
    assert not workers()
    asyncio.run(crew.close())
    assert play(scene, workers=2) == 2


@pytest.mark.tier("all")
def test_worker_keeps_module_state_between_calls():
    async def scene(crew):
        await crew.run(crew_functions.learn, "one")
        assert await crew.run(crew_functions.learn, "two") == ["one", "two"]

    play(scene, workers=1)


def test_argosy_errors_keep_type_and_attributes_across_processes():
    async def scene(crew):
        with pytest.raises(RenderError) as render:
            await crew.run(crew_functions.fail_to_render)
        assert (render.value.message, render.value.where) == ("no such file", "overlay/kustomization.yaml")
        assert str(render.value) == "overlay/kustomization.yaml: no such file"
        with pytest.raises(UnknownRef) as unknown:
            await crew.run(crew_functions.fail_with_an_unknown_ref)
        assert (unknown.value.where, "asked for main" in unknown.value.__notes__) == ("repo", True)
        with pytest.raises(LimitExceeded) as over:
            await crew.run(crew_functions.fail_over_a_limit)
        assert (over.value.limit, str(over.value)) == ("cpu", "check: too slow")
        with pytest.raises(Conflict) as conflict:
            await crew.run(crew_functions.fail_in_the_cluster)
        assert (conflict.value.code, conflict.value.details) == (409, {"a": 1})
        assert conflict.value.key == ResourceKey("apps", "Deployment", "default", "web")
        assert await crew.run(crew_functions.add, 1, 1) == 2

    play(scene)


def test_unexpected_errors_in_a_worker_are_raised_with_details():
    async def scene(crew):
        with pytest.raises(KeyError) as mistake:
            await crew.run(crew_functions.make_a_mistake)
        assert "make_a_mistake" in mistake.value.__notes__[0]
        with pytest.raises(RuntimeError, match="Local: inside"):
            await crew.run(crew_functions.make_a_mistake_that_cannot_travel)
        with pytest.raises(RuntimeError, match="SystemExit: 3"):
            await crew.run(crew_functions.ask_to_end)
        with pytest.raises(Exception, match="pickle"):
            await crew.run(crew_functions.give_what_cannot_travel)

    play(scene)


@pytest.mark.parametrize(
    "function",
    [crew_functions.spin, pytest.param(partial(crew_functions.wait_at, os.devnull), marks=pytest.mark.tier("all"))],
)
def test_call_over_its_deadline_ends_only_its_worker(function):
    async def scene(crew):
        first, second = await asyncio.gather(crew.run(crew_functions.whoami), crew.run(crew_functions.whoami))
        with pytest.raises(LimitError, match=r"app guestbook: takes longer than 0\.2 s"):
            await crew.run(function, seconds=0.2, where="app guestbook")
        assert await crew.run(crew_functions.whoami) in {first, second}
        await wait_until_async(lambda: [is_running(first), is_running(second)].count(True) == 1)

    play(scene, workers=2)


def test_memory_over_the_limit_raises_limit_error_and_pool_keeps_working():
    async def scene(crew):
        assert await crew.run(crew_functions.hoard, 20 * MIB) == 20 * MIB
        with pytest.raises(LimitError, match="more than 64 MiB"):
            await crew.run(crew_functions.hoard, 200 * MIB)
        with pytest.raises(LimitError, match="more than 64 MiB"):
            await crew.run(crew_functions.add, b"x" * 40 * MIB, b"")
        assert await crew.run(crew_functions.add, 1, 1) == 2

    play(scene, memory=64 * MIB)


@pytest.mark.tier("all")
def test_memory_kept_by_earlier_calls_does_not_fail_later_calls():
    async def scene(crew):
        full = await crew.run(crew_functions.keep, 28 * MIB)
        assert await crew.run(crew_functions.hoard, 50 * MIB) == 50 * MIB
        worn = await crew.run(crew_functions.keep, 40 * MIB)
        assert await crew.run(crew_functions.whoami) not in {full, worn}

    play(scene, workers=1, memory=64 * MIB)


@pytest.mark.parametrize(
    ("function", "argument", "said"),
    [
        pytest.param(crew_functions.leave, 0, "code 0", marks=pytest.mark.tier("all")),
        pytest.param(crew_functions.leave, 7, "code 7", marks=pytest.mark.tier("all")),
        (crew_functions.end_by, signal.SIGKILL, "SIGKILL"),
    ],
)
def test_crashed_worker_raises_transient_error_and_is_replaced(function, argument, said):
    async def scene(crew):
        with pytest.raises(TransientError, match=said):
            await crew.run(function, argument)
        assert await crew.run(crew_functions.add, 1, 1) == 2

    play(scene, workers=1)


@pytest.mark.tier("all")
def test_worker_killed_while_idle_is_replaced_without_an_error():
    async def scene(crew):
        pid = await crew.run(crew_functions.whoami)
        os.kill(pid, signal.SIGKILL)
        await wait_until_async(lambda: not is_running(pid))
        assert await crew.run(crew_functions.whoami) != pid

    play(scene, workers=1)


def test_cancelling_a_call_kills_its_worker_and_frees_its_slot(tmp_path):
    async def scene(crew):
        file = tmp_path / "pid"
        call = asyncio.create_task(crew.run(crew_functions.wait_at, file))
        await wait_until_async(lambda: file.exists() and file.read_text() != "")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await crew.run(crew_functions.add, 1, 1) == 2
        await wait_until_async(lambda: not is_running(int(file.read_text())))

    play(scene, workers=1)


def test_tenant_holding_all_workers_does_not_block_another_tenant(tmp_path):
    async def scene(crew):
        with charge_work_to(Tenant("hostile")):
            stuck = [
                asyncio.create_task(crew.run(crew_functions.wait_at, str(tmp_path / str(number)), HANG_SECONDS))
                for number in range(6)
            ]
        await wait_until_async(lambda: len(list(tmp_path.iterdir())) == 2)
        with charge_work_to(Tenant("team")):
            sums = await asyncio.gather(*(crew.run(crew_functions.add, number, 1) for number in range(10)))
        assert sums == list(range(1, 11))
        assert len(list(tmp_path.iterdir())) == 2 and crew.list_depths() == {"hostile": 4}
        assert not any(call.done() for call in stuck)
        for call in stuck:
            call.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)

    play(scene, workers=2, seconds=2 * HANG_SECONDS)


def test_surplus_worker_ends_when_idle(tmp_path, monkeypatch):
    async def scene(crew):
        with charge_work_to(Tenant("hostile")):
            stuck = asyncio.create_task(crew.run(crew_functions.wait_at, str(tmp_path / "at"), HANG_SECONDS))
        await wait_until_async((tmp_path / "at").exists)
        with charge_work_to(Tenant("team")):
            surplus = await crew.run(crew_functions.whoami)
        await wait_until_async(lambda: surplus not in workers())
        assert len(workers()) == 1 and not stuck.done()
        stuck.cancel()
        await asyncio.gather(stuck, return_exceptions=True)

    monkeypatch.setattr("argosy.isolation.trusted_process_pool.SURPLUS_IDLE_SECONDS", 0.01)
    play(scene, workers=1, seconds=2 * HANG_SECONDS)


def test_many_calls_on_a_surplus_worker_set_one_timer(tmp_path):
    async def scene(crew):
        with charge_work_to(Tenant("hostile")):
            stuck = asyncio.create_task(crew.run(crew_functions.wait_at, str(tmp_path / "at"), HANG_SECONDS))
        await wait_until_async((tmp_path / "at").exists)
        with charge_work_to(Tenant("team")):
            for _ in range(20):
                await crew.run(crew_functions.whoami)
        timers = [timer for timer in asyncio.get_running_loop()._scheduled if "_end_surplus" in repr(timer)]
        stuck.cancel()
        await asyncio.gather(stuck, return_exceptions=True)
        return len(timers)

    assert play(scene, workers=1, seconds=2 * HANG_SECONDS) == 1


def cancel_calls_at_any_moment():
    async def scene(crew):
        await crew.run(crew_functions.add, 1, 1)
        for ticks in range(12):
            call = asyncio.create_task(crew.run(crew_functions.add, b"x" * MIB, b"y"))
            for _ in range(ticks):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        assert await crew.run(crew_functions.add, 1, 1) == 2

    before = descriptors()
    play(scene, workers=2)
    wait_until(lambda: descriptors() <= before, "as few descriptors as before")


@pytest.mark.tier("all")
def test_cancelling_at_any_moment_leaks_no_process_and_no_descriptor():
    run_in_own_process(cancel_calls_at_any_moment)


def test_close_fails_running_and_later_calls(tmp_path):
    async def scene(crew):
        file = tmp_path / "pid"
        calls = [asyncio.create_task(crew.run(crew_functions.wait_at, file, seconds=HANG_SECONDS)) for _ in range(2)]
        await wait_until_async(lambda: file.exists() and file.read_text() != "")
        await crew.close()
        ends = await asyncio.gather(*calls, return_exceptions=True)
        assert [(type(end), "closed" in str(end)) for end in ends] == [(TransientError, True)] * 2
        with pytest.raises(TransientError, match="closed"):
            await crew.run(crew_functions.add, 1, 1)
        assert not is_running(int(file.read_text()))

    play(scene, workers=1)


@pytest.mark.tier("all")
def test_worker_has_no_terminal_and_ignores_interrupts():
    async def scene(crew):
        stdin, has_own_session, ignores_interrupt = await crew.run(crew_functions.surroundings)
        assert (stdin, has_own_session, ignores_interrupt) == ("", True, True)

    play(scene)


def test_pool_moves_to_a_new_event_loop_and_rejects_two_at_once():
    crew = ProcessPool(workers=1)
    first = asyncio.run(crew.run(crew_functions.whoami))

    async def again():
        pid = await crew.run(crew_functions.whoami)
        with pytest.raises(RuntimeError, match="one event loop"):
            await asyncio.to_thread(lambda: asyncio.run(crew.run(crew_functions.whoami)))
        await crew.close()
        return pid

    assert asyncio.run(again()) == first


@pytest.mark.tier("all")
def test_pool_can_be_closed_by_another_event_loop():
    crew = ProcessPool(workers=2)

    async def use():
        await asyncio.gather(crew.run(crew_functions.whoami), crew.run(crew_functions.whoami))
        with pytest.raises(LimitError):
            await crew.run(crew_functions.spin, seconds=0.05)

    asyncio.run(use())
    asyncio.run(crew.close())
    wait_until(lambda: not workers(), "no worker is left")


PARENT = """
import sys; sys.path[:0] = {path!r}
import asyncio
from argosy.isolation import ProcessPool
from support import crew_functions

async def main():
    crew = ProcessPool(workers=2)
    idle = await crew.run(crew_functions.whoami)
    busy = asyncio.create_task(crew.run(crew_functions.spin))
    await asyncio.sleep(0)  # it begins; an answer that is there at once would not let it
    other = await crew.run(crew_functions.whoami)
    print(idle, other, flush=True)
    await busy

asyncio.run(main())
"""


def test_sigkill_of_the_parent_leaves_no_worker():
    command = [sys.executable, "-c", PARENT.format(path=PATH)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        family = {int(pid) for pid in parent.stdout.readline().split()} | set(children(parent.pid))
        assert len(family) == 2 and all(is_running(pid) for pid in family)
        parent.kill()
    wait_until(lambda: not any(is_running(pid) for pid in family))


def test_pool_with_zero_workers_seconds_or_memory_raises_value_error():
    for options in ({"workers": 0}, {"seconds": 0}, {"memory": 0}):
        with pytest.raises(ValueError):
            ProcessPool(**options)
