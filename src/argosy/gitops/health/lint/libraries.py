"""AGY407: libraries and functions that do not exist where a script runs.

In: the tree of a script. Out: findings. Never: checks more than the names that Argo CD's engine defines.
"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.gitops.health.lint.finding import Finding
from argosy.gitops.health.lint.names import tested_names
from argosy.gitops.health.lua.syntax.scopes import Scopes, Variable, walk
from argosy.gitops.health.lua.syntax.tree import (
    Block,
    Call,
    Concat,
    Expression,
    ForIn,
    Index,
    Local,
    Logical,
    Method,
    Name,
    Node,
    String,
)

_RULE = "AGY407"

# argo: a user's check has only base, table and package; with open libraries also these.
_OPEN = frozenset({"string", "math", "io", "debug", "coroutine", "channel", "os"})
_NOWHERE = frozenset({"bit", "bit32", "utf8", "jit", "ffi"})
_SAFE_OS = frozenset({"time", "date"})
_REFUSED_OS = frozenset({"execute", "exit", "getenv", "remove", "rename", "setenv", "setlocale", "tmpname"})
_NO_TABLE_FUNCTION = {"unpack": "unpack(…)", "pack": "{…}"}

_WHERE = "it needs useOpenLibs for the kind of the check"


def check_libraries(script: Block, scopes: Scopes, *, open_libs: bool) -> Iterator[Finding]:
    checker = _Libraries(script, scopes, open_libs)
    for node in walk(script):
        match node:
            case Index(base=Name() as base, key=String(value=key)):
                yield from checker.member(node.line, base, key)
            case Index(base=Name() as base):
                yield from checker.library(node.line, base)
            case Call():
                yield from checker.require(node)
            case Method():
                yield from checker.method(node)


class _Libraries:
    def __init__(self, script: Block, scopes: Scopes, open_libs: bool) -> None:
        self._scopes = scopes
        self._open_libs = open_libs
        self._tested = set(tested_names(script))
        self._of_object = _holding_object(script, scopes)

    def _library_of(self, base: Name) -> str:
        """Return the name of the global library, unless the script assigns or tests a global of that name."""
        variable = self._scopes.variables[base]
        if not variable.is_global or variable.values or base.name in self._tested:
            return ""
        return base.name

    def library(self, line: int, base: Name) -> Iterator[Finding]:
        name = self._library_of(base)
        if name in _NOWHERE:
            yield Finding(
                _RULE, line, f"there is no library {name}", "Argo CD's Lua is 5.1 without LuaJIT's own libraries"
            )
        elif name == "os" and not self._open_libs:
            yield Finding(_RULE, line, "there is no global os", 'begin the script with: local os = require("os")')
        elif name in _OPEN and not self._open_libs:
            yield Finding(_RULE, line, f"there is no library {name} here", _WHERE)
        elif name in ("io", "debug") and self._open_libs:
            yield Finding(_RULE, line, f"{name} is not permitted here", "a check can only read obj", "warning")

    def member(self, line: int, base: Name, key: str) -> Iterator[Finding]:
        yield from self.library(line, base)
        name = self._library_of(base)
        if name == "os" and self._open_libs and key in _REFUSED_OS:
            yield Finding(_RULE, line, f"os.{key} is not permitted here", "a check can only read obj", "warning")
        elif name == "table" and key in _NO_TABLE_FUNCTION:
            yield Finding(_RULE, line, f"Lua 5.1 has no table.{key}", f"write {_NO_TABLE_FUNCTION[key]}")
        elif self._is_safe_os(self._scopes.variables[base]) and key not in _SAFE_OS:
            yield Finding(_RULE, line, f'require("os") has no {key}', "it has only time and date")

    def _is_safe_os(self, variable: Variable) -> bool:
        return len(variable.values) == 1 and _required(variable.values[0]) == "os"

    def require(self, node: Call) -> Iterator[Finding]:
        module = _required(node) if self._scopes.is_global(node.function, "require") else None
        known = _OPEN | {"table", "package", "os"} if self._open_libs else {"table", "package", "os"}
        if module is not None and module not in known:
            yield Finding(
                _RULE, node.line, f'there is no module "{module}" here', 'only require("os") works everywhere'
            )

    def method(self, node: Method) -> Iterator[Finding]:
        if self._open_libs or not self._is_text(node.base):
            return
        yield Finding(
            _RULE,
            node.line,
            f"a string has no method {node.name} here: there is no library string",
            f"{_WHERE}; compare whole strings instead",
        )

    def _is_text(self, base: Expression) -> bool:
        """True if the value is certainly a string: a literal, or a part of `obj`, which contains no functions."""
        match base:
            case String() | Concat():
                return True
            case Call():
                return self._scopes.is_global(base.function, "tostring")
            case Logical():
                return all(self._is_text(operand) for operand in base.operands)
            case Name() | Index():
                root = _root(base)
                return isinstance(root, Name) and self._scopes.variables[root] in self._of_object
        return False


def _required(node: Expression | None) -> str | None:
    match node:
        case Call(function=Name(name="require"), arguments=(String(value=module),)):
            return module
    return None


def _root(node: Node) -> Node:
    while isinstance(node, Index):
        node = node.base
    return node


def _holding_object(script: Block, scopes: Scopes) -> set[Variable]:
    """Return `obj` and the locals that only hold a part of it: assigned once from it, or looping over it."""
    subject = scopes.globals.get("obj")
    if subject is None or subject.values:
        return set()
    found = {subject}
    for node in walk(script):
        if isinstance(node, Local):
            pairs = zip(node.names, node.values)
            found.update(scopes.variables[name] for name, value in pairs if _is_part(value, scopes, found))
        elif isinstance(node, ForIn) and len(node.names) > 1 and _is_part_loop(node, scopes, found):
            found.add(scopes.variables[node.names[1]])
    return {variable for variable in found if variable is subject or len(variable.values) == 1}


def _is_part(value: Expression, scopes: Scopes, found: set[Variable]) -> bool:
    root = _root(value)
    return isinstance(root, Name) and scopes.variables[root] in found


def _is_part_loop(node: ForIn, scopes: Scopes, found: set[Variable]) -> bool:
    match node.values[0]:
        case Call(function=Name(name="ipairs" | "pairs"), arguments=(argument,)):
            first = argument.operands[0] if isinstance(argument, Logical) and argument.operator == "or" else argument
            return _is_part(first, scopes, found)
    return False
