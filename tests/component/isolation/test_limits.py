"""Every limit ends the call that goes over it, says so, and leaves the pool working."""

from __future__ import annotations

import asyncio

import pytest

from argosy.errors import LimitError, TransientError, UserError
from argosy.isolation import CallLimits, ConfinedError, CrashError, LimitExceeded, RefusedError, WorkerPool
from support.deadlines import HANG_SECONDS
from support.file_pools import FilePool
from support.tiers import IN_TEST_ALL

HOSTILE = "support.hostile_functions"
POOL = FilePool(workers=1, preload=[HOSTILE])
close_pool = POOL.fixture()


def ask(function, payload=None, *, limits=None, then=7):
    """What comes of one call; afterwards the same pool must still answer."""

    async def scene(pool):
        try:
            answer = await pool.run(f"{HOSTILE}:{function}", payload, limits=limits)
        except UserError as problem:
            answer = problem
        assert await pool.run(f"{HOSTILE}:echo", then) == then
        return answer

    return POOL.run(scene)


def test_an_answer_is_the_functions_answer():
    assert ask("echo", {"a": [1, None, "ü"]}) == {"a": [1, None, "ü"]}


@pytest.mark.parametrize("function", ["loop", "huge_power", "slow_regex"])
def test_what_never_ends_is_killed_at_the_wall_limit_in_c_code_too(function):
    error = ask(function, limits=CallLimits(wall=0.2, cpu=60))
    assert isinstance(error, LimitExceeded) and error.limit == "wall"
    assert str(error) == f"{HOSTILE}:{function}: took longer than 0.2 s (limit wall)"


@pytest.mark.parametrize("function", ["huge_power", "slow_regex"])
def test_what_burns_cpu_in_c_code_is_killed_at_the_cpu_limit(function):
    error = ask(function, limits=CallLimits(wall=HANG_SECONDS, cpu=0.2))
    assert isinstance(error, LimitExceeded) and error.limit == "cpu"
    assert "0.2 s of CPU (limit cpu)" in str(error)


def test_sleeping_uses_no_cpu_so_only_the_wall_limit_counts():
    assert ask("sleep", 0.3, limits=CallLimits(wall=HANG_SECONDS, cpu=0.1)) == 0.3


@pytest.mark.parametrize(("function", "payload"), [("memory", None), ("big_allocation", 1 << 30)])
def test_who_wants_too_much_memory_is_told_the_memory_limit(function, payload):
    error = ask(function, payload, limits=CallLimits(wall=HANG_SECONDS, memory=64 << 20))
    assert isinstance(error, LimitError) and error.limit == "memory"
    assert "64 MiB of memory (limit memory)" in str(error)


def test_a_call_may_use_the_memory_that_its_limit_allows():
    limits = CallLimits(wall=HANG_SECONDS, memory=64 << 20)
    assert ask("big_allocation", 48 << 20, limits=limits) == 48 << 20


def test_an_answer_over_the_output_limit_is_refused_and_one_at_the_limit_is_not():
    limits = CallLimits(output=1000)
    assert ask("flood", 998, limits=limits) == "x" * 998  # and two quotes
    error = ask("flood", 999, limits=limits)
    assert isinstance(error, LimitExceeded) and error.limit == "output"


@pytest.mark.parametrize("size", [20 << 20, *(pytest.param(size << 20, marks=IN_TEST_ALL) for size in (40, 60))])
def test_an_answer_that_fills_the_memory_is_a_limits_error_or_an_answer_but_no_crash(size):
    answer = ask("flood", size, limits=CallLimits(wall=HANG_SECONDS, memory=64 << 20, output=100 << 20))
    assert answer == "x" * size or answer.limit == "memory"


@pytest.mark.parametrize("function", ["bomb", "circle"])
def test_an_answer_that_is_small_in_memory_but_endless_as_json_is_over_the_output_limit(function):
    error = ask(function, limits=CallLimits(wall=HANG_SECONDS, cpu=20, output=1 << 20))
    assert isinstance(error, LimitExceeded) and error.limit == "output"


def test_a_large_answer_under_the_limit_arrives_whole():
    assert ask("flood", 9 << 20, limits=CallLimits(wall=HANG_SECONDS)) == "x" * (9 << 20)


def test_a_large_input_arrives_whole():
    text = "y" * (20 << 20)
    assert ask("echo", text, limits=CallLimits(wall=HANG_SECONDS, output=30 << 20)) == text


def test_a_worker_that_was_taken_over_cannot_flood_the_parent():
    error = ask("raw_flood", limits=CallLimits(wall=HANG_SECONDS))
    assert isinstance(error, LimitExceeded) and error.limit == "output"


