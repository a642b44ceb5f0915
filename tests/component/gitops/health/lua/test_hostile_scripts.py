"""Hostile scripts: none hangs, none gets out, none leaves anything behind for the next one.

The suite is also shown three weak sandboxes, and must notice each: a suite that finds nothing proves nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import pytest

from argosy.gitops.health.lua import EVALUATE_FUNCTION, LuaEngine, LuaFault
from argosy.isolation import CallLimits, LimitExceeded, WorkerPool
from argosy.isolation.errors import ConfinedError
from support.hostile_lua import ESCAPES, POLLUTE, POLLUTERS, STUCK, WITNESS, escape
from support.proof_scale import is_full

pytestmark = pytest.mark.anyio
LIMITS = CallLimits() if is_full() else CallLimits(cpu=0.2)  # each takes all the time that it may
ENDS = {"deep source", "many locals", "wide table"}  # they may end: Lua's own limits, or a quick machine, are enough
A_FEW = ("busy loop", "pcall nest", "backtracking find", "growing table")
SOUND = {"type": "table", "value": {"status": "Healthy", "message": "model"}}
OBJECT: dict[str, Any] = {"metadata": {"name": "model"}}
Evaluate = Callable[[list[dict[str, Any]]], Awaitable[list[Any]]]


def call(script: str, *, open_libs: bool = True) -> dict[str, Any]:
    return {"script": script, "manifest": OBJECT, "open": open_libs}


CANARY = call("return {status = 'Healthy', message = obj.metadata.name}", open_libs=False)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def pool(anyio_backend: str) -> AsyncIterator[WorkerPool]:
    pool = WorkerPool(workers=2, preload=["argosy.gitops.health.lua.worker"])
    yield pool
    await pool.close()


def test_there_are_at_least_sixty() -> None:
    assert len(STUCK) + len(ESCAPES) + len(POLLUTERS) >= 60


def needs_open_libraries(script: str) -> bool:
    return any(f"{library}." in script for library in ("string", "coroutine", "math", "io"))


async def not_stopped(scripts: dict[str, str], limits: CallLimits = LIMITS) -> list[str]:
    """The scripts that ran over their time, ended as if nothing were wrong, or hurt the next evaluation."""
    both = (True, False) if is_full() else (False,)
    left = [
        (name, script, is_open)
        for name, script in scripts.items()
        for is_open in ((True,) if needs_open_libraries(script) else both)
    ]
    problems: list[str] = []

    async def lane() -> None:
        pool = WorkerPool(workers=1, preload=["argosy.gitops.health.lua.worker"])
        await pool.start()
        while left:
            problems.extend(await find_stop_problems(pool, *left.pop(), limits))
        await pool.close()

    await asyncio.gather(lane(), lane())
    return sorted(set(problems))


async def find_stop_problems(pool: WorkerPool, name: str, script: str, is_open: bool, limits: CallLimits) -> list[str]:
    """What is wrong with how one script was stopped: by its own second of work, not by the patience with a machine."""
    (first,) = await pool.run_batch(EVALUATE_FUNCTION, [call(script, open_libs=is_open)], limits=limits)
    (after,) = await pool.run_batch(EVALUATE_FUNCTION, [CANARY])
    if after != SOUND:
        return [f"{name}: the next evaluation gave {after}"]
    if isinstance(first, LimitExceeded):
        return [] if first.limit != "wall" else [f"{name}: {first}"]
    if not isinstance(first, ConfinedError) and "fault" not in first and name not in ENDS:
        return [f"{name}: ended with {str(first)[:80]}"]
    return []


async def escaped(evaluate: Evaluate, tried: Iterable[str] = ESCAPES) -> list[str]:
    """The scripts that got hold of something they should not have."""
    names = [(name, is_open) for name in tried for is_open in (True, False)]
    answers = await evaluate([call(escape(ESCAPES[name]), open_libs=is_open) for name, is_open in names])
    held = {"type": "table", "value": ["held"]}
    return sorted({name for (name, _), answer in zip(names, answers, strict=True) if answer != held})


async def polluted(evaluate: Evaluate) -> list[str]:
    """The scripts that changed what the next one sees."""
    names = []
    for is_open in (True, False):
        (clean,) = await evaluate([call(WITNESS, open_libs=is_open)])
        for name, script in POLLUTERS.items():
            _, witness = await evaluate([call(POLLUTE % script, open_libs=is_open), call(WITNESS, open_libs=is_open)])
            if witness != clean or "value" not in witness:
                names.append(name)
    return sorted(set(names))


@pytest.mark.parametrize("names", [A_FEW, pytest.param(tuple(STUCK), id="all", marks=pytest.mark.tier("all", "prove"))])
async def test_none_runs_over_its_time_and_the_next_evaluation_is_unharmed(names: tuple[str, ...]) -> None:
    assert await not_stopped({name: STUCK[name] for name in names}) == []


async def test_none_gets_out(pool: WorkerPool) -> None:
    async def confined(calls: list[dict[str, Any]]) -> list[Any]:
        return await pool.run_batch(EVALUATE_FUNCTION, calls)

    assert await escaped(confined) == []


async def test_none_reaches_the_next_script(pool: WorkerPool) -> None:
    async def confined(calls: list[dict[str, Any]]) -> list[Any]:
        return await pool.run_batch(EVALUATE_FUNCTION, calls)

    assert await polluted(confined) == []


@pytest.mark.tier("all")
async def test_the_suite_notices_a_sandbox_without_a_clock() -> None:
    problems = await not_stopped({"busy loop": STUCK["busy loop"]}, CallLimits(wall=2, cpu=60))
    assert any(problem.startswith("busy loop: ") and problem.endswith("(limit wall)") for problem in problems)


async def test_the_suite_notices_scripts_that_share_their_libraries() -> None:
    engines = {is_open: LuaEngine(open_libs=is_open) for is_open in (True, False)}

    async def sharing(calls: list[dict[str, Any]]) -> list[Any]:
        answers: list[Any] = []
        for one in calls:
            try:
                answers.append({"value": engines[one["open"]].run(one["script"], one["manifest"], trusted=True).value})
            except LuaFault as fault:
                answers.append({"fault": str(fault)})
        return answers

    names = await polluted(sharing)
    assert {"table library", "string library", "coroutine library", "safe os"} <= set(names)


async def test_the_suite_notices_a_state_with_everything_in_it() -> None:
    from lupa import luajit21

    tried = ["reads a file", "reads the environment", "names python", "names jit", "requires ffi", "registry"]

    async def bare(calls: list[dict[str, Any]]) -> list[Any]:
        return [{"type": "table", "value": [luajit21.LuaRuntime().execute(one["script"])[1]]} for one in calls]

    assert await escaped(bare, tried) == sorted(tried)
