"""Finds the fields of `obj` that a script can read, so that only these are converted to Lua.

In: the text of a script. Out: `FieldReads`, or None if it may read everything.
Never: omits a field that the script can see: a script runs on the projected manifest exactly as on the full one.

A path is a sequence of constant keys below `obj`. A value that is only compared, tested, counted or concatenated needs
no content of a table; any other use needs all of it. A local that is assigned once, from such a path, is an alias of
the path.
"""

from __future__ import annotations

from argosy.gitops.health.lua.projection import Reads
from argosy.gitops.health.lua.syntax import LuaSyntaxError, parse
from argosy.gitops.health.lua.syntax.scopes import Scopes, Variable, children, resolve, walk
from argosy.gitops.health.lua.syntax.tree import (
    Assign,
    Binary,
    Block,
    Call,
    Clause,
    Concat,
    Expression,
    Index,
    Local,
    Logical,
    Name,
    Node,
    Repeat,
    String,
    Unary,
    While,
)

_Path = tuple[str, ...]
_Tree = dict[str, "_Tree | None"]

# These functions can reach `obj` in ways that this module cannot see.
# With a metatable, an operator passes its operands to a function.
_DOORS = frozenset(
    {"_G", "_ENV", "getfenv", "setfenv", "load", "loadstring", "loadfile", "dofile", "debug", "package", "module"}
    | {"setmetatable"}
)


def reads(script: str) -> Reads | None:
    """Return the fields that a script reads; None for all fields, also if the script does not parse."""
    try:
        tree = parse(script)
    except LuaSyntaxError:
        return None
    reader = _Reader(resolve(tree))
    try:
        reader.refuse_doors(tree)
        reader.visit(tree)
    except _Escapes:
        return None
    return _frozen(reader.found)


def _frozen(tree: _Tree) -> Reads:
    return tuple((name, None if below is None else _frozen(below)) for name, below in sorted(tree.items()))


def _is_of_os(call: Call) -> bool:
    """True if the argument is "os", the only module that cannot reach `obj`."""
    match call.arguments:
        case (String(value="os"),):
            return True
    return False


class _Escapes(Exception):
    """`obj` itself is used in a way that cannot be followed."""


class _Reader:
    def __init__(self, scopes: Scopes) -> None:
        self.found: _Tree = {}
        self._scopes = scopes
        self._aliases: dict[Variable, frozenset[_Path]] = {}
        self._flows: dict[Logical, frozenset[_Path]] = {}  # each node is visited once

    def refuse_doors(self, script: Block) -> None:
        for name, variable in self._scopes.globals.items():
            if name in _DOORS or (name == "obj" and variable.values):
                raise _Escapes
        if "require" in self._scopes.globals:
            self._refuse_modules(script)

    def _refuse_modules(self, script: Block) -> None:
        harmless = {node.function for node in walk(script) if isinstance(node, Call) and _is_of_os(node)}
        if any(name not in harmless for name in self._scopes.globals["require"].names):
            raise _Escapes

    # -- recording reads --

    def _note(self, paths: frozenset[_Path], *, whole: bool) -> None:
        for path in paths:
            if not path:
                if whole:
                    raise _Escapes
                continue
            level = self.found
            for name in path[:-1]:
                below = level.setdefault(name, {})
                if below is None:
                    break  # the whole field is read anyway
                level = below
            else:
                if whole:
                    level[path[-1]] = None
                else:
                    level.setdefault(path[-1], {})

    # -- paths of a value --

    def _paths(self, node: Expression) -> frozenset[_Path]:
        """Return the possible paths of an expression; empty if it is not a part of `obj`."""
        match node:
            case Name():
                variable = self._scopes.variables[node]
                if variable.is_global and node.name == "obj":
                    return frozenset({()})
                return self._aliases.get(variable, frozenset())
            case Index(base=base, key=String(value=key)):
                return frozenset((*path, key) for path in self._paths(base))
            case Logical():
                return self._flow(node)
        return frozenset()

    def _flow(self, node: Expression) -> frozenset[_Path]:
        """Visit an expression whose value is assigned to a name; return the paths that the name is an alias of."""
        if isinstance(node, Logical):
            if node not in self._flows:
                self._flows[node] = self._flow_of(node)
            return self._flows[node]
        if paths := self._paths(node):
            self._note(paths, whole=False)
            return paths
        self.visit(node)
        return frozenset()

    def _flow_of(self, node: Logical) -> frozenset[_Path]:
        flowing: frozenset[_Path] = frozenset()
        for operand in node.operands[:-1]:
            if node.operator == "and":
                self._test(operand)  # its result can only be nil or false
            else:
                flowing |= self._flow(operand)
        return flowing | self._flow(node.operands[-1])

    # -- traversal --

    def visit(self, node: Node) -> None:
        """Visit a node whose value may be used in any way."""
        match node:
            case Name() | Index() | Logical():
                self._visit_value(node)
            case Local():
                self._local(node)
            case Assign():
                self._assign(node)
            case Clause() | While():
                self._test(node.condition)
                self.visit(node.body)
            case Repeat():
                self.visit(node.body)
                self._test(node.condition)
            case Binary() | Concat():
                for operand in children(node):
                    self._test(operand)
            case Unary(operator=operator, operand=operand) if operator != "#":
                self._test(operand)
            case Call():
                self._test(node.function)
                for argument in node.arguments:
                    (self._test if self._only_tests(node.function) else self.visit)(argument)
            case _:
                for child in children(node):
                    self.visit(child)

    def _only_tests(self, function: Expression) -> bool:
        if not isinstance(function, Name) or function.name not in ("type", "tonumber"):
            return False
        variable = self._scopes.variables[function]
        return variable.is_global and not variable.values

    def _visit_value(self, node: Name | Index | Logical) -> None:
        if isinstance(node, Logical):
            self._note(self._flow(node), whole=True)
        elif paths := self._paths(node):
            self._note(paths, whole=True)
        elif isinstance(node, Index):
            self.visit(node.base)  # the key is not constant, so the whole base is read
            self.visit(node.key)  # a table can be used as a key

    def _test(self, node: Node) -> None:
        """Visit a node whose value is only tested for nil or false, or used as a string or number."""
        if isinstance(node, Logical):
            for operand in node.operands:
                self._test(operand)
        elif isinstance(node, Expression) and (paths := self._paths(node)):
            self._note(paths, whole=False)
        else:
            self.visit(node)

    def _local(self, node: Local) -> None:
        for place, value in enumerate(node.values):
            variable = self._scopes.variables[node.names[place]] if place < len(node.names) else None
            if variable is None or len(variable.values) > 1:
                self.visit(value)
            elif paths := self._flow(value):
                self._aliases[variable] = paths

    def _assign(self, node: Assign) -> None:
        for place, value in enumerate(node.values):
            target = node.targets[place] if place < len(node.targets) else None
            if isinstance(target, Index) and (paths := self._paths(target)):
                # `obj.status = obj.status or {}` keeps a table in its place, so it does not escape.
                flowing = self._flow(value)
                self._note(flowing - paths if len(paths) == 1 else flowing, whole=True)
            else:
                self.visit(value)
        for target in node.targets:
            if isinstance(target, Index):
                self._test(target.base)
                self.visit(target.key)
