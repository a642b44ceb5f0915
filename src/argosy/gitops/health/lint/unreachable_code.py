"""AGY408: code that no execution path reaches.

In: the execution paths of a script and its functions. Out: findings. Never: reports code that was not analysed.
"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.gitops.health.lint.control_flow import Flow
from argosy.gitops.health.lint.finding import Finding
from argosy.gitops.health.lua.syntax.scopes import children
from argosy.gitops.health.lua.syntax.tree import (
    Block,
    Break,
    Constant,
    For,
    ForIn,
    Function,
    Goto,
    If,
    Label,
    Node,
    Repeat,
    Return,
    String,
    While,
)

_RULE = "AGY408"
_RAISING = frozenset({"error", "assert", "coroutine"})
_ADVICE = "remove it, or correct the condition that leads here"


def check_branches(flow: Flow, root: Node) -> Iterator[Finding]:
    """Report unreachable branches below this node, outside of inner functions."""
    if isinstance(root, If):
        yield from _check_if(flow, root)
    elif isinstance(root, Block):
        yield from _check_block(flow, root)
    for child in children(root):
        if not isinstance(child, Function):
            yield from check_branches(flow, child)


def _check_if(flow: Flow, node: If) -> Iterator[Finding]:
    if node not in flow.reached:
        return
    for place, clause in enumerate(node.clauses):
        if clause not in flow.reached:
            yield Finding(_RULE, clause.line, "this branch is never taken: one before it always is", _ADVICE, "warning")
            return
        if clause not in flow.entered and clause.body.statements:
            why = "its condition cannot hold here" if not place else "its condition cannot hold after those before it"
            yield Finding(_RULE, clause.line, f"this branch is never taken: {why}", _ADVICE, "warning")
    if node.otherwise is not None and node.otherwise not in flow.reached and node.otherwise.statements:
        line = node.otherwise.statements[0].line
        yield Finding(_RULE, line, "this else is never taken: a condition before it always holds", _ADVICE, "warning")


def _check_block(flow: Flow, block: Block) -> Iterator[Finding]:
    """Report the first unreachable statement of a reachable block."""
    if not block.statements or block.statements[0] not in flow.reached:
        return
    for statement in block.statements:
        if statement in flow.reached or isinstance(statement, Label):
            continue
        if not isinstance(statement, Return):  # a final return after branches that all return is only defensive
            yield Finding(
                _RULE, statement.line, "this code is unreachable: the code before it always leaves", _ADVICE, "warning"
            )
        return


def check_loops(flow: Flow, root: Node) -> Iterator[Finding]:
    """Report loops that are never entered, or never end."""
    for child in children(root):
        if isinstance(child, Function):
            continue
        if isinstance(child, While) and child in flow.reached:
            first = child.body.statements[:1]
            if first and first[0] not in flow.reached:
                yield Finding(
                    _RULE, child.line, "this loop is never entered: its condition cannot hold", _ADVICE, "warning"
                )
        if isinstance(child, While | Repeat) and child in flow.reached and _never_ends(child, flow):
            yield Finding(
                _RULE, child.line, "this loop never ends: nothing in it leaves it", "leave it with break or return"
            )
        yield from check_loops(flow, child)


def _never_ends(loop: While | Repeat, flow: Flow) -> bool:
    """True if the condition is a constant, and neither a jump nor an error leaves the loop."""
    if not isinstance(loop.condition, Constant | String):
        return False
    holds = isinstance(loop.condition, String) or loop.condition.is_number or loop.condition.value is True
    if holds != isinstance(loop, While) or not _RAISING.isdisjoint(flow.scopes.globals):
        return False
    return not any(_leaves(node) for node in _inside(loop.body))


def _leaves(node: Node) -> bool:
    return isinstance(node, Return | Goto | Break)


def _inside(root: Node, *, is_in_loop: bool = False) -> Iterator[Node]:
    """Yield the nodes of a loop body; a break of an inner loop leaves only that one."""
    for child in children(root):
        if isinstance(child, Function) or (is_in_loop and isinstance(child, Break)):
            continue
        yield child
        yield from _inside(child, is_in_loop=is_in_loop or isinstance(child, While | Repeat | For | ForIn))
