"""Lints health and action scripts.

In: the text of a script, and the libraries it will run with. Out: findings with lines. Never: runs the script; reports
anything that is not certain.
"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.gitops.health.lint.control_flow import Flow
from argosy.gitops.health.lint.finding import Finding, Purpose, Severity
from argosy.gitops.health.lint.generations import check_generations
from argosy.gitops.health.lint.libraries import check_libraries
from argosy.gitops.health.lint.names import check_beginning, check_names, missing_names, near_keyword
from argosy.gitops.health.lint.nil_access import check_nils
from argosy.gitops.health.lint.return_values import check_answers, check_end, returns_nowhere
from argosy.gitops.health.lint.script_facts import GaveUp, Limits
from argosy.gitops.health.lint.status_words import check_words
from argosy.gitops.health.lint.unreachable_code import check_branches, check_loops
from argosy.gitops.health.lua.syntax import LuaSyntaxError, parse
from argosy.gitops.health.lua.syntax.scopes import Scopes, Variable, resolve, walk
from argosy.gitops.health.lua.syntax.tree import Block, Function
from argosy.kube.names import GroupKind

_TRIES = (Limits(32, 32, 2_500), Limits(32, 4, 25_000), Limits(6, 2, 25_000), Limits(1, 1, 25_000))

__all__ = ["Finding", "Purpose", "Severity", "lint"]


def lint(
    script: str, *, open_libs: bool = False, purpose: Purpose = "health", kind: GroupKind | None = None
) -> list[Finding]:
    """Return the distinct findings, sorted by line. `kind` is the kind of the checked objects, if known."""
    try:
        tree = parse(script)
    except LuaSyntaxError as problem:
        return [_unread(script, problem)]
    scopes = resolve(tree)
    missing = missing_names(tree, scopes)
    found = [*check_beginning(script), *check_libraries(tree, scopes, open_libs=open_libs)]
    found += check_names(tree, scopes, missing)
    if purpose == "health":
        found += check_words(tree, scopes)
        found += check_generations(tree, kind) if kind else ()
    if returns_nowhere(tree):
        found.append(Finding("AGY401", tree.last_line, "never returns anything", "end the script with a return"))
    for limits in _TRIES:
        try:
            found += _follow(tree, scopes, purpose, limits, missing)
            break
        except (GaveUp, RecursionError):
            continue  # too complex: try again with less precision; the last attempt may find nothing
    return sorted(set(found), key=lambda one: (one.line, one.rule, one.message))


def _unread(script: str, problem: LuaSyntaxError) -> Finding:
    lines = script.split("\n")
    line = lines[problem.line - 1] if problem.line <= len(lines) else ""
    advice = near_keyword(line) or "correct the syntax at this line"
    return Finding("AGY401", problem.line, f"does not parse: {problem.message}", advice)


def _follow(tree: Block, scopes: Scopes, purpose: Purpose, limits: Limits, missing: set[Variable]) -> list[Finding]:
    flow = Flow(tree, scopes, limits, missing)
    flow.run()
    return [*_check_script(flow, purpose), *_check_functions(Flow(tree, scopes, limits, missing))]


def _check_script(flow: Flow, purpose: Purpose) -> Iterator[Finding]:
    tree = flow.script
    if not returns_nowhere(tree):
        yield from check_end(flow, purpose)
    yield from check_answers(flow, purpose)
    yield from check_nils(flow.nil_uses, purpose)
    yield from check_branches(flow, tree)
    yield from check_loops(flow, tree)


def _check_functions(alone: Flow) -> Iterator[Finding]:
    for node in walk(alone.script):
        if isinstance(node, Function):
            alone.run_alone(node)
            yield from check_branches(alone, node.body)
            yield from check_loops(alone, node.body)
