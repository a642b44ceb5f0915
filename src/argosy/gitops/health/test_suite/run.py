"""Runs the cases of a suite. In: a suite and a pool of isolated workers. Out: a result per case, in order.

Never: runs a script in this process; lets one case stop the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.health.lua import EVALUATE_FUNCTION, MAX_LIMIT_FAILURES, BatchRunner
from argosy.gitops.health.test_suite import case_result_comparison
from argosy.gitops.health.test_suite.case_types import (
    ActionTestCase,
    CaseResult,
    DiscoveryTestCase,
    RuleTestCase,
    RuleTestSuite,
)
from argosy.gitops.health.test_suite.manifest_identity import read_group_kind
from argosy.gitops.health.test_suite.untrusted_rule_tree_files import join_path
from argosy.isolation import LimitExceeded
from argosy.kube.objects import Manifest

BATCH_SIZE: Final = 32

ProgressCallback = Callable[[int, int], None]
Gather = Callable[..., Awaitable[Any]]


async def run_suite(
    suite: RuleTestSuite,
    pool: BatchRunner,
    *,
    progress: ProgressCallback | None = None,
    gather: Gather | None = None,
    max_concurrent_batches: int = 2,
) -> list[CaseResult]:
    """Run all cases. With `gather` (asyncio.gather), `max_concurrent_batches` run at once.

    Only the running batches are in memory, because a tree may be larger than that.
    """
    outcomes: list[CaseResult | None] = [None] * len(suite.cases)
    limit_failures = Counter[str]()
    batches = iter(_split_batches(suite.cases))
    finished = 0

    async def run_batches() -> None:
        nonlocal finished
        for positions in batches:
            batch_results = await _run_batch(
                suite, [suite.cases[position] for position in positions], pool, limit_failures
            )
            for index, outcome in zip(positions, batch_results):
                outcomes[index] = outcome
            finished += len(positions)
            if progress is not None:
                progress(finished, len(outcomes))

    if gather is None:
        await run_batches()
    else:
        await gather(*(run_batches() for _ in range(max(1, max_concurrent_batches))))
    return [outcome for outcome in outcomes if outcome is not None]


def _split_batches(cases: Sequence[RuleTestCase]) -> list[list[int]]:
    """Split the cases into batches of indexes. A few cases of every folder come first, to detect hanging scripts."""
    counts = Counter[Any]()
    early: list[int] = []
    late: list[int] = []
    for position, case in enumerate(cases):
        (early if counts[case.folder] < MAX_LIMIT_FAILURES else late).append(position)
        counts[case.folder] += 1
    return [part[first : first + BATCH_SIZE] for part in (early, late) for first in range(0, len(part), BATCH_SIZE)]


async def _run_batch(
    suite: RuleTestSuite, cases: Sequence[RuleTestCase], pool: BatchRunner, limit_failures: Counter[str]
) -> list[CaseResult]:
    prepared = [_prepare_case(suite, case, limit_failures) for case in cases]
    payloads = [payload for payload in prepared if not isinstance(payload, CaseResult)]
    script_results = await pool.run_batch(EVALUATE_FUNCTION, payloads) if payloads else []
    limit_failures.update(
        payload["script"]
        for payload, script_result in zip(payloads, script_results)
        if isinstance(script_result, LimitExceeded)
    )
    remaining = iter(script_results)
    return [
        item if isinstance(item, CaseResult) else _evaluate(suite, case, item["manifest"], next(remaining))
        for case, item in zip(cases, prepared)
    ]


def _prepare_case(
    suite: RuleTestSuite, case: RuleTestCase, limit_failures: Counter[str]
) -> dict[str, Any] | CaseResult:
    """Build the payload of a case, or the failed result if it cannot be run."""
    if case.problem:
        return case_result_comparison.failed_result(case, case.problem)
    try:
        manifest = case.manifest if case.manifest is not None else _load_input(suite, case)
        script = _find_script(suite, case, manifest)
    except UserError as error:
        return case_result_comparison.failed_result(case, str(error))
    if limit_failures[script] >= MAX_LIMIT_FAILURES:
        return case_result_comparison.failed_result(
            case, f"not run: the script exceeded its limits in {limit_failures[script]} cases before"
        )
    is_action = isinstance(case, ActionTestCase)
    # argo: its tests give health and discovery all libraries, and actions the few that its server gives them
    return {
        "script": script,
        "manifest": manifest,
        "params": dict(case.params) if isinstance(case, ActionTestCase) else {},
        "facts": dict(case.facts),
        "open": not is_action,
    }


def _load_input(suite: RuleTestSuite, case: RuleTestCase) -> Manifest:
    document = suite.inputs.load_document(case.folder, case.input)
    if not isinstance(document, dict):
        raise UserError("contains no object; write one", where=join_path(case.folder, case.input))
    return document


def _find_script(suite: RuleTestSuite, case: RuleTestCase, manifest: Manifest) -> str:
    """argo: selected by the kind of the object, not by the folder of its file."""
    group, kind = read_group_kind(manifest)
    if isinstance(case, ActionTestCase):
        return suite.scripts.find_action_script(group, kind, case.action)
    if isinstance(case, DiscoveryTestCase):
        return suite.scripts.find_discovery_script(group, kind)
    return suite.scripts.find_health_script(group, kind)


def _evaluate(suite: RuleTestSuite, case: RuleTestCase, manifest: Manifest, script_result: Any) -> CaseResult:
    try:
        return case_result_comparison.evaluate_case(case, manifest, script_result, suite.inputs)
    except UserError as error:
        return case_result_comparison.failed_result(case, str(error))
    except RecursionError:
        return case_result_comparison.failed_result(
            case, "the result of the script is nested too deep to compare; flatten it"
        )
