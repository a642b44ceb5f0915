"""Tests that lint findings on random scripts hold when LuaJIT runs them, and the findings in the user's documents."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lupa.luajit21 import LuaRuntime

from argosy.gitops.health.lint import lint_script
from support.examples import examples
from support.paths import ROOT

DOCUMENTS = ROOT.parent / "shared" / "seeds"

# -- random scripts ------------------------------------------------------------------------------------------------

CONDITIONS = st.sampled_from(
    [
        "obj.a == nil",
        "obj.a ~= nil",
        "obj.a",
        "not obj.a",
        "obj.a == 'x'",
        "obj.a ~= 'x'",
        "obj.b == 'x' or obj.a == 'y'",
        "obj.a ~= nil and obj.b == 'y'",
        "obj.a == obj.b",
        "obj.b ~= obj.a",
        "type(obj.a) == 'table'",
        "type(obj.b) ~= 'nil'",
        "type(obj.c) == 'table' and obj.c.a == 'x'",
        "x == 'x'",
        "x",
        "not x or y",
        "x == y",
        "y == nil",
        "n < 2",
        "n >= 2",
        "n == 1",
        "hs.status == 'Healthy'",
        "hs.status == nil",
        "hs.status",
        "tonumber(obj.b) ~= nil",
        "f(obj.a)",
        "not f(x)",
        "t.a",
        "next(t) == nil",
        "#t > 0",
        "true",
        "false",
        "u == t",
    ]
)
LINES = st.sampled_from(
    [
        "x = 'x'",
        "x = obj.a",
        "x = nil",
        "x, y = y, x",
        "local x = obj.b",
        "local x, y = 'x'",
        "y = obj.a or 'x'",
        "y = obj.a == 'x' and 'y' or obj.b",
        "y = x == 'x'",
        "n = n + 1",
        "n = tonumber(obj.b) or 0",
        "obj.a = 'x'",
        "obj.a = obj.b",
        "obj.b = nil",
        "obj.c = obj.c or {}",
        "hs.status = 'Healthy'",
        "hs.status = 'Degraded'",
        "hs.status = hs.status or 'Healthy'",
        "hs.status = x",
        "hs = {}",
        "hs = {status = 'Progressing'}",
        "set('Healthy')",
        "set(x)",
        "fill(hs)",
        "t.a = x",
        "t[k] = 'x'",
        "table.insert(t, 'x')",
        "t = {}",
        "t = {'x'}",
        "u = t",
        "u.a = 'x'",
        "hs = t",
        "x, y = two(obj.a)",
        "x = f(y)",
        "change()",
        "pcall(change)",
        "pcall(function() x = 'x' end)",
        "hs = judge(obj)",
        "hs = made(x)",
        "do local hs = {} hs.status = 'Missing' x = hs.status end",
    ]
)
RETURNS = st.sampled_from(
    ["return hs", "return {status = 'Healthy'}", "return {status = x}", "return judge(obj)", "return t"]
)
HEAD = """local hs, x, y, n, t, k = {}, nil, nil, 0, {}, 'a'
local u = t
local function f(v) if v == 'x' then return true end return v == nil end
local function two(v) if v then return 'x', v end return 'y' end
local function set(s) hs.status = s end
local function fill(h) h.status = 'Suspended' end
local function change() x = 'y' obj.a = nil end
local function judge(obj) if obj.a == nil then return {status = 'Progressing'} end return {status = 'Healthy'} end
local function made(s) local hs = {} if s then hs.status = 'Healthy' end return hs end
"""


def block(statements: list[list[str]]) -> list[str]:
    return [line for statement in statements for line in statement]


def nested(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    bodies = st.lists(inner, min_size=1, max_size=3).map(block)
    return st.one_of(
        st.builds(lambda c, one: [f"if {c} then", *one, "end"], CONDITIONS, bodies),
        st.builds(lambda c, one, two: [f"if {c} then", *one, "else", *two, "end"], CONDITIONS, bodies, bodies),
        st.builds(
            lambda c, d, one, two, three: [f"if {c} then", *one, f"elseif {d} then", *two, "else", *three, "end"],
            CONDITIONS,
            CONDITIONS,
            bodies,
            bodies,
            bodies,
        ),
        st.builds(lambda one: ["for i, c in ipairs(obj.l or {}) do", *one, "end"], bodies),
        st.builds(
            lambda one: ["for i, c in ipairs(obj.l or {}) do", "if c.a == 'x' then", "x = c.b", "end", *one, "end"],
            bodies,
        ),
        st.builds(lambda c, one: ["for i = 1, 3 do", *one, f"if {c} then", "break", "end", "end"], CONDITIONS, bodies),
        st.builds(
            lambda c, one: ["for i = 1, 2 do", f"if {c} then", "goto on", "end", "do", *one, "end", "::on::", "end"],
            CONDITIONS,
            bodies,
        ),
        st.builds(lambda c, one: ["for i = 1, 2 do", "repeat", *one, f"until {c} or true", "end"], CONDITIONS, bodies),
        st.builds(
            lambda c, one: [f"while {c} do", *one, "n = n + 1", "if n > 3 then", "break", "end", "end"],
            CONDITIONS,
            bodies,
        ),
        st.builds(lambda c, last: [f"if {c} then", last, "end"], CONDITIONS, RETURNS),
        st.builds(lambda last: ["do", last, "end"], RETURNS),
    )


STATEMENTS = st.recursive(LINES.map(lambda line: [line]), nested, max_leaves=12)
SCRIPTS = st.builds(
    lambda body, last: HEAD + "\n".join([*block(body), last]), st.lists(STATEMENTS, min_size=1, max_size=5), RETURNS
)
WORDS = st.sampled_from(["x", "y", "1", None])
MANIFESTS = st.fixed_dictionaries(
    {},
    optional={
        "a": WORDS,
        "b": WORDS,
        "c": st.dictionaries(st.sampled_from(["a", "b"]), WORDS, max_size=2),
        "l": st.lists(st.dictionaries(st.sampled_from(["a", "b"]), WORDS, max_size=2), max_size=3),
    },
)

RUNTIME = LuaRuntime(unpack_returned_tuples=True)
RUN = RUNTIME.execute("""
  jit.off()
  return function(text, given, note)
    local chunk = assert(loadstring(text, "=<string>"))
    setfenv(chunk, setmetatable({obj = given}, {__index = _G}))
    local count = 0
    debug.sethook(function(_, line)
      if debug.getinfo(2, "S").source ~= "=<string>" then return end
      count = count + 1
      if count > 2000 then error("too long") end
      note(line)
    end, "l")
    local ok, answer = pcall(chunk)
    debug.sethook()
    if not ok then return "fault", tostring(answer) end
    if type(answer) ~= "table" then return type(answer) end
    return "table", answer.status
  end
