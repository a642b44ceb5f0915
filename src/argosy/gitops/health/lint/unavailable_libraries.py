"""AGY407: libraries and functions that do not exist where a script runs.

In: the tree of a script. Out: findings. Never: checks more than the names that Argo CD's engine defines.
"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.gitops.health.lint.finding import LintFinding
from argosy.gitops.health.lint.undefined_globals import find_tested_names
from argosy.gitops.health.lua.syntax.scopes import LuaScopes, LuaVariable, walk_tree
from argosy.gitops.health.lua.syntax.tree import (
    ConcatExpression,
    FunctionCall,
    GenericFor,
    IndexExpression,
    LocalStatement,
    LogicalExpression,
    LuaBlock,
    LuaExpression,
    LuaNode,
    MethodCall,
    NameReference,
    StringLiteral,
)

_RULE = "AGY407"

# argo: a user's check has only base, table and package; with open libraries also these.
_OPEN_LIBRARIES = frozenset({"string", "math", "io", "debug", "coroutine", "channel", "os"})
_UNAVAILABLE_LIBRARIES = frozenset({"bit", "bit32", "utf8", "jit", "ffi"})
_ALLOWED_OS_FUNCTIONS = frozenset({"time", "date"})
_REFUSED_OS_FUNCTIONS = frozenset({"execute", "exit", "getenv", "remove", "rename", "setenv", "setlocale", "tmpname"})
_MISSING_TABLE_FUNCTIONS = {"unpack": "unpack(…)", "pack": "{…}"}

_OPEN_LIBS_ADVICE = "it needs useOpenLibs for the kind of the check"


def check_libraries(script: LuaBlock, scopes: LuaScopes, *, open_libs: bool) -> Iterator[LintFinding]:
    checker = _LibraryChecker(script, scopes, open_libs)
    for node in walk_tree(script):
        match node:
            case IndexExpression(base=NameReference() as base, key=StringLiteral(value=key)):
                yield from checker.check_member(node.line, base, key)
            case IndexExpression(base=NameReference() as base):
                yield from checker.check_library(node.line, base)
            case FunctionCall():
                yield from checker.check_require(node)
            case MethodCall():
                yield from checker.check_string_method(node)


class _LibraryChecker:
    def __init__(self, script: LuaBlock, scopes: LuaScopes, open_libs: bool) -> None:
        self._scopes = scopes
        self._open_libs = open_libs
        self._tested_names = set(find_tested_names(script))
        self._object_variables = _find_object_variables(script, scopes)

    def _find_library(self, base: NameReference) -> str:
        """Return the name of the global library, unless the script assigns or tests a global of that name."""
        variable = self._scopes.variables[base]
        if not variable.is_global or variable.values or base.name in self._tested_names:
            return ""
        return base.name

    def check_library(self, line: int, base: NameReference) -> Iterator[LintFinding]:
        name = self._find_library(base)
        if name in _UNAVAILABLE_LIBRARIES:
            yield LintFinding(
                _RULE, line, f"there is no library {name}", "Argo CD's Lua is 5.1 without LuaJIT's own libraries"
            )
        elif name == "os" and not self._open_libs:
            yield LintFinding(_RULE, line, "there is no global os", 'begin the script with: local os = require("os")')
        elif name in _OPEN_LIBRARIES and not self._open_libs:
            yield LintFinding(_RULE, line, f"there is no library {name} here", _OPEN_LIBS_ADVICE)
        elif name in ("io", "debug") and self._open_libs:
            yield LintFinding(_RULE, line, f"{name} is not permitted here", "a check can only read obj", "warning")

    def check_member(self, line: int, base: NameReference, key: str) -> Iterator[LintFinding]:
        yield from self.check_library(line, base)
        name = self._find_library(base)
        if name == "os" and self._open_libs and key in _REFUSED_OS_FUNCTIONS:
            yield LintFinding(_RULE, line, f"os.{key} is not permitted here", "a check can only read obj", "warning")
        elif name == "table" and key in _MISSING_TABLE_FUNCTIONS:
            yield LintFinding(_RULE, line, f"Lua 5.1 has no table.{key}", f"write {_MISSING_TABLE_FUNCTIONS[key]}")
        elif self._is_required_os(self._scopes.variables[base]) and key not in _ALLOWED_OS_FUNCTIONS:
            yield LintFinding(_RULE, line, f'require("os") has no {key}', "it has only time and date")

    def _is_required_os(self, variable: LuaVariable) -> bool:
        return len(variable.values) == 1 and _find_required_module(variable.values[0]) == "os"

    def check_require(self, node: FunctionCall) -> Iterator[LintFinding]:
        module = _find_required_module(node) if self._scopes.is_global(node.function, "require") else None
        available = _OPEN_LIBRARIES | {"table", "package", "os"} if self._open_libs else {"table", "package", "os"}
        if module is not None and module not in available:
            yield LintFinding(
                _RULE, node.line, f'there is no module "{module}" here', 'only require("os") works everywhere'
            )

    def check_string_method(self, node: MethodCall) -> Iterator[LintFinding]:
        if self._open_libs or not self._is_string(node.base):
            return
        yield LintFinding(
            _RULE,
            node.line,
            f"a string has no method {node.name} here: there is no library string",
            f"{_OPEN_LIBS_ADVICE}; compare whole strings instead",
        )

    def _is_string(self, base: LuaExpression) -> bool:
        """True if the value is certainly a string: a literal, or a part of `obj`, which contains no functions."""
        match base:
            case StringLiteral() | ConcatExpression():
                return True
            case FunctionCall():
                return self._scopes.is_global(base.function, "tostring")
            case LogicalExpression():
                return all(self._is_string(operand) for operand in base.operands)
            case NameReference() | IndexExpression():
                root = _root_node(base)
                return isinstance(root, NameReference) and self._scopes.variables[root] in self._object_variables
        return False


def _find_required_module(node: LuaExpression | None) -> str | None:
    match node:
        case FunctionCall(function=NameReference(name="require"), arguments=(StringLiteral(value=module),)):
            return module
    return None


def _root_node(node: LuaNode) -> LuaNode:
    while isinstance(node, IndexExpression):
        node = node.base
    return node


def _find_object_variables(script: LuaBlock, scopes: LuaScopes) -> set[LuaVariable]:
    """Return `obj` and the locals that only hold a part of it: assigned once from it, or looping over it."""
    subject = scopes.globals.get("obj")
    if subject is None or subject.values:
        return set()
    variables = {subject}
    for node in walk_tree(script):
        if isinstance(node, LocalStatement):
            pairs = zip(node.names, node.values)
            variables.update(
                scopes.variables[name] for name, value in pairs if _is_part_of_object(value, scopes, variables)
            )
        elif isinstance(node, GenericFor) and len(node.names) > 1 and _iterates_object(node, scopes, variables):
            variables.add(scopes.variables[node.names[1]])
    return {variable for variable in variables if variable is subject or len(variable.values) == 1}


def _is_part_of_object(value: LuaExpression, scopes: LuaScopes, variables: set[LuaVariable]) -> bool:
    root = _root_node(value)
    return isinstance(root, NameReference) and scopes.variables[root] in variables


def _iterates_object(node: GenericFor, scopes: LuaScopes, variables: set[LuaVariable]) -> bool:
    match node.values[0]:
        case FunctionCall(function=NameReference(name="ipairs" | "pairs"), arguments=(argument,)):
            iterated = (
                argument.operands[0]
                if isinstance(argument, LogicalExpression) and argument.operator == "or"
                else argument
            )
            return _is_part_of_object(iterated, scopes, variables)
    return False
