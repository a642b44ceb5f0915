"""Finds functions of a notebook that return nothing although their result is used.

In: syntax trees of cells. Out: calls whose value is None by mistake. Never: reports a function that is called for its
side effects, as most functions of notebooks are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

Function = ast.FunctionDef | ast.AsyncFunctionDef
Gives = Literal["value", "nothing", "sometimes"]
Parents = Mapping[ast.AST, ast.AST]

_ENDING_CALLS = frozenset({"exit", "quit", "sys.exit", "os._exit", "os.abort"})
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def defined(trees: Iterable[ast.Module]) -> dict[str, Gives]:
    """Map function names to what they return. Skips functions that are redefined, decorated or shadowed."""
    found: dict[str, Gives] = {}
    unclear: set[str] = set()
    for tree in trees:
        unclear.update(name for node in ast.walk(tree) for name in _other_meanings(node, tree))
        for statement in tree.body:
            if isinstance(statement, Function):
                unclear |= {statement.name} if statement.name in found or statement.decorator_list else set()
                found[statement.name] = gives(statement)
    return {name: what for name, what in found.items() if name not in unclear}


def _other_meanings(node: ast.AST, tree: ast.Module) -> Iterator[str]:
    """Names that are also bound to something other than a function of the notebook."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, Function) and node not in tree.body:
        yield node.name


def gives(function: Function) -> Gives:
    own = list(_own(function.body))
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own):
        return "value"  # a generator
    returned = [node for node in own if isinstance(node, ast.Return)]
    falls = not _ends(function.body)
    if not any(_is_value(each) for each in returned):
        # an explicit `return None` is intended; a stub that only raises returns nothing either way
        return "nothing" if falls or any(each.value is None for each in returned) else "value"
    is_optional = function.returns is not None and "None" in _text(function.returns) + _text_optional(function.returns)
    if not is_optional and (falls or any(each.value is None for each in returned)):
        return "sometimes"
    return "value"


def uses(tree: ast.Module, names: Mapping[str, Gives]) -> Iterator[tuple[ast.AST, str]]:
    """Calls of these functions whose value is used."""
    parents = parents_of(tree)
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Name) and called.id in names and is_used(node, parents):
            yield node, called.id


def parents_of(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def is_used(node: ast.AST, parents: Parents) -> bool:
    """True if the value of the node is used. Passing it on (return, lambda) does not count."""
    parent = parents.get(node)
    if parent is None or isinstance(parent, ast.Expr | ast.Return | ast.Lambda | ast.Yield):
        return False
    if isinstance(parent, ast.Assign):
        return not all(isinstance(each, ast.Name) and each.id.startswith("_") for each in parent.targets)
    if isinstance(parent, ast.Await | ast.Tuple | ast.ListComp | ast.SetComp | ast.GeneratorExp):
        return is_used(parent, parents)
    if isinstance(parent, ast.IfExp) and node is not parent.test:
        return is_used(parent, parents)
    if isinstance(parent, ast.BoolOp) and node is parent.values[-1]:
        return is_used(parent, parents)
    return True


def _own(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Nodes of a function body without those of nested functions."""
    for node in body:
        yield node
        if not isinstance(node, _INNER):
            yield from _own(ast.iter_child_nodes(node))


def _is_value(node: ast.Return) -> bool:
    return node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None)


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def _text_optional(node: ast.AST) -> str:
    return "None" if any(word in ast.unparse(node) for word in ("Optional", "Any")) else ""


def _ends(body: list[ast.stmt]) -> bool:
    """True if no statement after the body can be reached."""
    return any(map(_ends_here, body))


def _ends_here(node: ast.stmt) -> bool:
    if isinstance(node, ast.Return | ast.Raise):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func) in _ENDING_CALLS
    if isinstance(node, ast.If):
        return _ends(node.body) and _ends(node.orelse)
    if isinstance(node, ast.With | ast.AsyncWith):
        return _ends(node.body)
    if isinstance(node, ast.Try):
        handled = all(_ends(handler.body) for handler in node.handlers)
        return _ends(node.finalbody) or ((_ends(node.body) or _ends(node.orelse)) and handled)
    if isinstance(node, ast.While):
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        return endless and not any(isinstance(each, ast.Break) for each in _own(node.body))
    if isinstance(node, ast.Match):
        last = node.cases[-1].pattern
        covers = isinstance(last, ast.MatchAs) and last.pattern is None and node.cases[-1].guard is None
        return covers and all(_ends(case.body) for case in node.cases)
    return False
