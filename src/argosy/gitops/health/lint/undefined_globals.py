"""AGY401 and AGY403: globals that are read but never set.

In: the tree of a script. Out: the globals that are certainly nil, and findings with the probable name. Never: reports a
name that the script tests, or any name if the script may set globals dynamically.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from difflib import get_close_matches

from argosy.gitops.application.step_results import HealthStatus
from argosy.gitops.health.lint.finding import LintFinding, Severity
from argosy.gitops.health.lua.syntax.lexer import BYTE_ORDER_MARK, KEYWORDS
from argosy.gitops.health.lua.syntax.scopes import LuaScopes, LuaVariable, walk_tree
from argosy.gitops.health.lua.syntax.tree import (
    BinaryExpression,
    ConcatExpression,
    FunctionCall,
    FunctionExpression,
    GenericFor,
    IfClause,
    IndexExpression,
    LogicalExpression,
    LuaBlock,
    LuaConstant,
    LuaNode,
    MethodCall,
    NameReference,
    RepeatLoop,
    ReturnStatement,
    UnaryExpression,
    WhileLoop,
)

# argo: the names of base, table and package, and the arguments of a script; AGY407 checks the libraries.
_PREDEFINED_NAMES = frozenset(
    {
        *("assert", "collectgarbage", "dofile", "error", "getfenv", "getmetatable", "ipairs", "load", "loadfile"),
        *("loadstring", "module", "newproxy", "next", "pairs", "pcall", "print", "rawequal", "rawget", "rawset"),
        *("require", "select", "setfenv", "setmetatable", "tonumber", "tostring", "type", "unpack", "xpcall"),
        *("_G", "_VERSION", "_printregs", "table", "package", "obj", "actionParams", "facts"),
    }
)
_LIBRARY_NAMES = frozenset(
    {"string", "math", "io", "debug", "coroutine", "channel", "os", "bit", "bit32", "utf8", "jit", "ffi"}
)
_GLOBAL_SETTERS = frozenset({"_G", "getfenv", "setfenv", "load", "loadstring", "loadfile", "dofile", "module"})
_VARARGS_NAME = "arg"  # argo: its engine defines this in a function with `...`
_OBJECT_FIELDS = frozenset({"status", "metadata", "spec", "kind", "apiVersion"})
_COMMON_MISTAKES = {"null": "nil", "none": "nil", "undefined": "nil", "resource": "obj", "this": "obj", "self": "obj"}
_HEALTH_STATUSES = frozenset(map(str, HealthStatus))
_PROTECTED_CALLS = ("pcall", "xpcall")
_NIL_TESTS = (*_PROTECTED_CALLS, "type")


def find_tested_names(script: LuaBlock) -> Iterator[str]:
    """Yield the names that the script tests for nil, so its author knows that they may be missing."""
    for node in walk_tree(script):
        match node:
            case (
                IfClause(condition=NameReference(name=name))
                | WhileLoop(condition=NameReference(name=name))
                | RepeatLoop(condition=NameReference(name=name))
                | UnaryExpression(operator="not", operand=NameReference(name=name))
                | BinaryExpression(
                    operator="==" | "~=", left=NameReference(name=name), right=LuaConstant(value=None, is_number=False)
                )
                | BinaryExpression(
                    operator="==" | "~=", left=LuaConstant(value=None, is_number=False), right=NameReference(name=name)
                )
            ):
                yield name
            case LogicalExpression():
                yield from (operand.name for operand in node.operands if isinstance(operand, NameReference))
            case FunctionCall(function=NameReference(name=name)) if name in _NIL_TESTS:
                yield from (argument.name for argument in node.arguments if isinstance(argument, NameReference))


def find_missing_names(script: LuaBlock, scopes: LuaScopes) -> set[LuaVariable]:
    """Return the globals that are nil wherever they are read."""
    if not _GLOBAL_SETTERS.isdisjoint(scopes.globals):
        return set()
    known_names = _PREDEFINED_NAMES | _LIBRARY_NAMES | {_VARARGS_NAME} | set(find_tested_names(script))
    return {variable for name, variable in scopes.globals.items() if not variable.values and name not in known_names}


def check_names(script: LuaBlock, scopes: LuaScopes, missing: Set[LuaVariable]) -> Iterator[LintFinding]:
    """Report each name once: where it first makes the script fail, else where it is first read."""
    protected = _find_protected_nodes(script)
    fatal_uses = {} if not missing else dict(_find_fatal_uses(script))
    script_names = {
        variable.name for variable in scopes.variables.values() if not variable.is_global or variable.values
    }
    for variable in missing:
        names = [name for name in variable.names if name not in protected]
        if not names:
            continue
        use = next((name for name in names if name in fatal_uses), names[0])
        use_kind = fatal_uses.get(use, "read")
        severity: Severity = "warning" if use_kind == "read" and variable.name not in _HEALTH_STATUSES else "error"
        rule = "AGY403" if use_kind == "indexed" else "AGY401"
        yield LintFinding(
            rule,
            use.line,
            f"{variable.name} is not defined",
            _suggest_name(variable.name, use_kind, script_names),
            severity,
        )


def nodes_in_functions(script: LuaBlock) -> set[LuaNode]:
    nodes: set[LuaNode] = set()
    for node in walk_tree(script):
        if isinstance(node, FunctionExpression) and node not in nodes:
            nodes.update(walk_tree(node))
    return nodes


def _find_protected_nodes(script: LuaBlock) -> set[LuaNode]:
    """Return the nodes in functions that are called through pcall or xpcall."""
    return {
        inner_node
        for node in walk_tree(script)
        if isinstance(node, FunctionCall)
        and isinstance(node.function, NameReference)
        and node.function.name in _PROTECTED_CALLS
        for argument in node.arguments
        if isinstance(argument, FunctionExpression)
        for inner_node in walk_tree(argument)
    }


def _find_fatal_uses(script: LuaBlock) -> Iterator[tuple[LuaNode, str]]:
    """Yield the nodes that must not be nil, or the script fails or returns nil, with the kind of use."""
    function_nodes = nodes_in_functions(script)
    for node in walk_tree(script):
        match node:
            case IndexExpression():
                yield node.base, "indexed"
            case MethodCall():
                yield node.base, "indexed"
            case FunctionCall():
                yield node.function, "called"
                if (
                    isinstance(node.function, NameReference)
                    and node.function.name in ("ipairs", "pairs")
                    and node.arguments
                ):
                    yield node.arguments[0], "used"
            case ConcatExpression():
                yield from ((part, "used") for part in node.parts)
            case BinaryExpression() if node.operator not in ("==", "~="):
                yield from ((node.left, "used"), (node.right, "used"))
            case UnaryExpression(operator="#" | "-"):
                yield node.operand, "used"
            case GenericFor(values=(iterator,)):
                yield iterator, "called"
            case ReturnStatement() if node.values and node not in function_nodes:
                yield node.values[-1], "answered"


def _suggest_name(name: str, use_kind: str, script_names: set[str]) -> str:
    if name in _HEALTH_STATUSES:
        return f'write it in quotes: "{name}"'
    suggestion = _COMMON_MISTAKES.get(name.lower()) or _match_keyword_ignoring_case(name)
    if suggestion is None and name in _OBJECT_FIELDS:
        suggestion = f"obj.{name}"
    if suggestion is None:
        candidates = script_names | _PREDEFINED_NAMES | (KEYWORDS if use_kind == "called" else set())
        suggestion = next(iter(get_close_matches(name, sorted(candidates), 1, 0.6)), None)
    return f"did you mean {suggestion}?" if suggestion else "set it before it is used, or correct its name"


def _match_keyword_ignoring_case(name: str) -> str | None:
    return next((word for word in ("nil", "true", "false", "obj") if word == name.lower()), None)


def suggest_keyword(line: str) -> str:
    """Return advice about a misspelled keyword in a line that does not parse; empty if there is none."""
    for word in line.replace("(", " ").replace("{", " ").split():
        if word.isalpha() and word not in KEYWORDS and len(word) > 3:
            similar = get_close_matches(word, sorted(KEYWORDS), 1, 0.75)
            if similar and similar[0] not in word:
                return f"did you mean {similar[0]} where it says {word}?"
    return ""


def check_script_start(script: str) -> Iterator[LintFinding]:
    """Report a start of the script that LuaJIT skips and Argo CD's engine rejects."""
    # argo: its lexer reports the first character as an invalid token
    if script.startswith(BYTE_ORDER_MARK):
        problem, advice = "begins with a byte order mark", "save it as UTF-8 without one"
    elif script.startswith("#"):
        problem, advice = "begins with a line of #", "remove this line; comments begin with --"
    else:
        return
    yield LintFinding("AGY401", 1, f"{problem}, which Argo CD does not read", advice, "warning")