""")


def ran(script: str, manifest: dict[str, Any]) -> tuple[list[int], str, Any]:
    lines: list[int] = []
    plain = {name: value for name, value in manifest.items() if value is not None}
    kind, *rest = RUN(script, RUNTIME.table_from(plain, recursive=True), lines.append) or ("nil",)
    return lines, kind, rest[0] if rest else None


@given(SCRIPTS, st.lists(MANIFESTS, min_size=8, max_size=8))
@settings(max_examples=examples(150), deadline=None)
def test_no_run_contradicts_the_findings(script: str, manifests: list[dict[str, Any]]) -> None:
    findings = [one for one in lint_script(script) if one.line > HEAD.count("\n")]
    for manifest in manifests:
        lines, kind, status = ran(script, manifest)
        for one in findings:
            details = (one, manifest, script)
            if "this branch is never taken" in one.message or "loop is never entered" in one.message:
                assert one.line + 1 not in lines, details
            elif one.rule == "AGY408":
                assert one.line not in lines, details
            if kind == "fault":
                continue
            if "never be Healthy" in one.message:
                assert status != "Healthy", details
            elif "always Healthy" in one.message:
                assert status == "Healthy", details
            elif one.message == "returns a table without a status" and lines[-1] == one.line:
                assert status is None, details


@given(
    st.lists(
        st.sampled_from([*"xyot.:=(){}[],+-<>#'\"0 \n", "obj", "local ", "if ", " then ", " end ", "return "]),
        max_size=40,
    )
)
@settings(max_examples=examples(300), deadline=None)
def test_any_text_can_be_linted(pieces: list[str]) -> None:
    assert isinstance(lint_script("".join(pieces)), list)


# -- the user's documents ------------------------------------------------------------------------------------------


def lua_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield block scalars that start like health checks, each with the YAML line that opens it."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if re.search(r"\|-?\s*$", line) and number + 1 < len(lines) and re.match(r"\s+hs = \{\}", lines[number + 1]):
            depth = len(lines[number + 1]) - len(lines[number + 1].lstrip())
            taken = []
            for inner in lines[number + 1 :]:
                if inner.strip() and len(inner) - len(inner.lstrip()) < depth:
                    break
                taken.append(inner)
            yield line.strip(), textwrap.dedent("\n".join(taken))


@pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="the user's documents are not here")
def test_checks_in_user_documents_have_only_true_findings() -> None:
    findings_by_script = {
        (file.name[:3], number): {(one.rule, one.line) for one in lint_script(script)}
        for file in sorted(DOCUMENTS.glob("*.txt"))
        for number, (_, script) in enumerate(lua_blocks(file.read_text()))
    }
    constant = {("AGY402", 4)}
    assert {
        where: rule_lines
        for where, rule_lines in findings_by_script.items()
        if "AGY401" not in {rule for rule, _ in rule_lines}
    } == {
        ("000", 1): set(),  # the InferenceService check is sound
        ("000", 2): constant,
        ("000", 3): constant,
        ("000", 4): set(),
        ("001", 0): {("AGY403", 2), ("AGY403", 10)},  # the claim check
        ("001", 1): constant,  # InferenceService ignored
        ("002", 0): set(),
        ("002", 1): {("AGY403", 29)},  # a cell's index may be missing
    }
    # One listing omits its middle with three dots, which is not Lua.
    assert [
        where for where, rule_lines in findings_by_script.items() if "AGY401" in {rule for rule, _ in rule_lines}
    ] == [("000", 0)]
