"""Finds the fields of `obj` that a script can read, so that only these are converted to Lua.

In: the text of a script. Out: `FieldReads`, or None if it may read everything.
Never: omits a field that the script can see: a script runs on the projected manifest exactly as on the full one.

A path is a sequence of constant keys below `obj`. A value that is only compared, tested, counted or concatenated needs
no content of a table; any other use needs all of it. A local that is assigned once, from such a path, is an alias of
the path.
"""

from __future__ import annotations

from argosy.gitops.health.lua.manifest_projection import FieldReads
from argosy.gitops.health.lua.syntax import LuaSyntaxError, parse
from argosy.gitops.health.lua.syntax.scopes import LuaScopes, LuaVariable, list_children, resolve_scopes, walk_tree
from argosy.gitops.health.lua.syntax.tree import (
    AssignStatement,
    BinaryExpression,
    ConcatExpression,
    FunctionCall,
    IfClause,
    IndexExpression,
    LocalStatement,
    LogicalExpression,
    LuaBlock,
    LuaExpression,
    LuaNode,
    NameReference,
    RepeatLoop,
    StringLiteral,
    UnaryExpression,
    WhileLoop,
)

_Path = tuple[str, ...]
_PathTree = dict[str, "_PathTree | None"]

# These functions can reach `obj` in ways that this module cannot see.
# With a metatable, an operator passes its operands to a function.
_ESCAPING_FUNCTIONS = frozenset(
    {"_G", "_ENV", "getfenv", "setfenv", "load", "loadstring", "loadfile", "dofile", "debug", "package", "module"}
    | {"setmetatable"}
)


def find_field_reads(script: str) -> FieldReads | None:
    """Return the fields that a script reads; None for all fields, also if the script does not parse."""
    try:
        tree = parse(script)
    except LuaSyntaxError:
        return None
    reader = _FieldReadFinder(resolve_scopes(tree))
    try:
        reader.check_object_escapes(tree)
        reader.visit(tree)
    except _ObjectEscapes:
        return None
    return _freeze(reader.paths)


def _freeze(tree: _PathTree) -> FieldReads:
    return tuple((name, None if subtree is None else _freeze(subtree)) for name, subtree in sorted(tree.items()))


def _is_os_module_call(call: FunctionCall) -> bool:
    """True if the argument is "os", the only module that cannot reach `obj`."""
    match call.arguments:
        case (StringLiteral(value="os"),):
            return True
    return False


class _ObjectEscapes(Exception):
    """`obj` itself is used in a way that cannot be followed."""


