"""Evaluates the result of a script against its test case. In: a case, a script result. Out: a CaseResult.

Never: runs a script.
"""

from __future__ import annotations

from typing import Any

from argosy.errors import UserError
from argosy.gitops.health.actions import Action, actions_of, impacts_of
from argosy.gitops.health.lua import Answer, LuaFault, answer_of, failed, health_of
from argosy.gitops.health.test_suite.action_comparison import Differences
from argosy.gitops.health.test_suite.action_outputs import compare, expected_manifests
from argosy.gitops.health.test_suite.cases import ActionCase, Case, DiscoveryCase, HealthCase, Inputs, Outcome
from argosy.gitops.health.test_suite.files import shown
from argosy.kube.objects import Manifest


def judged(case: Case, manifest: Manifest, answer: Any, inputs: Inputs) -> Outcome:
    """Compare the result with the expectation of the case. Raises UserError if a file of the case is unreadable."""
    if isinstance(case, DiscoveryCase):
        return _discovered(case, answer)
    if isinstance(case, ActionCase):
        return _acted(case, manifest, answer, inputs)
    if isinstance(case, HealthCase):
        return _assessed(case, answer)
    raise TypeError(f"unknown type of case: {type(case).__name__}")


def broken(case: Case, problem: str) -> Outcome:
    """Return the failed result of a case that could not be run or evaluated."""
    return Outcome(case, False, wanted(case), {"error": problem})


def wanted(case: Case) -> Any:
    """Return the expectation of a case as JSON data."""
    if isinstance(case, HealthCase):
        return None if case.status is None or case.problem else {"status": case.status, "message": case.message}
    if isinstance(case, DiscoveryCase):
        return [_shown(action) for action in case.actions]
    if isinstance(case, ActionCase) and case.error:
        return {"error": case.error}
    return case.output if isinstance(case, ActionCase) and case.output else None


def _assessed(case: HealthCase, answer: Any) -> Outcome:
    try:
        assessment = health_of(answer_of(answer))
    except LuaFault as fault:
        assessment = failed(str(fault))
    if assessment.fault:
        return broken(case, assessment.fault)
    got = {"status": str(assessment.health or ""), "message": assessment.message}
    return Outcome(case, case.status is None or got == wanted(case), wanted(case), got)


def _discovered(case: DiscoveryCase, answer: Any) -> Outcome:
    try:
        actions = actions_of(_table(answer_of(answer)))
    except UserError as error:
        return broken(case, str(error))
    # argo: only the discovered actions are checked, so a test may expect more actions than exist
    is_known = all(action in case.actions for action in actions)
    return Outcome(case, is_known, wanted(case), [_shown(action) for action in actions])


def _acted(case: ActionCase, manifest: Manifest, answer: Any, inputs: Inputs) -> Outcome:
    try:
        impacts = impacts_of(_table(answer_of(answer)), manifest)
    except UserError as error:
        got = {"error": str(error)}
        return Outcome(case, bool(case.error) and str(error) == case.error, wanted(case), got)
    if case.error:
        return Outcome(case, False, wanted(case), [impact.manifest for impact in impacts])
    expected = expected_manifests(inputs.document(case.folder, case.output), shown(case.folder, case.output))
    told = compare(expected, impacts, manifest)
    unlike = {title: found for title, found in told if found}
    if not unlike:
        made = [title for title, _ in told]
        return Outcome(case, True, made, made)
    return Outcome(case, False, _side(unlike, 0), _side(unlike, 1))


def _side(unlike: dict[str, Differences], side: int) -> dict[str, dict[str, Any]]:
    return {title: {path: pair[side] for path, pair in found.items()} for title, found in unlike.items()}


def _table(answer: Answer) -> Any:
    if answer.type != "table":
        raise UserError(f"expect table output from Lua script, not {answer.type}")
    return answer.value


def _shown(action: Action) -> dict[str, Any]:
    parts = {
        "name": action.name,
        "disabled": action.disabled,
        "iconClass": action.icon,
        "displayName": action.display_name,
        "params": list(action.parameters),
    }
    return {name: part for name, part in parts.items() if part}