def test_an_answer_that_nobody_asked_for_never_reaches_another_call():
    async def scene(pool):
        for number in range(5, 25):
            try:
                await pool.run(f"{HOSTILE}:chatter", number)
            except CrashError:
                pass
            assert await pool.run(f"{HOSTILE}:echo", number) == number

    POOL.run(scene)


def test_an_input_over_the_input_limit_is_refused():
    error = ask("echo", "x" * 999, limits=CallLimits(input=1000))
    assert isinstance(error, LimitExceeded) and error.limit == "input"
    assert ask("echo", "x" * 998, limits=CallLimits(input=1000)) == "x" * 998


def test_an_input_that_is_not_json_is_refused():
    assert "the input is not JSON" in str(ask("echo", {1, 2}))


@pytest.mark.parametrize(
    ("function", "payload", "text"),
    [
        ("leave", 3, f"{HOSTILE}:leave: the worker exited with code 3 during the call"),
        ("leave", 0, f"{HOSTILE}:leave: the worker exited with code 0 during the call"),
        ("abort", None, f"{HOSTILE}:abort: the worker crashed (SIGABRT)"),
        ("fault", None, f"{HOSTILE}:fault: the worker crashed (SIGSEGV)"),
    ],
)
def test_a_worker_that_ends_by_itself_gives_a_clear_error(function, payload, text):
    error = ask(function, payload)
    assert isinstance(error, CrashError)
    assert str(error) == text


@pytest.mark.parametrize(
    ("function", "payload", "text"),
    [
        ("fail", "no such field", "ValueError: no such field"),
        ("fail", "", "ValueError"),
        ("exit_politely", None, "SystemExit: 3"),
        ("recurse", None, "RecursionError: maximum recursion depth exceeded"),
        ("not_json", None, "the answer is not JSON: Type is not JSON serializable: set"),
    ],
)
def test_an_exception_comes_back_as_its_text_without_a_traceback(function, payload, text):
    error = ask(function, payload)
    assert type(error) is ConfinedError
    assert str(error) == text


def test_an_endless_exception_text_is_cut():
    assert len(str(ask("fail_at_length", 1 << 20))) < 5000


@pytest.mark.parametrize(
    "function",
    [
        "os:system",
        "argosy:x",
        "argosyx.y:f",
        ":f",
        *(HOSTILE + rest for rest in ("", ":", ":echo.__globals__", ".sub:f")),
    ],
)
def test_functions_outside_argosy_and_of_modules_that_were_not_named_are_refused(function):
    with pytest.raises(RefusedError, match="not a function of argosy or of a module that the pool preloads"):
        asyncio.run(WorkerPool(preload=[HOSTILE]).run(function, None))


@pytest.mark.parametrize("function", [f"{HOSTILE}:answer", f"{HOSTILE}:absent", "argosy.errors:absent"])
def test_what_is_not_a_function_of_its_module_is_refused(function):
    with pytest.raises(RefusedError, match="has no function"):
        POOL.run(lambda pool: pool.run(function, None))


def test_a_module_that_cannot_be_loaded_is_named_and_no_process_stays():
    async def scene():
        pool = WorkerPool(preload=["no_such_module_anywhere"])
        with pytest.raises(RefusedError, match="no_such_module_anywhere: ModuleNotFoundError"):
            await pool.run("no_such_module_anywhere:f", None)
        assert pool._server is None
        await pool.close()

    asyncio.run(scene())


def test_a_module_of_argosy_is_loaded_when_it_is_first_needed():
    async def scene():
        pool = WorkerPool(workers=1, preload=[HOSTILE])
        try:
            before = (await pool.run(f"{HOSTILE}:identity", None))["pid"]
            with pytest.raises(RefusedError, match=r"cannot load argosy\.absent: ModuleNotFoundError"):
                await pool.run("argosy.absent:f", None)
            with pytest.raises(ConfinedError, match="AttributeError: 'int' object has no attribute 'get'"):
                await pool.run("argosy.errors:cluster_error_from_status", 1)
            assert (await pool.run(f"{HOSTILE}:identity", None))["pid"] != before
        finally:
            await pool.close()

    asyncio.run(scene())


def test_a_limit_that_is_not_above_zero_is_an_error_at_once():
    with pytest.raises(ValueError, match="limit wall must be above zero"):
        CallLimits(wall=0)


def test_after_close_a_call_is_told_so():
    async def scene():
        pool = WorkerPool(preload=[HOSTILE])
        await pool.run(f"{HOSTILE}:echo", 1)
        await pool.close()
        with pytest.raises(TransientError, match="the pool was closed"):
            await pool.run(f"{HOSTILE}:echo", 1)

    asyncio.run(scene())
