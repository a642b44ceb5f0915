"""Hostile Lua scripts cannot hang, escape the sandbox or influence the next script.

The suite also runs against three weak sandboxes and must detect each: a suite that never fails proves nothing.
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
LIMITS = CallLimits() if is_full() else CallLimits(cpu=0.2)  # each script uses its whole time limit
ENDS = {"deep source", "many locals", "wide table"}  # may end by Lua's own limits or on a fast machine
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


def test_there_are_at_least_sixty_hostile_scripts() -> None:
    assert len(STUCK) + len(ESCAPES) + len(POLLUTERS) >= 60


def needs_open_libraries(script: str) -> bool:
    return any(f"{library}." in script for library in ("string", "coroutine", "math", "io"))


async def not_stopped(scripts: dict[str, str], limits: CallLimits = LIMITS) -> list[str]:
    """Return problems: scripts that exceeded the time limit, ended without an error, or broke the next evaluation."""
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
    """Return how stopping one script failed: the CPU limit must stop it, not the wall-clock limit."""
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
    """Return the scripts that reached something outside the sandbox."""
    names = [(name, is_open) for name in tried for is_open in (True, False)]
    answers = await evaluate([call(escape(ESCAPES[name]), open_libs=is_open) for name, is_open in names])
    held = {"type": "table", "value": ["held"]}
    return sorted({name for (name, _), answer in zip(names, answers, strict=True) if answer != held})


async def polluted(evaluate: Evaluate) -> list[str]:
    """Return the scripts that changed the environment of the next script."""
    names = []
    for is_open in (True, False):
        (clean,) = await evaluate([call(WITNESS, open_libs=is_open)])
        for name, script in POLLUTERS.items():
            _, witness = await evaluate([call(POLLUTE % script, open_libs=is_open), call(WITNESS, open_libs=is_open)])
            if witness != clean or "value" not in witness:
                names.append(name)
    return sorted(set(names))


@pytest.mark.parametrize("names", [A_FEW, pytest.param(tuple(STUCK), id="all", marks=pytest.mark.tier("all", "prove"))])
async def test_stuck_scripts_are_stopped_and_the_next_evaluation_works(names: tuple[str, ...]) -> None:
    assert await not_stopped({name: STUCK[name] for name in names}) == []


async def test_no_script_escapes_the_sandbox(pool: WorkerPool) -> None:
    async def confined(calls: list[dict[str, Any]]) -> list[Any]:
        return await pool.run_batch(EVALUATE_FUNCTION, calls)

    assert await escaped(confined) == []


async def test_no_script_changes_the_environment_of_the_next_one(pool: WorkerPool) -> None:
    async def confined(calls: list[dict[str, Any]]) -> list[Any]:
        return await pool.run_batch(EVALUATE_FUNCTION, calls)

    assert await polluted(confined) == []


@pytest.mark.tier("all")
async def test_suite_detects_sandbox_without_cpu_limit() -> None:
    problems = await not_stopped({"busy loop": STUCK["busy loop"]}, CallLimits(wall=2, cpu=60))
    assert any(problem.startswith("busy loop: ") and problem.endswith("(limit wall)") for problem in problems)


async def test_suite_detects_libraries_shared_between_scripts() -> None:
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


async def test_suite_detects_unrestricted_lua_runtime() -> None:
    from lupa import luajit21

    tried = ["reads a file", "reads the environment", "names python", "names jit", "requires ffi", "registry"]

    async def bare(calls: list[dict[str, Any]]) -> list[Any]:
        return [{"type": "table", "value": [luajit21.LuaRuntime().execute(one["script"])[1]]} for one in calls]

    assert await escaped(bare, tried) == sorted(tried)
