"""AGY401 and AGY403: globals that are read but never set.

In: the tree of a script. Out: the globals that are certainly nil, and findings with the probable name. Never: reports a
name that the script tests, or any name if the script may set globals dynamically.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from difflib import get_close_matches

from argosy.gitops.application.step_results import Health
from argosy.gitops.health.lint.finding import Finding, Severity
from argosy.gitops.health.lua.syntax.lexer import BYTE_ORDER_MARK, KEYWORDS
from argosy.gitops.health.lua.syntax.scopes import Scopes, Variable, walk
from argosy.gitops.health.lua.syntax.tree import (
    Binary,
    Block,
    Call,
    Clause,
    Concat,
    Constant,
    ForIn,
    Function,
    Index,
    Logical,
    Method,
    Name,
    Node,
    Repeat,
    Return,
    Unary,
    While,
)

# argo: the names of base, table and package, and the arguments of a script; AGY407 checks the libraries.
_GIVEN = frozenset(
    {
        *("assert", "collectgarbage", "dofile", "error", "getfenv", "getmetatable", "ipairs", "load", "loadfile"),
        *("loadstring", "module", "newproxy", "next", "pairs", "pcall", "print", "rawequal", "rawget", "rawset"),
        *("require", "select", "setfenv", "setmetatable", "tonumber", "tostring", "type", "unpack", "xpcall"),
        *("_G", "_VERSION", "_printregs", "table", "package", "obj", "actionParams", "facts"),
    }
)
_LIBRARIES = frozenset(
    {"string", "math", "io", "debug", "coroutine", "channel", "os", "bit", "bit32", "utf8", "jit", "ffi"}
)
_MAY_SET_ANY = frozenset({"_G", "getfenv", "setfenv", "load", "loadstring", "loadfile", "dofile", "module"})
_OLD_VARARGS = "arg"  # argo: its engine defines this in a function with `...`
_OF_OBJECT = frozenset({"status", "metadata", "spec", "kind", "apiVersion"})
_MEANT = {"null": "nil", "none": "nil", "undefined": "nil", "resource": "obj", "this": "obj", "self": "obj"}
_WORDS = frozenset(map(str, Health))
_CATCHES = ("pcall", "xpcall")
_NIL_TESTS = (*_CATCHES, "type")


def tested_names(script: Block) -> Iterator[str]:
    """Yield the names that the script tests for nil, so its author knows that they may be missing."""
    for node in walk(script):
        match node:
            case (
                Clause(condition=Name(name=name))
                | While(condition=Name(name=name))
                | Repeat(condition=Name(name=name))
                | Unary(operator="not", operand=Name(name=name))
                | Binary(operator="==" | "~=", left=Name(name=name), right=Constant(value=None, is_number=False))
                | Binary(operator="==" | "~=", left=Constant(value=None, is_number=False), right=Name(name=name))
            ):
                yield name
            case Logical():
                yield from (operand.name for operand in node.operands if isinstance(operand, Name))
            case Call(function=Name(name=name)) if name in _NIL_TESTS:
                yield from (argument.name for argument in node.arguments if isinstance(argument, Name))


def missing_names(script: Block, scopes: Scopes) -> set[Variable]:
    """Return the globals that are nil wherever they are read."""
    if not _MAY_SET_ANY.isdisjoint(scopes.globals):
        return set()
    known = _GIVEN | _LIBRARIES | {_OLD_VARARGS} | set(tested_names(script))
    return {variable for name, variable in scopes.globals.items() if not variable.values and name not in known}


def check_names(script: Block, scopes: Scopes, missing: Set[Variable]) -> Iterator[Finding]:
    """Report each name once: where it first makes the script fail, else where it is first read."""
    caught = _caught(script)
    severe = {} if not missing else dict(_fatal_uses(script))
    own = {variable.name for variable in scopes.variables.values() if not variable.is_global or variable.values}
    for variable in missing:
        names = [name for name in variable.names if name not in caught]
        if not names:
            continue
        use = next((name for name in names if name in severe), names[0])
        how = severe.get(use, "read")
        severity: Severity = "warning" if how == "read" and variable.name not in _WORDS else "error"
        rule = "AGY403" if how == "indexed" else "AGY401"
        yield Finding(rule, use.line, f"{variable.name} is not defined", _advice(variable.name, how, own), severity)


def inside_functions(script: Block) -> set[Node]:
    inside: set[Node] = set()
    for node in walk(script):
        if isinstance(node, Function) and node not in inside:
            inside.update(walk(node))
    return inside


def _caught(script: Block) -> set[Node]:
    """Return the nodes in functions that are called through pcall or xpcall."""
    return {
        inner
        for node in walk(script)
        if isinstance(node, Call) and isinstance(node.function, Name) and node.function.name in _CATCHES
        for argument in node.arguments
        if isinstance(argument, Function)
        for inner in walk(argument)
    }


def _fatal_uses(script: Block) -> Iterator[tuple[Node, str]]:
    """Yield the nodes that must not be nil, or the script fails or returns nil, with the kind of use."""
    inside = inside_functions(script)
    for node in walk(script):
        match node:
            case Index():
                yield node.base, "indexed"
            case Method():
                yield node.base, "indexed"
            case Call():
                yield node.function, "called"
                if isinstance(node.function, Name) and node.function.name in ("ipairs", "pairs") and node.arguments:
                    yield node.arguments[0], "used"
            case Concat():
                yield from ((part, "used") for part in node.parts)
            case Binary() if node.operator not in ("==", "~="):
                yield from ((node.left, "used"), (node.right, "used"))
            case Unary(operator="#" | "-"):
                yield node.operand, "used"
            case ForIn(values=(only,)):
                yield only, "called"
            case Return() if node.values and node not in inside:
                yield node.values[-1], "answered"


def _advice(name: str, how: str, own: set[str]) -> str:
    if name in _WORDS:
        return f'write it in quotes: "{name}"'
    meant = _MEANT.get(name.lower()) or _same_letters(name)
    if meant is None and name in _OF_OBJECT:
        meant = f"obj.{name}"
    if meant is None:
        words = own | _GIVEN | (KEYWORDS if how == "called" else set())
        meant = next(iter(get_close_matches(name, sorted(words), 1, 0.6)), None)
    return f"did you mean {meant}?" if meant else "set it before it is used, or correct its name"


def _same_letters(name: str) -> str | None:
    return next((word for word in ("nil", "true", "false", "obj") if word == name.lower()), None)


def near_keyword(line: str) -> str:
    """Return advice about a misspelled keyword in a line that does not parse; empty if there is none."""
    for word in line.replace("(", " ").replace("{", " ").split():
        if word.isalpha() and word not in KEYWORDS and len(word) > 3:
            near = get_close_matches(word, sorted(KEYWORDS), 1, 0.75)
            if near and near[0] not in word:
                return f"did you mean {near[0]} where it says {word}?"
    return ""


def check_beginning(script: str) -> Iterator[Finding]:
    """Report a start of the script that LuaJIT skips and Argo CD's engine rejects."""
    # argo: its lexer reports the first character as an invalid token
    if script.startswith(BYTE_ORDER_MARK):
        what, advice = "begins with a byte order mark", "save it as UTF-8 without one"
    elif script.startswith("#"):
        what, advice = "begins with a line of #", "remove this line; comments begin with --"
    else:
        return
    yield Finding("AGY401", 1, f"{what}, which Argo CD does not read", advice, "warning")
