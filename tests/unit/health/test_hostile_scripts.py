"""Hostile scripts: none hangs, none gets out, none leaves anything behind for the next one.

The suite is also shown three weak sandboxes, and must notice each: a suite that finds nothing proves nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import pytest
from hostile_scripts import ESCAPES, POLLUTE, POLLUTERS, STUCK, WITNESS, escape

from argosy.confine import Limits, OverLimit, Pool
from argosy.confine.refusals import ConfinedError
from argosy.health.lua import Engine, LuaFault
from argosy.health.lua.confined import FUNCTION

pytestmark = pytest.mark.anyio
LIMITS = Limits()
HANG = 20.0  # seconds; a worker is killed after one, but machines are shared
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
async def pool(anyio_backend: str) -> AsyncIterator[Pool]:
    pool = Pool(workers=2, preload=["argosy.health.lua.confined"])
    yield pool
    await pool.close()


def test_there_are_at_least_sixty() -> None:
    assert len(STUCK) + len(ESCAPES) + len(POLLUTERS) >= 60


async def not_stopped(pool: Pool, scripts: dict[str, str], limits: Limits = LIMITS) -> list[str]:
    """The scripts that ran over their time, or hurt the worker's next evaluation."""

    async def ends(name: str, script: str) -> str | None:
        for open_libs in (True, False):
            start = time.monotonic()
            first, after = await pool.run_batch(FUNCTION, [call(script, open_libs=open_libs), CANARY], limits=limits)
            if time.monotonic() - start > HANG or after != SOUND:
                return f"{name}: {after}"
            is_stopped = isinstance(first, OverLimit | ConfinedError)
            if not is_stopped and not (isinstance(first, dict) and ("fault" in first or first["type"] == "table")):
                return f"{name}: gave {first!r}"
            if isinstance(first, OverLimit) and first.limit == "wall" and limits.wall > 1.0:
                return f"{name}: was left alone for {limits.wall} s"
        return None

    found = await asyncio.gather(*(ends(name, script) for name, script in scripts.items()))
    return [sentence for sentence in found if sentence]


async def escaped(evaluate: Evaluate, tried: Iterable[str] = ESCAPES) -> list[str]:
    """The scripts that got hold of something they should not have."""
    names = [(name, is_open) for name in tried for is_open in (True, False)]
    answers = await evaluate([call(escape(ESCAPES[name]), open_libs=is_open) for name, is_open in names])
    held = {"type": "table", "value": ["held"]}
    return sorted({name for (name, _), answer in zip(names, answers, strict=True) if answer != held})


async def polluted(evaluate: Evaluate) -> list[str]:
    """The scripts that changed what the next one sees."""
    found = []
    for is_open in (True, False):
        (clean,) = await evaluate([call(WITNESS, open_libs=is_open)])
        for name, script in POLLUTERS.items():
            _, seen = await evaluate([call(POLLUTE % script, open_libs=is_open), call(WITNESS, open_libs=is_open)])
            if seen != clean or "value" not in seen:
                found.append(name)
    return sorted(set(found))


async def test_none_hangs_and_the_next_evaluation_is_unharmed(pool: Pool) -> None:
    assert await not_stopped(pool, STUCK) == []


async def test_none_gets_out(pool: Pool) -> None:
    async def confined(calls: list[dict[str, Any]]) -> list[Any]:
        return await pool.run_batch(FUNCTION, calls)

    assert await escaped(confined) == []


async def test_none_reaches_the_next_script(pool: Pool) -> None:
    async def confined(calls: list[dict[str, Any]]) -> list[Any]:
        return await pool.run_batch(FUNCTION, calls)

    assert await polluted(confined) == []


async def test_the_suite_notices_a_sandbox_without_a_clock(pool: Pool) -> None:
    slow = Limits(wall=1.5, cpu=60)
    assert await not_stopped(pool, {"busy loop": STUCK["busy loop"]}, slow) == ["busy loop: was left alone for 1.5 s"]


async def test_the_suite_notices_scripts_that_share_their_libraries() -> None:
    engines = {is_open: Engine(open_libs=is_open) for is_open in (True, False)}

    async def sharing(calls: list[dict[str, Any]]) -> list[Any]:
        answers: list[Any] = []
        for one in calls:
            try:
                answers.append({"value": engines[one["open"]].run(one["script"], one["manifest"], trusted=True).value})
            except LuaFault as fault:
                answers.append({"fault": str(fault)})
        return answers

    found = await polluted(sharing)
    assert {"table library", "string library", "coroutine library", "safe os"} <= set(found)


async def test_the_suite_notices_a_state_with_everything_in_it() -> None:
    from lupa import luajit21

    tried = ["reads a file", "reads the environment", "names python", "names jit", "requires ffi", "registry"]

    async def bare(calls: list[dict[str, Any]]) -> list[Any]:
        return [{"type": "table", "value": [luajit21.LuaRuntime().execute(one["script"])[1]]} for one in calls]

    assert await escaped(bare, tried) == sorted(tried)