class _FieldReadFinder:
    def __init__(self, scopes: LuaScopes) -> None:
        self.paths: _PathTree = {}
        self._scopes = scopes
        self._aliases: dict[LuaVariable, frozenset[_Path]] = {}
        self._flows: dict[LogicalExpression, frozenset[_Path]] = {}  # each node is visited once

    def check_object_escapes(self, script: LuaBlock) -> None:
        for name, variable in self._scopes.globals.items():
            if name in _ESCAPING_FUNCTIONS or (name == "obj" and variable.values):
                raise _ObjectEscapes
        if "require" in self._scopes.globals:
            self._check_modules(script)

    def _check_modules(self, script: LuaBlock) -> None:
        harmless = {
            node.function for node in walk_tree(script) if isinstance(node, FunctionCall) and _is_os_module_call(node)
        }
        if any(name not in harmless for name in self._scopes.globals["require"].names):
            raise _ObjectEscapes

    # -- recording reads --

    def _record(self, paths: frozenset[_Path], *, reads_all: bool) -> None:
        for path in paths:
            if not path:
                if reads_all:
                    raise _ObjectEscapes
                continue
            level = self.paths
            for name in path[:-1]:
                subtree = level.setdefault(name, {})
                if subtree is None:
                    break  # the whole field is read anyway
                level = subtree
            else:
                if reads_all:
                    level[path[-1]] = None
                else:
                    level.setdefault(path[-1], {})

    # -- paths of a value --

    def _possible_paths(self, node: LuaExpression) -> frozenset[_Path]:
        """Return the possible paths of an expression; empty if it is not a part of `obj`."""
        match node:
            case NameReference():
                variable = self._scopes.variables[node]
                if variable.is_global and node.name == "obj":
                    return frozenset({()})
                return self._aliases.get(variable, frozenset())
            case IndexExpression(base=base, key=StringLiteral(value=key)):
                return frozenset((*path, key) for path in self._possible_paths(base))
            case LogicalExpression():
                return self._visit_assigned(node)
        return frozenset()

    def _visit_assigned(self, node: LuaExpression) -> frozenset[_Path]:
        """Visit an expression whose value is assigned to a name; return the paths that the name is an alias of."""
        if isinstance(node, LogicalExpression):
            if node not in self._flows:
                self._flows[node] = self._visit_logical(node)
            return self._flows[node]
        if paths := self._possible_paths(node):
            self._record(paths, reads_all=False)
            return paths
        self.visit(node)
        return frozenset()

    def _visit_logical(self, node: LogicalExpression) -> frozenset[_Path]:
        paths: frozenset[_Path] = frozenset()
        for operand in node.operands[:-1]:
            if node.operator == "and":
                self._visit_tested(operand)  # its result can only be nil or false
            else:
                paths |= self._visit_assigned(operand)
        return paths | self._visit_assigned(node.operands[-1])

    # -- traversal --

    def visit(self, node: LuaNode) -> None:
        """Visit a node whose value may be used in any way."""
        match node:
            case NameReference() | IndexExpression() | LogicalExpression():
                self._visit_value(node)
            case LocalStatement():
                self._visit_local(node)
            case AssignStatement():
                self._visit_assign(node)
            case IfClause() | WhileLoop():
                self._visit_tested(node.condition)
                self.visit(node.body)
            case RepeatLoop():
                self.visit(node.body)
                self._visit_tested(node.condition)
            case BinaryExpression() | ConcatExpression():
                for operand in list_children(node):
                    self._visit_tested(operand)
            case UnaryExpression(operator=operator, operand=operand) if operator != "#":
                self._visit_tested(operand)
            case FunctionCall():
                self._visit_tested(node.function)
                for argument in node.arguments:
                    (self._visit_tested if self._is_type_test(node.function) else self.visit)(argument)
            case _:
                for child in list_children(node):
                    self.visit(child)

    def _is_type_test(self, function: LuaExpression) -> bool:
        if not isinstance(function, NameReference) or function.name not in ("type", "tonumber"):
            return False
        variable = self._scopes.variables[function]
        return variable.is_global and not variable.values

    def _visit_value(self, node: NameReference | IndexExpression | LogicalExpression) -> None:
        if isinstance(node, LogicalExpression):
            self._record(self._visit_assigned(node), reads_all=True)
        elif paths := self._possible_paths(node):
            self._record(paths, reads_all=True)
        elif isinstance(node, IndexExpression):
            self.visit(node.base)  # the key is not constant, so the whole base is read
            self.visit(node.key)  # a table can be used as a key

    def _visit_tested(self, node: LuaNode) -> None:
        """Visit a node whose value is only tested for nil or false, or used as a string or number."""
        if isinstance(node, LogicalExpression):
            for operand in node.operands:
                self._visit_tested(operand)
        elif isinstance(node, LuaExpression) and (paths := self._possible_paths(node)):
            self._record(paths, reads_all=False)
        else:
            self.visit(node)

    def _visit_local(self, node: LocalStatement) -> None:
        for position, value in enumerate(node.values):
            variable = self._scopes.variables[node.names[position]] if position < len(node.names) else None
            if variable is None or len(variable.values) > 1:
                self.visit(value)
            elif paths := self._visit_assigned(value):
                self._aliases[variable] = paths

    def _visit_assign(self, node: AssignStatement) -> None:
        for position, value in enumerate(node.values):
            target = node.targets[position] if position < len(node.targets) else None
            if isinstance(target, IndexExpression) and (paths := self._possible_paths(target)):
                # `obj.status = obj.status or {}` keeps a table in its place, so it does not escape.
                value_paths = self._visit_assigned(value)
                self._record(value_paths - paths if len(paths) == 1 else value_paths, reads_all=True)
            else:
                self.visit(value)
        for target in node.targets:
            if isinstance(target, IndexExpression):
                self._visit_tested(target.base)
                self.visit(target.key)
