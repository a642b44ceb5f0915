"""Evaluates the result of a script against its test case. In: a case, a script result. Out: a CaseResult.

Never: runs a script.
"""

from __future__ import annotations

from typing import Any

from argosy.errors import UserError
from argosy.gitops.health.actions import ResourceAction, read_actions, read_impacts
from argosy.gitops.health.lua import LuaFault, ScriptResult, failed_assessment, read_health, read_script_result
from argosy.gitops.health.test_suite.action_output_comparison import compare_impacts, read_expected_manifests
from argosy.gitops.health.test_suite.case_types import (
    ActionTestCase,
    CaseInputs,
    CaseResult,
    DiscoveryTestCase,
    HealthTestCase,
    RuleTestCase,
)
from argosy.gitops.health.test_suite.expected_manifest_diff import Differences
from argosy.gitops.health.test_suite.untrusted_rule_tree_files import join_path
from argosy.kube.objects import Manifest


def evaluate_case(case: RuleTestCase, manifest: Manifest, script_result: Any, inputs: CaseInputs) -> CaseResult:
    """Compare the result with the expectation of the case. Raises UserError if a file of the case is unreadable."""
    if isinstance(case, DiscoveryTestCase):
        return _evaluate_discovery(case, script_result)
    if isinstance(case, ActionTestCase):
        return _evaluate_action(case, manifest, script_result, inputs)
    if isinstance(case, HealthTestCase):
        return _evaluate_health(case, script_result)
    raise TypeError(f"unknown type of case: {type(case).__name__}")


def failed_result(case: RuleTestCase, problem: str) -> CaseResult:
    """Return the failed result of a case that could not be run or evaluated."""
    return CaseResult(case, False, expected_result(case), {"error": problem})


def expected_result(case: RuleTestCase) -> Any:
    """Return the expectation of a case as JSON data."""
    if isinstance(case, HealthTestCase):
        return None if case.status is None or case.problem else {"status": case.status, "message": case.message}
    if isinstance(case, DiscoveryTestCase):
        return [_action_to_wire(action) for action in case.actions]
    if isinstance(case, ActionTestCase) and case.error:
        return {"error": case.error}
    return case.output if isinstance(case, ActionTestCase) and case.output else None


def _evaluate_health(case: HealthTestCase, script_result: Any) -> CaseResult:
    try:
        assessment = read_health(read_script_result(script_result))
    except LuaFault as fault:
        assessment = failed_assessment(str(fault))
    if assessment.fault:
        return failed_result(case, assessment.fault)
    got = {"status": str(assessment.health or ""), "message": assessment.message}
    return CaseResult(case, case.status is None or got == expected_result(case), expected_result(case), got)


def _evaluate_discovery(case: DiscoveryTestCase, script_result: Any) -> CaseResult:
    try:
        actions = read_actions(_require_table(read_script_result(script_result)))
    except UserError as error:
        return failed_result(case, str(error))
    # argo: only the discovered actions are checked, so a test may expect more actions than exist
    is_expected = all(action in case.actions for action in actions)
    return CaseResult(case, is_expected, expected_result(case), [_action_to_wire(action) for action in actions])


def _evaluate_action(case: ActionTestCase, manifest: Manifest, script_result: Any, inputs: CaseInputs) -> CaseResult:
    try:
        impacts = read_impacts(_require_table(read_script_result(script_result)), manifest)
    except UserError as error:
        got = {"error": str(error)}
        return CaseResult(case, bool(case.error) and str(error) == case.error, expected_result(case), got)
    if case.error:
        return CaseResult(case, False, expected_result(case), [impact.manifest for impact in impacts])
    expected = read_expected_manifests(
        inputs.load_document(case.folder, case.output), join_path(case.folder, case.output)
    )
    comparisons = compare_impacts(expected, impacts, manifest)
    differing = {title: differences for title, differences in comparisons if differences}
    if not differing:
        titles = [title for title, _ in comparisons]
        return CaseResult(case, True, titles, titles)
    return CaseResult(case, False, _select_side(differing, 0), _select_side(differing, 1))


def _select_side(differing: dict[str, Differences], side: int) -> dict[str, dict[str, Any]]:
    return {title: {path: pair[side] for path, pair in differences.items()} for title, differences in differing.items()}


def _require_table(script_result: ScriptResult) -> Any:
    if script_result.type != "table":
        raise UserError(f"expect table output from Lua script, not {script_result.type}")
    return script_result.value


def _action_to_wire(action: ResourceAction) -> dict[str, Any]:
    parts = {
        "name": action.name,
        "disabled": action.disabled,
        "iconClass": action.icon,
        "displayName": action.display_name,
        "params": list(action.parameters),
    }
    return {name: part for name, part in parts.items() if part}
