"""Finds functions of a notebook that return nothing although their result is used.

In: syntax trees of cells. Out: calls whose value is None by mistake. Never: reports a function that is called for its
side effects, as most functions of notebooks are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

Function = ast.FunctionDef | ast.AsyncFunctionDef
ReturnKind = Literal["value", "nothing", "sometimes"]
Parents = Mapping[ast.AST, ast.AST]

_EXIT_CALLS = frozenset({"exit", "quit", "sys.exit", "os._exit", "os.abort"})
_NESTED_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def classify_functions(trees: Iterable[ast.Module]) -> dict[str, ReturnKind]:
    """Map function names to what they return. Skips functions that are redefined, decorated or shadowed."""
    kinds: dict[str, ReturnKind] = {}
    ambiguous_names: set[str] = set()
    for tree in trees:
        ambiguous_names.update(name for node in ast.walk(tree) for name in _list_other_bindings(node, tree))
        for statement in tree.body:
            if isinstance(statement, Function):
                ambiguous_names |= {statement.name} if statement.name in kinds or statement.decorator_list else set()
                kinds[statement.name] = classify_function(statement)
    return {name: kind for name, kind in kinds.items() if name not in ambiguous_names}


def _list_other_bindings(node: ast.AST, tree: ast.Module) -> Iterator[str]:
    """Names that are also bound to something other than a function of the notebook."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, Function) and node not in tree.body:
        yield node.name


def classify_function(function: Function) -> ReturnKind:
    nodes = list(_walk_without_nested(function.body))
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes):
        return "value"  # a generator
    return_nodes = [node for node in nodes if isinstance(node, ast.Return)]
    can_fall_through = not _always_exits(function.body)
    if not any(_returns_value(return_node) for return_node in return_nodes):
        # an explicit `return None` is intended; a stub that only raises returns nothing either way
        return (
            "nothing" if can_fall_through or any(return_node.value is None for return_node in return_nodes) else "value"
        )
    is_optional = function.returns is not None and "None" in _unparse(function.returns) + _render_none_if_optional(
        function.returns
    )
    if not is_optional and (can_fall_through or any(return_node.value is None for return_node in return_nodes)):
        return "sometimes"
    return "value"


def find_used_calls(tree: ast.Module, functions: Mapping[str, ReturnKind]) -> Iterator[tuple[ast.AST, str]]:
    """Calls of these functions whose value is used."""
    parents = map_parents(tree)
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Name) and called.id in functions and is_used(node, parents):
            yield node, called.id


def map_parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def is_used(node: ast.AST, parents: Parents) -> bool:
    """True if the value of the node is used. Passing it on (return, lambda) does not count."""
    parent = parents.get(node)
    if parent is None or isinstance(parent, ast.Expr | ast.Return | ast.Lambda | ast.Yield):
        return False
    if isinstance(parent, ast.Assign):
        return not all(isinstance(target, ast.Name) and target.id.startswith("_") for target in parent.targets)
    if isinstance(parent, ast.Await | ast.Tuple | ast.ListComp | ast.SetComp | ast.GeneratorExp):
        return is_used(parent, parents)
    if isinstance(parent, ast.IfExp) and node is not parent.test:
        return is_used(parent, parents)
    if isinstance(parent, ast.BoolOp) and node is parent.values[-1]:
        return is_used(parent, parents)
    return True


def _walk_without_nested(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Nodes of a function body without those of nested functions."""
    for node in body:
        yield node
        if not isinstance(node, _NESTED_SCOPES):
            yield from _walk_without_nested(ast.iter_child_nodes(node))


def _returns_value(node: ast.Return) -> bool:
    return node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None)


def _unparse(node: ast.AST) -> str:
    return ast.unparse(node)


def _render_none_if_optional(node: ast.AST) -> str:
    return "None" if any(word in ast.unparse(node) for word in ("Optional", "Any")) else ""


def _always_exits(body: list[ast.stmt]) -> bool:
    """True if no statement after the body can be reached."""
    return any(map(_statement_always_exits, body))


def _statement_always_exits(node: ast.stmt) -> bool:
    if isinstance(node, ast.Return | ast.Raise):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func) in _EXIT_CALLS
    if isinstance(node, ast.If):
        return _always_exits(node.body) and _always_exits(node.orelse)
    if isinstance(node, ast.With | ast.AsyncWith):
        return _always_exits(node.body)
    if isinstance(node, ast.Try):
        handlers_exit = all(_always_exits(handler.body) for handler in node.handlers)
        return _always_exits(node.finalbody) or (
            (_always_exits(node.body) or _always_exits(node.orelse)) and handlers_exit
        )
    if isinstance(node, ast.While):
        is_endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        return is_endless and not any(isinstance(child, ast.Break) for child in _walk_without_nested(node.body))
    if isinstance(node, ast.Match):
        last = node.cases[-1].pattern
        has_default = isinstance(last, ast.MatchAs) and last.pattern is None and node.cases[-1].guard is None
        return has_default and all(_always_exits(case.body) for case in node.cases)
    return False
