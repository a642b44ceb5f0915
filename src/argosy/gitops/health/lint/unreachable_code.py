"""AGY408: code that no execution path reaches.

In: the execution paths of a script and its functions. Out: findings. Never: reports code that was not analysed.
"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.gitops.health.lint.finding import LintFinding
from argosy.gitops.health.lint.symbolic_execution import ControlFlow
from argosy.gitops.health.lua.syntax.scopes import list_children
from argosy.gitops.health.lua.syntax.tree import (
    BreakStatement,
    FunctionExpression,
    GenericFor,
    GotoStatement,
    IfStatement,
    LabelStatement,
    LuaBlock,
    LuaConstant,
    LuaNode,
    NumericFor,
    RepeatLoop,
    ReturnStatement,
    StringLiteral,
    WhileLoop,
)

_RULE = "AGY408"
_RAISING_GLOBALS = frozenset({"error", "assert", "coroutine"})
_ADVICE = "remove it, or correct the condition that leads here"


def check_branches(flow: ControlFlow, root: LuaNode) -> Iterator[LintFinding]:
    """Report unreachable branches below this node, outside of inner functions."""
    if isinstance(root, IfStatement):
        yield from _check_if(flow, root)
    elif isinstance(root, LuaBlock):
        yield from _check_block(flow, root)
    for child in list_children(root):
        if not isinstance(child, FunctionExpression):
            yield from check_branches(flow, child)


def _check_if(flow: ControlFlow, node: IfStatement) -> Iterator[LintFinding]:
    if node not in flow.reached_nodes:
        return
    for position, clause in enumerate(node.clauses):
        if clause not in flow.reached_nodes:
            yield LintFinding(
                _RULE, clause.line, "this branch is never taken: one before it always is", _ADVICE, "warning"
            )
            return
        if clause not in flow.entered_clauses and clause.body.statements:
            reason = (
                "its condition cannot hold here" if not position else "its condition cannot hold after those before it"
            )
            yield LintFinding(_RULE, clause.line, f"this branch is never taken: {reason}", _ADVICE, "warning")
    if node.otherwise is not None and node.otherwise not in flow.reached_nodes and node.otherwise.statements:
        line = node.otherwise.statements[0].line
        yield LintFinding(
            _RULE, line, "this else is never taken: a condition before it always holds", _ADVICE, "warning"
        )


def _check_block(flow: ControlFlow, block: LuaBlock) -> Iterator[LintFinding]:
    """Report the first unreachable statement of a reachable block."""
    if not block.statements or block.statements[0] not in flow.reached_nodes:
        return
    for statement in block.statements:
        if statement in flow.reached_nodes or isinstance(statement, LabelStatement):
            continue
        if not isinstance(
            statement, ReturnStatement
        ):  # a final return after branches that all return is only defensive
            yield LintFinding(
                _RULE, statement.line, "this code is unreachable: the code before it always leaves", _ADVICE, "warning"
            )
        return


def check_loops(flow: ControlFlow, root: LuaNode) -> Iterator[LintFinding]:
    """Report loops that are never entered, or never end."""
    for child in list_children(root):
        if isinstance(child, FunctionExpression):
            continue
        if isinstance(child, WhileLoop) and child in flow.reached_nodes:
            first_statements = child.body.statements[:1]
            if first_statements and first_statements[0] not in flow.reached_nodes:
                yield LintFinding(
                    _RULE, child.line, "this loop is never entered: its condition cannot hold", _ADVICE, "warning"
                )
        if isinstance(child, WhileLoop | RepeatLoop) and child in flow.reached_nodes and _never_ends(child, flow):
            yield LintFinding(
                _RULE, child.line, "this loop never ends: nothing in it leaves it", "leave it with break or return"
            )
        yield from check_loops(flow, child)


def _never_ends(loop: WhileLoop | RepeatLoop, flow: ControlFlow) -> bool:
    """True if the condition is a constant, and neither a jump nor an error leaves the loop."""
    if not isinstance(loop.condition, LuaConstant | StringLiteral):
        return False
    is_true = isinstance(loop.condition, StringLiteral) or loop.condition.is_number or loop.condition.value is True
    if is_true != isinstance(loop, WhileLoop) or not _RAISING_GLOBALS.isdisjoint(flow.scopes.globals):
        return False
    return not any(_leaves_loop(node) for node in _walk_loop_body(loop.body))


def _leaves_loop(node: LuaNode) -> bool:
    return isinstance(node, ReturnStatement | GotoStatement | BreakStatement)


def _walk_loop_body(root: LuaNode, *, is_in_loop: bool = False) -> Iterator[LuaNode]:
    """Yield the nodes of a loop body; a break of an inner loop leaves only that one."""
    for child in list_children(root):
        if isinstance(child, FunctionExpression) or (is_in_loop and isinstance(child, BreakStatement)):
            continue
        yield child
        yield from _walk_loop_body(
            child, is_in_loop=is_in_loop or isinstance(child, WhileLoop | RepeatLoop | NumericFor | GenericFor)
        )
