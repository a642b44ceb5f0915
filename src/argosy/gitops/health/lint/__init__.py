"""Lints health and action scripts.

In: the text of a script, and the libraries it will run with. Out: findings with lines. Never: runs the script; reports
anything that is not certain.
"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.gitops.health.lint.analysis_context import AnalysisAborted, AnalysisLimits
from argosy.gitops.health.lint.finding import LintFinding, ScriptPurpose, Severity
from argosy.gitops.health.lint.misspelled_statuses import check_status_lookup_tables
from argosy.gitops.health.lint.nil_access import check_nil_uses
from argosy.gitops.health.lint.observed_generation import check_generations
from argosy.gitops.health.lint.return_values import check_missing_result, check_results, has_no_return
from argosy.gitops.health.lint.symbolic_execution import ControlFlow
from argosy.gitops.health.lint.unavailable_libraries import check_libraries
from argosy.gitops.health.lint.undefined_globals import (
    check_names,
    check_script_start,
    find_missing_names,
    suggest_keyword,
)
from argosy.gitops.health.lint.unreachable_code import check_branches, check_loops
from argosy.gitops.health.lua.syntax import LuaSyntaxError, parse
from argosy.gitops.health.lua.syntax.scopes import LuaScopes, LuaVariable, resolve_scopes, walk_tree
from argosy.gitops.health.lua.syntax.tree import FunctionExpression, LuaBlock
from argosy.kube.resource_key import GroupKind

_LIMITS_BY_PRECISION = (
    AnalysisLimits(32, 32, 2_500),
    AnalysisLimits(32, 4, 25_000),
    AnalysisLimits(6, 2, 25_000),
    AnalysisLimits(1, 1, 25_000),
)

__all__ = ["LintFinding", "ScriptPurpose", "Severity", "lint_script"]


def lint_script(
    script: str, *, open_libs: bool = False, purpose: ScriptPurpose = "health", kind: GroupKind | None = None
) -> list[LintFinding]:
    """Return the distinct findings, sorted by line. `kind` is the kind of the checked objects, if known."""
    try:
        tree = parse(script)
    except LuaSyntaxError as problem:
        return [_syntax_finding(script, problem)]
    scopes = resolve_scopes(tree)
    missing = find_missing_names(tree, scopes)
    findings = [*check_script_start(script), *check_libraries(tree, scopes, open_libs=open_libs)]
    findings += check_names(tree, scopes, missing)
    if purpose == "health":
        findings += check_status_lookup_tables(tree, scopes)
        findings += check_generations(tree, kind) if kind else ()
    if has_no_return(tree):
        findings.append(LintFinding("AGY401", tree.last_line, "never returns anything", "end the script with a return"))
    for limits in _LIMITS_BY_PRECISION:
        try:
            findings += _check_execution_paths(tree, scopes, purpose, limits, missing)
            break
        except (AnalysisAborted, RecursionError):
            continue  # too complex: try again with less precision; the last attempt may find nothing
    return sorted(set(findings), key=lambda finding: (finding.line, finding.rule, finding.message))


def _syntax_finding(script: str, error: LuaSyntaxError) -> LintFinding:
    lines = script.split("\n")
    line = lines[error.line - 1] if error.line <= len(lines) else ""
    advice = suggest_keyword(line) or "correct the syntax at this line"
    return LintFinding("AGY401", error.line, f"does not parse: {error.message}", advice)


def _check_execution_paths(
    tree: LuaBlock, scopes: LuaScopes, purpose: ScriptPurpose, limits: AnalysisLimits, missing: set[LuaVariable]
) -> list[LintFinding]:
    flow = ControlFlow(tree, scopes, limits, missing)
    flow.run()
    return [*_check_script(flow, purpose), *_check_functions(ControlFlow(tree, scopes, limits, missing))]


def _check_script(flow: ControlFlow, purpose: ScriptPurpose) -> Iterator[LintFinding]:
    tree = flow.script
    if not has_no_return(tree):
        yield from check_missing_result(flow, purpose)
    yield from check_results(flow, purpose)
    yield from check_nil_uses(flow.nil_uses, purpose)
    yield from check_branches(flow, tree)
    yield from check_loops(flow, tree)


def _check_functions(flow: ControlFlow) -> Iterator[LintFinding]:
    for node in walk_tree(flow.script):
        if isinstance(node, FunctionExpression):
            flow.run_function(node)
            yield from check_branches(flow, node.body)
            yield from check_loops(flow, node.body)
