"""Call limits of WorkerPool: each limit ends the call with a clear error, and the pool keeps working."""

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
    """Return the result or the error of one call, and check that the same pool still answers."""

    async def scene(pool):
        try:
            answer = await pool.run(f"{HOSTILE}:{function}", payload, limits=limits)
        except UserError as problem:
            answer = problem
        assert await pool.run(f"{HOSTILE}:echo", then) == then
        return answer

    return POOL.run(scene)


def test_call_returns_the_value_of_the_function():
    assert ask("echo", {"a": [1, None, "ü"]}) == {"a": [1, None, "ü"]}


@pytest.mark.parametrize("function", ["loop", "huge_power", "slow_regex"])
def test_endless_call_is_killed_at_the_wall_limit_even_in_c_code(function):
    error = ask(function, limits=CallLimits(wall=0.2, cpu=60))
    assert isinstance(error, LimitExceeded) and error.limit == "wall"
    assert str(error) == f"{HOSTILE}:{function}: took longer than 0.2 s (limit wall)"


@pytest.mark.parametrize("function", ["huge_power", "slow_regex"])
def test_busy_c_code_is_killed_at_the_cpu_limit(function):
    error = ask(function, limits=CallLimits(wall=HANG_SECONDS, cpu=0.2))
    assert isinstance(error, LimitExceeded) and error.limit == "cpu"
    assert "0.2 s of CPU (limit cpu)" in str(error)


def test_sleep_does_not_count_towards_the_cpu_limit():
    assert ask("sleep", 0.3, limits=CallLimits(wall=HANG_SECONDS, cpu=0.1)) == 0.3


@pytest.mark.parametrize(("function", "payload"), [("memory", None), ("big_allocation", 1 << 30)])
def test_memory_over_the_limit_raises_limit_error(function, payload):
    error = ask(function, payload, limits=CallLimits(wall=HANG_SECONDS, memory=64 << 20))
    assert isinstance(error, LimitError) and error.limit == "memory"
    assert "64 MiB of memory (limit memory)" in str(error)


def test_call_can_use_memory_up_to_its_limit():
    limits = CallLimits(wall=HANG_SECONDS, memory=64 << 20)
    assert ask("big_allocation", 48 << 20, limits=limits) == 48 << 20


def test_output_limit_accepts_exact_size_and_rejects_one_byte_more():
    limits = CallLimits(output=1000)
    assert ask("flood", 998, limits=limits) == "x" * 998  # and two quotes
    error = ask("flood", 999, limits=limits)
    assert isinstance(error, LimitExceeded) and error.limit == "output"


@pytest.mark.parametrize("size", [20 << 20, *(pytest.param(size << 20, marks=IN_TEST_ALL) for size in (40, 60))])
def test_large_answer_succeeds_or_hits_the_memory_limit_without_a_crash(size):
    answer = ask("flood", size, limits=CallLimits(wall=HANG_SECONDS, memory=64 << 20, output=100 << 20))
    assert answer == "x" * size or answer.limit == "memory"


@pytest.mark.parametrize("function", ["bomb", "circle"])
def test_small_object_with_endless_json_exceeds_the_output_limit(function):
    error = ask(function, limits=CallLimits(wall=HANG_SECONDS, cpu=20, output=1 << 20))
    assert isinstance(error, LimitExceeded) and error.limit == "output"


def test_large_answer_under_the_limit_is_returned_completely():
    assert ask("flood", 9 << 20, limits=CallLimits(wall=HANG_SECONDS)) == "x" * (9 << 20)


def test_large_input_is_passed_completely():
    text = "y" * (20 << 20)
    assert ask("echo", text, limits=CallLimits(wall=HANG_SECONDS, output=30 << 20)) == text


def test_compromised_worker_cannot_flood_the_parent():
    error = ask("raw_flood", limits=CallLimits(wall=HANG_SECONDS))
    assert isinstance(error, LimitExceeded) and error.limit == "output"


def test_unsolicited_answer_never_reaches_another_call():
    async def scene(pool):
        for number in range(5, 25):
            try:
                await pool.run(f"{HOSTILE}:chatter", number)
            except CrashError:
                pass
            assert await pool.run(f"{HOSTILE}:echo", number) == number

    POOL.run(scene)


def test_input_over_the_input_limit_is_rejected():
    error = ask("echo", "x" * 999, limits=CallLimits(input=1000))
    assert isinstance(error, LimitExceeded) and error.limit == "input"
    assert ask("echo", "x" * 998, limits=CallLimits(input=1000)) == "x" * 998


def test_input_that_is_not_json_serializable_is_rejected():
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
def test_worker_that_exits_or_crashes_raises_crash_error(function, payload, text):
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
def test_exception_is_returned_as_text_without_a_traceback(function, payload, text):
    error = ask(function, payload)
    assert type(error) is ConfinedError
    assert str(error) == text


def test_long_exception_text_is_truncated():
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
def test_functions_outside_argosy_and_preloaded_modules_are_rejected(function):
    with pytest.raises(RefusedError, match="not a function of argosy or of a module that the pool preloads"):
        asyncio.run(WorkerPool(preload=[HOSTILE]).run(function, None))


@pytest.mark.parametrize("function", [f"{HOSTILE}:answer", f"{HOSTILE}:absent", "argosy.errors:absent"])
def test_name_that_is_not_a_function_of_its_module_is_rejected(function):
    with pytest.raises(RefusedError, match="has no function"):
        POOL.run(lambda pool: pool.run(function, None))


def test_module_that_cannot_be_preloaded_is_named_and_leaves_no_server():
    async def scene():
        pool = WorkerPool(preload=["no_such_module_anywhere"])
        with pytest.raises(RefusedError, match="no_such_module_anywhere: ModuleNotFoundError"):
            await pool.run("no_such_module_anywhere:f", None)
        assert pool._server is None
        await pool.close()

    asyncio.run(scene())


def test_argosy_module_is_loaded_on_first_use():
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


def test_limit_of_zero_raises_value_error():
    with pytest.raises(ValueError, match="limit wall must be above zero"):
        CallLimits(wall=0)


def test_call_after_close_raises_transient_error():
    async def scene():
        pool = WorkerPool(preload=[HOSTILE])
        await pool.run(f"{HOSTILE}:echo", 1)
        await pool.close()
        with pytest.raises(TransientError, match="the pool was closed"):
            await pool.run(f"{HOSTILE}:echo", 1)

    asyncio.run(scene())
