"""The real jq in a confined worker: the whole language, limits of time and memory, no environment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from argosy.isolation import WorkerPool
from argosy.isolation.limit_and_confinement_types import CallLimits
from argosy.languages.jq_path_deletion import build_jq_limits, delete_paths_confined

pytest.importorskip("jq", reason="the real jq is not installed")
DOCUMENT = {"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}, "x": 1}
TEXT = orjson.dumps(DOCUMENT)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def pool(anyio_backend: str) -> AsyncIterator[WorkerPool]:
    worker_pool = WorkerPool(workers=1)
    yield worker_pool
    await worker_pool.close()


async def removed(pool: WorkerPool, *expressions: str) -> tuple[Any, tuple[str, ...]]:
    answers, faults = await delete_paths_confined([(TEXT, expressions)], pool)
    return answers.get((TEXT, expressions)), faults


@pytest.mark.anyio
async def test_slices_and_recursive_select_are_supported(pool: WorkerPool) -> None:
    document, faults = await removed(pool, ".spec.containers[1:]", ".. | select(. == 1)?")
    assert document == {"spec": {"containers": [{"name": "a"}]}}
    assert not faults


@pytest.mark.anyio
async def test_invalid_expression_is_a_fault_and_the_others_apply(pool: WorkerPool) -> None:
    document, faults = await removed(pool, ".x |", ".x")
    assert document == {"spec": DOCUMENT["spec"]}
    (fault,) = faults
    assert fault.startswith("jqPathExpressions: '.x |': jq cannot compile it")
    assert fault.endswith("; correct it")


@pytest.mark.anyio
async def test_jq_runtime_error_leaves_the_document_unchanged(pool: WorkerPool) -> None:
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
async def test_endless_expression_is_stopped_and_reported(pool: WorkerPool, expression: str) -> None:
    document, (fault,) = await removed(pool, expression)
    assert document == DOCUMENT
    assert fault == f"jqPathExpressions: {expression!r}: it takes too much time or memory; simplify it"
    assert (await removed(pool, ".x"))[0] == {"spec": DOCUMENT["spec"]}, "the next question is answered"


@pytest.mark.anyio
async def test_endless_expression_is_reported_and_the_others_apply(pool: WorkerPool) -> None:
    document, faults = await removed(pool, ".spec.containers[1:]", "repeat(.)", ".x | select(true)")
    assert document == {"spec": {"containers": [{"name": "a"}]}}
    assert faults == ("jqPathExpressions: 'repeat(.)': it takes too much time or memory; simplify it",)


@dataclass
class Counted:
    """A pool that records the expressions it is asked to run."""

    pool: WorkerPool
    expression_lists: list[list[str]] = field(default_factory=list)

    async def run_batch(self, function: str, payloads: Sequence[Any], *, limits: CallLimits | None = None) -> list[Any]:
        self.expression_lists += [payload["expressions"] for payload in payloads]
        return await self.pool.run_batch(function, payloads, limits=limits)


@pytest.mark.tier("all")
@pytest.mark.anyio
async def test_endless_expression_runs_on_at_most_ten_of_forty_documents(pool: WorkerPool) -> None:
    """Each run holds a worker for a second, and delays the Applications that wait for one."""
    counted = Counted(pool)
    hostile = 'if .number > 1 then repeat(.) else .x end | select(has("x"))'
    texts = [orjson.dumps(DOCUMENT | {"number": number}) for number in range(40)]
    answers, faults = await delete_paths_confined([(text, (hostile, ".x")) for text in texts], counted)
    assert len(faults) == 1
    assert [document.get("x") for document in answers.values()] == [None] * 40, "the plain path holds in each"
    assert len(answers) == 40
    assert sum(hostile in expressions for expressions in counted.expression_lists) <= 10


@pytest.mark.anyio
async def test_expression_with_several_results_removes_nothing_as_in_argo_cd(pool: WorkerPool) -> None:
    assert await removed(pool, ".x), (.") == (DOCUMENT, ())


HOSTILE = [
    "input", "inputs", "[inputs]", "input_filename", "input_line_number", "halt", ".x | halt", "halt_error",
    '"x" | halt_error(1)', "debug", "stderr", "now", "$__loc__", "get_search_list", "modulemeta", "builtins", "error",
    "error(null)", "error(env)", "@sh", 'import "a" as a; .x', 'include "a"; .x',
    '.x) | import "/etc/passwd" as $x; (.', "(((", ".[", '"open', '\\', "#", '.\x00', "nosuch", "env", "$ENV",
    "$ENV | tostring | error", "env | keys", ".[env | keys[]]", "getpath(env | keys)", '"a"*1e9', ".[1e9]", ".[-1e9]",
    "getpath([range(1e4) | tostring])", "limit(0; .x)", "limit(-1; .x)", "paths", "getpath(1)", "nan", "infinite",
    "1e1000", '"\\ud800"', "..", "del(..)", "walk(.)", "tojson | fromjson", "splits(1)", "ltrimstr(1)", "strptime(1)",
    ".x) | empty | (.", ".x) | 1 | (.",
]  # fmt: skip


@pytest.mark.anyio
@pytest.mark.parametrize("expression", HOSTILE)
async def test_hostile_expression_neither_stops_the_worker_nor_changes_the_document(
    pool: WorkerPool, expression: str
) -> None:
    document, faults = await removed(pool, expression)
    assert document == DOCUMENT
    assert len(faults) <= 1
    assert await removed(pool, ".x") == ({"spec": DOCUMENT["spec"]}, ())


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["env", "$ENV"])
async def test_jq_sees_no_environment_variables(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("ARGOSY_SECRET", "shown")
    pool = WorkerPool(workers=1)  # starts with this environment
    try:
        for expression in (f".x) | {{found: {name}}} | (.", f".x) | {{found: (try error({name}) catch .)}} | (."):
            assert await removed(pool, expression) == ({"found": {}}, ())
    finally:
        await pool.close()


@pytest.mark.anyio
async def test_time_limit_of_a_call_is_configurable(pool: WorkerPool) -> None:
    expression = "select([range(3000000)] | length > 0) | .x"
    question = (TEXT, (expression,))
    answers, faults = await delete_paths_confined([question], pool, limits=build_jq_limits(0.01))
    assert (answers[question], len(faults)) == (DOCUMENT, 1)
    assert "takes too much time" in faults[0]
    answers, faults = await delete_paths_confined([question], pool, limits=build_jq_limits(60.0))
    assert (answers[question], faults) == ({"spec": DOCUMENT["spec"]}, ())
