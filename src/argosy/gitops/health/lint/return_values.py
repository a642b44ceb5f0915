"""AGY401: invalid results of a script; AGY402: results that never change.

In: the execution paths of a script. Out: findings. Never: guesses: an unknown result counts as any result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches

from argosy.gitops.application.step_results import HealthStatus
from argosy.gitops.health.lint.finding import LintFinding, ScriptPurpose, Severity
from argosy.gitops.health.lint.flow_state import ExpressionResult, FlowState
from argosy.gitops.health.lint.possible_value_set import NIL, TABLE, UNKNOWN, PossibleValues, ValueAtom, values_of
from argosy.gitops.health.lint.symbolic_execution import ControlFlow
from argosy.gitops.health.lint.undefined_globals import nodes_in_functions
from argosy.gitops.health.lua.syntax.scopes import walk_tree
from argosy.gitops.health.lua.syntax.tree import (
    AssignStatement,
    BinaryExpression,
    IndexExpression,
    LuaBlock,
    LuaNode,
    ReturnStatement,
    StringLiteral,
    TableField,
)

HEALTH_STATUSES = tuple(str(word) for word in HealthStatus)
_RULE = "AGY401"
_RETURN_TABLE_ADVICE = 'return a table such as {status = "Progressing", message = "…"}'


@dataclass(slots=True)
class _ReturnedValues:
    """The possible results of one `return`."""

    statuses: list[PossibleValues] = field(default_factory=list)
    messages: list[PossibleValues] = field(default_factory=list)
    other_fields: set[str] = field(default_factory=set)  # fields of results without a status
    results: list[PossibleValues] = field(default_factory=list)
    has_merged: bool = False


def has_no_return(script: LuaBlock) -> bool:
    """True if the script has no `return` outside its functions."""
    function_nodes = nodes_in_functions(script)
    return not any(isinstance(node, ReturnStatement) and node not in function_nodes for node in walk_tree(script))


def check_missing_result(flow: ControlFlow, purpose: ScriptPurpose) -> Iterator[LintFinding]:
    """Report a script that can end without a result."""
    if any(not state.is_merged for state in flow.end_states):
        yield LintFinding(
            _RULE,
            flow.script.last_line,
            "the script can end without returning a result",
            "return a table on every path; end the script with `return hs`"
            if purpose == "health"
            else "end with a return",
        )


def check_results(flow: ControlFlow, purpose: ScriptPurpose) -> Iterator[LintFinding]:
    values_by_return: dict[ReturnStatement, _ReturnedValues] = {}
    for node, state, results, is_open in flow.script_results:
        returned = values_by_return.setdefault(node, _ReturnedValues())
        final = results[-1] if results and not is_open else ExpressionResult(UNKNOWN if is_open else values_of(NIL))
        returned.results.append(final.value)
        returned.statuses.append(_read_result_field(state, final, "status"))
        returned.messages.append(_read_result_field(state, final, "message"))
        if returned.statuses[-1].must_be(NIL):
            returned.other_fields.update(_list_result_fields(state, final))
        returned.has_merged |= state.is_merged
    for node, returned in values_by_return.items():
        yield from _check_result_type(node, returned, purpose)
        if purpose == "health":
            yield from _check_status(node, returned, flow.script)
    if purpose == "health":
        yield from _check_constant_status(flow, values_by_return)


def _read_result_field(state: FlowState, result: ExpressionResult, name: str) -> PossibleValues:
    """Return a field of a result. argo: case-insensitive, but an exact match wins."""
    if not result.value.may_be(TABLE):
        return values_of(NIL)
    fields = _list_result_fields(state, result)
    if name not in fields:
        name = next((candidate for candidate in fields if candidate.lower() == name), name)
    if name in fields:
        return fields[name]
    if result.location is not None:
        return state.value_at((*result.location, name))
    return values_of(NIL) if result.has_all_fields else UNKNOWN


def _list_result_fields(state: FlowState, result: ExpressionResult) -> dict[str, PossibleValues]:
    """Return the fields that may be set."""
    if result.location is not None:
        fields = {location[-1]: value for location, value in state.values.items() if location[:-1] == result.location}
    else:
        fields = {name: part.value for name, part in (result.fields or {}).items()}
    return {name: value for name, value in fields.items() if not value.must_be(NIL)}


def _check_result_type(
    node: ReturnStatement, returned: _ReturnedValues, purpose: ScriptPurpose
) -> Iterator[LintFinding]:
    if any(kind.is_open for kind in returned.results):
        return
    atoms = frozenset().union(*(kind.atoms for kind in returned.results))
    wrong_types = sorted(kind for kind, _ in atoms if kind not in ("table", "nil"))
    advice = _RETURN_TABLE_ADVICE if purpose == "health" else "return a table"
    if wrong_types:
        yield LintFinding(_RULE, node.line, f"returns a {wrong_types[0]}, not a table", advice)
    elif atoms == {NIL}:
        yield LintFinding(
            _RULE, node.line, "returns nil, not a result", advice, "warning" if purpose == "health" else "error"
        )


def _check_status(node: ReturnStatement, returned: _ReturnedValues, script: LuaBlock) -> Iterator[LintFinding]:
    tables = [status for status, kind in zip(returned.statuses, returned.results) if kind.may_be(TABLE)]
    missing = [status for status in tables if status.must_be(NIL)]
    if missing and (len(missing) == len(tables) or not returned.has_merged):
        is_always = len(missing) == len(tables)
        severity: Severity = "error" if is_always else "warning"
        yield LintFinding(
            _RULE,
            node.line,
            "returns a table without a status" if is_always else "can return a table without a status",
            _missing_status_advice(returned.other_fields),
            severity,
        )
    for kind, status_word in _list_atoms(tables):
        if kind == "string" and status_word not in HEALTH_STATUSES:
            yield _unknown_status_finding(str(status_word), node, script)
        elif kind not in ("string", "nil"):
            yield LintFinding(
                _RULE,
                node.line,
                f"returns a status that is a {kind}, not a string",
                f"one of {', '.join(HEALTH_STATUSES)}",
            )
    for kind in sorted({kind for kind, _ in _list_atoms(returned.messages)} - {"string", "nil"}):
        if not returned.has_merged or all(_is_not_string(message) for message in returned.messages):
            advice = "its object is Unknown; return a string, for example with tostring(…)"
            yield LintFinding(_RULE, node.line, f"returns a message that is a {kind}, not a string", advice)


def _is_not_string(message: PossibleValues) -> bool:
    return not message.is_open and all(kind not in ("string", "nil") for kind, _ in message.atoms)


def _list_atoms(values: list[PossibleValues]) -> list[ValueAtom]:
    return sorted({atom for value in values if not value.is_open for atom in value.atoms}, key=str)


def _missing_status_advice(other_fields: set[str]) -> str:
    if not other_fields:
        return "an empty table counts as no result; set a status before this line on every path"
    similar = get_close_matches("status", sorted(other_fields), 1, 0.6)
    hint = f"call it status, not {similar[0]}" if similar else "set a status before this line on every path"
    return f"a result without a status makes its object Unknown; {hint}"


def _unknown_status_finding(word: str, node: ReturnStatement, script: LuaBlock) -> LintFinding:
    lines = list(_find_status_lines(word, script))
    similar = get_close_matches(word.capitalize(), HEALTH_STATUSES, 1, 0.6)
    hint = f'write "{similar[0]}"' if similar else f"use one of {', '.join(HEALTH_STATUSES)}"
    return LintFinding(_RULE, lines[0] if lines else node.line, f'"{word}" is not a health status', hint)


def _find_status_lines(word: str, script: LuaBlock) -> Iterator[int]:
    """Yield the lines where the word is used as a status; else where it occurs outside comparisons."""
    compared: set[LuaNode] = set()
    other_nodes: list[LuaNode] = []
    for node in walk_tree(script):
        match node:
            case TableField(key=StringLiteral(value="status"), value=StringLiteral(value=value, line=line)) if (
                value == word
            ):
                yield line
            case AssignStatement(
                targets=(IndexExpression(key=StringLiteral(value="status")),),
                values=(StringLiteral(value=value, line=line),),
            ) if value == word:
                yield line
            case BinaryExpression():
                compared.update((node.left, node.right))
            case StringLiteral(value=value) if value == word:
                other_nodes.append(node)
    yield from (node.line for node in other_nodes if node not in compared)


def _check_constant_status(
    flow: ControlFlow, values_by_return: dict[ReturnStatement, _ReturnedValues]
) -> Iterator[LintFinding]:
    """Report AGY402, only if every result is known."""
    statuses = [status for returned in values_by_return.values() for status in returned.statuses]
    if not statuses or any(status.is_open for status in statuses):
        return
    words = {str(word) for status in statuses for kind, word in status.atoms if kind == "string"}
    line = min(node.line for node in values_by_return)
    if "Healthy" not in words and words <= set(HEALTH_STATUSES) and words:
        yield LintFinding(
            "AGY402",
            line,
            f"can never be Healthy: every result is {' or '.join(sorted(words))}",
            "a sync would wait forever; return Healthy when the object is ready",
        )
    elif words == {"Healthy"} and not flow.end_states and not any(status.may_be(NIL) for status in statuses):
        yield LintFinding(
            "AGY402",
            line,
            "is always Healthy, whatever the status of the object is",
            "a sync never waits for it and a failure never shows; read the status, or remove the check",
            "warning",
        )
