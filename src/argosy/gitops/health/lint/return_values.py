"""AGY401: invalid results of a script; AGY402: results that never change.

In: the execution paths of a script. Out: findings. Never: guesses: an unknown result counts as any result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches

from argosy.gitops.application.step_results import Health
from argosy.gitops.health.lint.control_flow import Flow
from argosy.gitops.health.lint.finding import Finding, Purpose, Severity
from argosy.gitops.health.lint.flow_state import Result, State
from argosy.gitops.health.lint.names import inside_functions
from argosy.gitops.health.lint.values import NIL, TABLE, UNKNOWN, Atom, Value, exactly
from argosy.gitops.health.lua.syntax.scopes import walk
from argosy.gitops.health.lua.syntax.tree import Assign, Binary, Block, Field, Index, Node, Return, String

WORDS = tuple(str(word) for word in Health)
_RULE = "AGY401"
_RETURN_A_TABLE = 'return a table such as {status = "Progressing", message = "…"}'


@dataclass(slots=True)
class _At:
    """The possible results of one `return`."""

    statuses: list[Value] = field(default_factory=list)
    messages: list[Value] = field(default_factory=list)
    others: set[str] = field(default_factory=set)  # fields of results without a status
    kinds: list[Value] = field(default_factory=list)
    has_merged: bool = False


def returns_nowhere(script: Block) -> bool:
    """True if the script has no `return` outside its functions."""
    inside = inside_functions(script)
    return not any(isinstance(node, Return) and node not in inside for node in walk(script))


def check_end(flow: Flow, purpose: Purpose) -> Iterator[Finding]:
    """Report a script that can end without a result."""
    if any(not state.is_merged for state in flow.fell_off):
        yield Finding(
            _RULE,
            flow.script.last_line,
            "the script can end without returning a result",
            "return a table on every path; end the script with `return hs`"
            if purpose == "health"
            else "end with a return",
        )


def check_answers(flow: Flow, purpose: Purpose) -> Iterator[Finding]:
    places: dict[Return, _At] = {}
    for node, state, results, is_open in flow.answers:
        at = places.setdefault(node, _At())
        last = results[-1] if results and not is_open else Result(UNKNOWN if is_open else exactly(NIL))
        at.kinds.append(last.value)
        at.statuses.append(_part(state, last, "status"))
        at.messages.append(_part(state, last, "message"))
        if at.statuses[-1].must_be(NIL):
            at.others.update(_parts(state, last))
        at.has_merged |= state.is_merged
    for node, at in places.items():
        yield from _check_kind(node, at, purpose)
        if purpose == "health":
            yield from _check_status(node, at, flow.script)
    if purpose == "health":
        yield from _check_variety(flow, places)


def _part(state: State, answer: Result, name: str) -> Value:
    """Return a field of a result. argo: case-insensitive, but an exact match wins."""
    if not answer.value.may_be(TABLE):
        return exactly(NIL)
    parts = _parts(state, answer)
    if name not in parts:
        name = next((other for other in parts if other.lower() == name), name)
    if name in parts:
        return parts[name]
    if answer.place is not None:
        return state.look((*answer.place, name))
    return exactly(NIL) if answer.has_all_fields else UNKNOWN


def _parts(state: State, answer: Result) -> dict[str, Value]:
    """Return the fields that may be set."""
    if answer.place is not None:
        known = {place[-1]: value for place, value in state.values.items() if place[:-1] == answer.place}
    else:
        known = {name: part.value for name, part in (answer.fields or {}).items()}
    return {name: value for name, value in known.items() if not value.must_be(NIL)}


def _check_kind(node: Return, at: _At, purpose: Purpose) -> Iterator[Finding]:
    if any(kind.is_open for kind in at.kinds):
        return
    atoms = frozenset().union(*(kind.atoms for kind in at.kinds))
    wrong = sorted(kind for kind, _ in atoms if kind not in ("table", "nil"))
    advice = _RETURN_A_TABLE if purpose == "health" else "return a table"
    if wrong:
        yield Finding(_RULE, node.line, f"returns a {wrong[0]}, not a table", advice)
    elif atoms == {NIL}:
        yield Finding(
            _RULE, node.line, "returns nil, not a result", advice, "warning" if purpose == "health" else "error"
        )


def _check_status(node: Return, at: _At, script: Block) -> Iterator[Finding]:
    tables = [status for status, kind in zip(at.statuses, at.kinds) if kind.may_be(TABLE)]
    missing = [status for status in tables if status.must_be(NIL)]
    if missing and (len(missing) == len(tables) or not at.has_merged):
        is_always = len(missing) == len(tables)
        severity: Severity = "error" if is_always else "warning"
        yield Finding(
            _RULE,
            node.line,
            "returns a table without a status" if is_always else "can return a table without a status",
            _without_status(at.others),
            severity,
        )
    for kind, word in _atoms(tables):
        if kind == "string" and word not in WORDS:
            yield _unknown_word(str(word), node, script)
        elif kind not in ("string", "nil"):
            yield Finding(
                _RULE, node.line, f"returns a status that is a {kind}, not a string", f"one of {', '.join(WORDS)}"
            )
    for kind in sorted({kind for kind, _ in _atoms(at.messages)} - {"string", "nil"}):
        if not at.has_merged or all(_is_wrong(message) for message in at.messages):
            advice = "its object is Unknown; return a string, for example with tostring(…)"
            yield Finding(_RULE, node.line, f"returns a message that is a {kind}, not a string", advice)


def _is_wrong(message: Value) -> bool:
    return not message.is_open and all(kind not in ("string", "nil") for kind, _ in message.atoms)


def _atoms(values: list[Value]) -> list[Atom]:
    return sorted({atom for value in values if not value.is_open for atom in value.atoms}, key=str)


def _without_status(others: set[str]) -> str:
    if not others:
        return "an empty table counts as no result; set a status before this line on every path"
    near = get_close_matches("status", sorted(others), 1, 0.6)
    hint = f"call it status, not {near[0]}" if near else "set a status before this line on every path"
    return f"a result without a status makes its object Unknown; {hint}"


def _unknown_word(word: str, node: Return, script: Block) -> Finding:
    lines = list(_lines_of(word, script))
    near = get_close_matches(word.capitalize(), WORDS, 1, 0.6)
    hint = f'write "{near[0]}"' if near else f"use one of {', '.join(WORDS)}"
    return Finding(_RULE, lines[0] if lines else node.line, f'"{word}" is not a health status', hint)


def _lines_of(word: str, script: Block) -> Iterator[int]:
    """Yield the lines where the word is used as a status; else where it occurs outside comparisons."""
    compared: set[Node] = set()
    others: list[Node] = []
    for node in walk(script):
        match node:
            case Field(key=String(value="status"), value=String(value=value, line=line)) if value == word:
                yield line
            case Assign(targets=(Index(key=String(value="status")),), values=(String(value=value, line=line),)) if (
                value == word
            ):
                yield line
            case Binary():
                compared.update((node.left, node.right))
            case String(value=value) if value == word:
                others.append(node)
    yield from (node.line for node in others if node not in compared)


def _check_variety(flow: Flow, places: dict[Return, _At]) -> Iterator[Finding]:
    """Report AGY402, only if every result is known."""
    statuses = [status for at in places.values() for status in at.statuses]
    if not statuses or any(status.is_open for status in statuses):
        return
    words = {str(word) for status in statuses for kind, word in status.atoms if kind == "string"}
    line = min(node.line for node in places)
    if "Healthy" not in words and words <= set(WORDS) and words:
        yield Finding(
            "AGY402",
            line,
            f"can never be Healthy: every result is {' or '.join(sorted(words))}",
            "a sync would wait forever; return Healthy when the object is ready",
        )
    elif words == {"Healthy"} and not flow.fell_off and not any(status.may_be(NIL) for status in statuses):
        yield Finding(
            "AGY402",
            line,
            "is always Healthy, whatever the status of the object is",
            "a sync never waits for it and a failure never shows; read the status, or remove the check",
            "warning",
        )
