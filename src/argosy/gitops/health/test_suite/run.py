"""Runs the cases of a suite. In: a suite and a pool of isolated workers. Out: a result per case, in order.

Never: runs a script in this process; lets one case stop the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.health.lua import EVALUATE, PATIENCE, Confined
from argosy.gitops.health.test_suite import case_results
from argosy.gitops.health.test_suite.cases import ActionCase, Case, DiscoveryCase, Outcome, Suite
from argosy.gitops.health.test_suite.files import shown
from argosy.gitops.health.test_suite.manifest_kind import kind_of
from argosy.isolation import OverLimit
from argosy.kube.objects import Manifest

BATCH: Final = 32

Progress = Callable[[int, int], None]
Together = Callable[..., Awaitable[Any]]


async def run(
    suite: Suite, pool: Confined, *, progress: Progress | None = None, together: Together | None = None, lanes: int = 2
) -> list[Outcome]:
    """Run all cases. With `gather` (asyncio.gather), `max_concurrent_batches` run at once.

    Only the running batches are in memory, because a tree may be larger than that.
    """
    outcomes: list[Outcome | None] = [None] * len(suite.cases)
    hung = Counter[str]()
    batches = iter(_batches(suite.cases))
    done = 0

    async def lane() -> None:
        nonlocal done
        for places in batches:
            found = await _run_batch(suite, [suite.cases[each] for each in places], pool, hung)
            for place, outcome in zip(places, found):
                outcomes[place] = outcome
            done += len(places)
            if progress is not None:
                progress(done, len(outcomes))

    if together is None:
        await lane()
    else:
        await together(*(lane() for _ in range(max(1, lanes))))
    return [outcome for outcome in outcomes if outcome is not None]


def _batches(cases: Sequence[Case]) -> list[list[int]]:
    """Split the cases into batches of indexes. A few cases of every folder come first, to detect hanging scripts."""
    seen = Counter[Any]()
    early: list[int] = []
    late: list[int] = []
    for place, case in enumerate(cases):
        (early if seen[case.folder] < PATIENCE else late).append(place)
        seen[case.folder] += 1
    return [part[first : first + BATCH] for part in (early, late) for first in range(0, len(part), BATCH)]


async def _run_batch(suite: Suite, cases: Sequence[Case], pool: Confined, hung: Counter[str]) -> list[Outcome]:
    asked = [_asked(suite, case, hung) for case in cases]
    payloads = [payload for payload in asked if not isinstance(payload, Outcome)]
    answers = await pool.run_batch(EVALUATE, payloads) if payloads else []
    hung.update(payload["script"] for payload, answer in zip(payloads, answers) if isinstance(answer, OverLimit))
    left = iter(answers)
    return [
        given if isinstance(given, Outcome) else _judged(suite, case, given["manifest"], next(left))
        for case, given in zip(cases, asked)
    ]


def _asked(suite: Suite, case: Case, hung: Counter[str]) -> dict[str, Any] | Outcome:
    """Build the payload of a case, or the failed result if it cannot be run."""
    if case.problem:
        return case_results.broken(case, case.problem)
    try:
        manifest = case.manifest if case.manifest is not None else _input(suite, case)
        script = _script(suite, case, manifest)
    except UserError as error:
        return case_results.broken(case, str(error))
    if hung[script] >= PATIENCE:
        return case_results.broken(case, f"not run: the script exceeded its limits in {hung[script]} cases before")
    is_action = isinstance(case, ActionCase)
    # argo: its tests give health and discovery all libraries, and actions the few that its server gives them
    return {
        "script": script,
        "manifest": manifest,
        "params": dict(case.params) if isinstance(case, ActionCase) else {},
        "facts": dict(case.facts),
        "open": not is_action,
    }


def _input(suite: Suite, case: Case) -> Manifest:
    document = suite.inputs.document(case.folder, case.input)
    if not isinstance(document, dict):
        raise UserError("contains no object; write one", where=shown(case.folder, case.input))
    return document


def _script(suite: Suite, case: Case, manifest: Manifest) -> str:
    """argo: selected by the kind of the object, not by the folder of its file."""
    group, kind = kind_of(manifest)
    if isinstance(case, ActionCase):
        return suite.scripts.action(group, kind, case.action)
    if isinstance(case, DiscoveryCase):
        return suite.scripts.discovery(group, kind)
    return suite.scripts.health(group, kind)


def _judged(suite: Suite, case: Case, manifest: Manifest, answer: Any) -> Outcome:
    try:
        return case_results.judged(case, manifest, answer, suite.inputs)
    except UserError as error:
        return case_results.broken(case, str(error))
    except RecursionError:
        return case_results.broken(case, "the result of the script is nested too deep to compare; flatten it")
