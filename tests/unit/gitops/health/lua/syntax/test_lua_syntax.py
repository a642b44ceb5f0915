"""Tests that Lua text is parsed into a tree with line numbers or a LuaSyntaxError, compared with LuaJIT."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lupa.luajit21 import LuaRuntime

from argosy.gitops.health.lua.syntax import MAX_SCRIPT_BYTES, LuaSyntaxError, parse
from argosy.gitops.health.lua.syntax.lexer import KEYWORDS
from argosy.gitops.health.lua.syntax.scopes import resolve_scopes, walk_tree
from argosy.gitops.health.lua.syntax.tree import (
    AssignStatement,
    ConcatExpression,
    IfStatement,
    IndexExpression,
    LogicalExpression,
    NameReference,
    ReturnStatement,
    StringLiteral,
)
from support.counted_calls import calls_of
from support.examples import examples

LOAD = LuaRuntime().eval('function(text) local chunk, problem = loadstring(text, "=<string>") return problem end')


def problem_of(text: str) -> str | None:
    try:
        parse(text)
    except LuaSyntaxError as problem:
        return str(problem)
    return None


@pytest.mark.parametrize(
    "text",
    [
        "::a:: ::",
        "::a::; :: b",
        "if x then",
        "if x then\n\n",
        "x =",
        "local x = 1 x",
        "f()\n(g)()",
        "for i = 1 do end",
        "for a, b do end",
        "goto a",
        "break",
        "::a:: ::a::",
        "do goto c local x ::c:: print(x) end",
        "repeat goto c local x ::c:: until x",
        "x = 3x",
        "return 1 x = 2",
        "x = (1",
        "a.b:c = 1",
        "x = {1, 2",
        "function f() return ... end",
        ";",
        "while true do break x = 1 end",
        "(a) = 1",
        "(f())",
        "x = 0x",
        "x = 1..2",
        "function a:b.c() end",
        "x = [==[ab",
        "--[[ab",
        "x = $",
        "end",
        "local function f(",
        "x = {[1] 2}",
    ],
)
def test_syntax_error_has_the_message_of_luajit(text: str) -> None:
    assert problem_of(text) == LOAD(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "return",
        "return;",
        "do return end return 1",
        "for i, c in ipairs(x) do if c then goto continue end y = 1 ::continue:: end",
        "repeat local x goto c ::c:: until x",
        "x = 1LL y = 0x.8p1 z = .5e3 w = 1e5i",
        "x = '\\z  a\\x41\\065\\u{e9}\\\n'",
        "x = [[\nlong]] --[==[ comment ]] ]==] y = 2 -- end",
        'f{1, 2; a = 3, ["b"] = 4}.x:y"text"[1] = -2 ^ -3 ^ 2',
        "function a.b.c:m(x, ...) return self, ... end",
        "::again:: if x then goto again end",
        "x = not a == b and c or d .. e .. f < g + 1 % 2",
        "while true do break; end",
    ],
)
def test_valid_luajit_script_is_parsed(text: str) -> None:
    assert LOAD(text) is None
    assert problem_of(text) is None


def test_syntax_error_has_its_line() -> None:
    with pytest.raises(LuaSyntaxError) as caught:
        parse("local hs = {}\nif obj then\n  hs.status = 'Healthy'\nreturn hs\n")
    assert caught.value.line == 5
    assert str(caught.value) == "<string>:5: 'end' expected (to close 'if' at line 2) near '<eof>'"
    assert caught.value.message == "'end' expected (to close 'if' at line 2) near '<eof>'"


def test_nodes_have_lines_and_operator_chains_are_flat() -> None:
    script = parse('if a and\n  b and c then\n  x = "1" ..\n y .. z\nend\nreturn obj["a"].b')
    check, answer = script.statements
    assert isinstance(check, IfStatement) and isinstance(answer, ReturnStatement)
    condition, assign = check.clauses[0].condition, check.clauses[0].body.statements[0]
    assert isinstance(condition, LogicalExpression) and [operand.line for operand in condition.operands] == [1, 2, 2]
    assert (
        isinstance(assign, AssignStatement)
        and isinstance(assign.values[0], ConcatExpression)
        and len(assign.values[0].parts) == 3
    )
    chain = answer.values[0]
    assert (
        isinstance(chain, IndexExpression)
        and isinstance(chain.key, StringLiteral)
        and (chain.line, chain.key.value) == (6, "b")
    )
    assert script.last_line == 6


def test_string_escapes_are_decoded() -> None:
    script = parse(r"return 'a\n\065\195\169\x41'")
    answer = script.statements[0]
    assert isinstance(answer, ReturnStatement) and isinstance(answer.values[0], StringLiteral)
    assert answer.values[0].value == "a\nAéA"


def test_name_resolves_to_the_innermost_variable() -> None:
    script = parse("x = 1 local x = x do local x = 2 x = 3 end function f(x) return x end return x")
    scopes = resolve_scopes(script)
    names = [node for node in walk_tree(script) if isinstance(node, NameReference) and node.name == "x"]
    assert all(name in scopes.variables for name in names)
    assert len({scopes.variables[name] for name in names}) == 4
    assert len(scopes.globals["x"].names) == 2


HOSTILE = [
    "(" * 5000,
    "{" * 5000,
    "x = " + "not " * 5000 + "y",
    "x = " + "f(" * 5000,
    "x = a" + ".b" * 5000,
    "x = a" + "()" * 5000,
    "x = 1" + "+1" * 20000,
    "x = 1" + "^1" * 5000,
    "if x then " * 5000,
    "function f() " * 5000,
    "return function() " * 5000,
    "do " * 5000 + "end " * 5000,
    "function a" + ".b" * 5000 + "() end",
    '"' + "\\" * 9999,
    "x = '" + "\\1" * 50000,
    "[" + "=" * 99999,
    "--[" + "=" * 99999 + "[",
    "[==[" * 20000,
    "x" * (MAX_SCRIPT_BYTES + 1),
    "goto a " * 30000,
    "::a" + "::b" * 20000,
    "x = {" + "{}," * 50000,
    "\udcff",
    "x = '\udcff\\n'",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12].encode("ascii", "replace").decode())
def test_hostile_text_gives_a_tree_or_a_syntax_error(text: str) -> None:
    with_fault = problem_of(text[:MAX_SCRIPT_BYTES] if len(text) <= MAX_SCRIPT_BYTES else text)
    assert with_fault is None or with_fault.startswith("<string>:")


@pytest.mark.parametrize("join", [" and b", " or b", " .. b"])
def test_long_chain_of_one_operator_is_not_deep(join: str) -> None:
    assert problem_of("x = a" + join * 10000) is None


def test_parse_cost_is_proportional_to_script_size() -> None:
    line = "if obj.status ~= nil and obj.status.phase == 'x' then hs.message = 'a' .. obj.status.phase end\n"
    few, many = (calls_of(parse, line * (MAX_SCRIPT_BYTES // len(line) // part)) for part in (20, 5))
    assert many < 5 * few
    parse(line * (MAX_SCRIPT_BYTES // len(line)))


SIGNS = "+ - * / % ^ # == ~= <= >= < > = ( ) { } [ ] ; : , . .. ... ::x:: ::"
OTHERS = "x y obj f 1 2.5 'a'"
TOKENS = st.sampled_from([*sorted(KEYWORDS), *SIGNS.split(), *OTHERS.split(), "\n", "--c\n"])
PIECES = st.sampled_from(
    [
        "local x = 1",
        "if x then",
        "elseif y then",
        "else",
        "end",
        "for i, c in ipairs(x) do",
        "for i = 1, 2 do",
        "while x do",
        "repeat",
        "until x",
        "goto a",
        "::a::",
        "break",
        "return x",
        "f(x)",
        "x.y[1] = {a = 1}",
        "function f(x)",
        "local y",
        "x = function()",
        "do",
    ]
)


@given(st.one_of(st.text(), st.lists(TOKENS).map(" ".join), st.lists(PIECES, max_size=12).map("\n".join)))
@settings(max_examples=examples(400), deadline=None)
def test_any_text_gives_a_tree_or_a_syntax_error(text: str) -> None:
    problem_of(text)


@given(st.one_of(st.lists(TOKENS, max_size=8).map(" ".join), st.lists(PIECES, max_size=12).map("\n".join)))
@settings(max_examples=examples(600), deadline=None)
def test_script_is_accepted_exactly_if_luajit_accepts_it(text: str) -> None:
    load_error = LOAD(text)
    if "goto" in text.replace("goto a", "").replace("goto x", ""):
        return  # LuaJIT accepts `goto` as a name, Argo CD's engine does not
    assert (problem_of(text) is None) == (load_error is None), load_error
