"""The real jq: everything of the language, for a second, in a worker that knows nothing and can be lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from argosy.confine import Pool
from argosy.language.jq_confined import remove_confined

pytest.importorskip("jq", reason="the real jq is not installed")
DOCUMENT = {"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}, "x": 1}
TEXT = orjson.dumps(DOCUMENT)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def pool(anyio_backend: str) -> AsyncIterator[Pool]:
    made = Pool(workers=1)
    yield made
    await made.close()


async def removed(pool: Pool, *expressions: str) -> tuple[Any, tuple[str, ...]]:
    answers, faults = await remove_confined([(TEXT, expressions)], pool)
    return answers.get((TEXT, expressions)), faults


@pytest.mark.anyio
async def test_everything_of_the_language_is_understood(pool: Pool) -> None:
    made, faults = await removed(pool, ".spec.containers[1:]", ".. | select(. == 1)?")
    assert made == {"spec": {"containers": [{"name": "a"}]}}
    assert not faults


@pytest.mark.anyio
async def test_what_is_no_expression_is_a_fault_and_the_others_still_hold(pool: Pool) -> None:
    made, faults = await removed(pool, ".x |", ".x")
    assert made == {"spec": DOCUMENT["spec"]}
    (fault,) = faults
    assert fault.startswith("jqPathExpressions: '.x |': jq does not understand it")
    assert fault.endswith("; correct it")


@pytest.mark.anyio
async def test_an_error_of_jq_leaves_the_document_as_it_is(pool: Pool) -> None:
    assert await removed(pool, ".x[]") == (DOCUMENT, ())


@pytest.mark.anyio
@pytest.mark.parametrize(
    "expression",
    [
        "repeat(.)",
        pytest.param("[range(1000000000)]", marks=pytest.mark.tier("all")),
        pytest.param(".x | until(false; .)", marks=pytest.mark.tier("all")),
    ],
)
async def test_what_runs_for_ever_is_ended_and_told(pool: Pool, expression: str) -> None:
    made, (fault,) = await removed(pool, expression)
    assert made is None
    assert "too much time or memory" in fault
    assert (await removed(pool, ".x"))[0] == {"spec": DOCUMENT["spec"]}, "the next question is answered"


@pytest.mark.anyio
async def test_jq_sees_no_environment(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGOSY_SECRET", "shown")
    for expression in ('select(env.ARGOSY_SECRET == "shown") | .x', 'select($ENV | has("ARGOSY_SECRET")) | .x'):
        assert await removed(pool, expression) == (DOCUMENT, ())
