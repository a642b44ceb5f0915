"""Tests AGY408: unreachable code and endless loops."""

from __future__ import annotations

import pytest

from argosy.gitops.health.lint import lint_script
from support.counted_calls import calls_of

ANSWER = "\nif obj.ok then return {status = 'Healthy'} end return {status = 'Degraded'}"


def list_finding_lines(script: str) -> list[int]:
    return [finding.line for finding in lint_script(script + ANSWER) if finding.rule == "AGY408"]


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("if false then\n x = 1\nend", 1),
        ("if nil then\n x = 1\nend", 1),
        ("if true then\n x = 1\nelse\n x = 2\nend", 4),
        ("if obj.a == 'A' then\n x = 1\nelseif obj.a == 'A' then\n x = 2\nend", 3),
        ("if obj.a == nil then\n x = 1\nelseif obj.a ~= nil then\n x = 2\nelse\n x = 3\nend", 6),
        ("if obj.a == nil then\n x = 1\nelseif obj.a ~= nil then\n x = 2\nelseif obj.b then\n x = 3\nend", 5),
        ("if obj.a == 'A' then\n if obj.a == 'B' then\n  x = 1\n end\nend", 2),
        ("if obj.a ~= 'A' then\n if obj.a == 'A' then\n  x = 1\n end\nend", 2),
        ("local a = obj.a\nif a == 'A' then\n if obj.a == 'B' then\n  x = 1\n end\nend", 3),
        ("do return {status = obj.s} end\nx = 1", 2),
        ("if obj.a then return {status = obj.s} else return {status = obj.s} end\nx = 1", 2),
        ("if obj.a == nil then return {status = obj.s} end\nif not obj.a and obj.a == nil then\n x = 1\nend", 2),
        ("local debug = false\nif debug then\n x = 1\nend", 2),
        ("while false do\n x = 1\nend", 1),
        (
            "local function f(x)\n if x == 1 then\n  y = 1\n elseif x == 1 then\n  y = 2\n end\nend\nf(obj.a)",
            4,
        ),
        ("if obj.n < 3 then\n if obj.n >= 3 then\n  x = 1\n end\nend", 2),
        ("hs = {}\nhs.status = 'Healthy'\nif hs.status == 'Degraded' then\n x = 1\nend", 3),
        ("error('x')\nx = 1", 2),
    ],
)
def test_unreachable_code_is_found(script: str, line: int) -> None:
    assert list_finding_lines(script)[0] == line


@pytest.mark.parametrize(
    "script",
    [
        "if obj.a == 'A' then x = 1 elseif obj.a == 'B' then x = 2 else x = 3 end",
        "if obj.metadata == nil then x = 1 end",
        "x = obj.metadata.name if obj.metadata == nil then x = 1 end",
        "local found = false for i, c in ipairs(obj.a or {}) do if found then x = 1 end found = true end",
        "local found for i, c in ipairs(obj.a or {}) do if c.x then found = c end end if found then x = 1 end",
        "local n = 0 for i, c in ipairs(obj.a or {}) do n = n + 1 end if n == 2 then x = 1 elseif n > 5 then x = 2 end",
        "local n = 0 while obj.a do n = n + 1 if n == 3 then break end end if n == 3 then x = 1 end",
        "local t = {} table.insert(t, obj.a) if #t > 0 then x = 1 end for i, v in ipairs(t) do x = 2 end",
        "local t = {} fill(t) if t.a then x = 1 end",
        "local t = {} local u = t u.a = 1 if t.a then x = 1 end",
        "local t = {} local k = obj.k t[k] = 1 if t.a then x = 1 end",
        "local done = false local function f() done = true end f() if done then x = 1 end",
        "local done = false call(function() done = true end) if done then x = 1 end",
        "if obj.a == 'A' then obj.a = 'B' if obj.a == 'B' then x = 1 end end",
        "for i, c in ipairs(obj.a or {}) do if c.x == 1 then x = 1 end if c.x == 2 then x = 2 end end",
        "for i, c in ipairs(obj.a or {}) do if c.x then goto on end if c.y then x = 1 end ::on:: end",
        "::again:: if obj.a then x = 1 goto again end",
        "local s repeat s = next(obj, s) until s == nil or s == 'a' if s == 'a' then x = 1 end",
        "if facts ~= nil then x = 1 end if actionParams.a then x = 2 end",
        "local words = {a = true} if words[obj.a] then x = 1 end",
        "local t = {'a', 'b'} for i, v in ipairs(t) do x = v end",
        "if obj.a == obj.b then x = 1 elseif obj.a == obj.c then x = 2 end",
        "local ok = pcall(f) if not ok then x = 1 end",
    ],
)
def test_reachable_code_is_not_reported(script: str) -> None:
    assert list_finding_lines(script) == []


@pytest.mark.parametrize(
    "script",
    [
        "while true do\n x = 1\nend\ny = 1",
        "while 1 do end",
        "repeat x = obj.a until false",
        "while true do for i = 1, 2 do break end end",
        "while true do x = function() return 1 end end",
        "while true do x = tostring(obj.a) end",
        "local function f() while true do x = 1 end end f()",
    ],
)
def test_loop_without_exit_is_reported_as_endless(script: str) -> None:
    (finding,) = [one for one in lint_script(script + ANSWER) if "never ends" in one.message]
    assert (finding.rule, finding.line, finding.severity) == ("AGY408", 1, "error")


@pytest.mark.parametrize(
    "script",
    [
        "while true do if obj.a then break end end",
        "while true do do return {status = obj.a} end end",
        "while true do error('x') end",
        "local function f() assert(obj.a) end while true do f() end",
        "for i = 1, 2 do while true do goto on end ::on:: end",
        "while obj.a do x = 1 end",
        "repeat x = 1 until true",
        "while false do end",
        "repeat x = 1 until x == 1",
    ],
)
def test_loop_with_possible_exit_is_not_reported(script: str) -> None:
    assert not [one for one in lint_script(script + ANSWER) if "never ends" in one.message]


def test_code_after_an_endless_loop_is_also_reported() -> None:
    assert list_finding_lines("while true do\n x = 1\nend\ny = 1") == [1, 4]


def test_defensive_last_return_is_not_reported() -> None:
    assert (
        lint_script(
            "if obj.a then return {status = 'Healthy'} else return {status = 'Degraded'} end return {status = 'x'}"
        )
        == []
    )


def nested_ifs(depth: int) -> str:
    return "if obj.a then\n" * depth + "x = 1\n" + "end\n" * depth


def nested_loops(depth: int) -> str:
    return "for i, c in ipairs(obj.a or {}) do\n" * depth + "x = c\n" + "end\n" * depth


def doubling_calls(count: int) -> str:
    functions = (f"local function f{n}(x) return f{n - 1}(x) or f{n - 1}(x) end\n" for n in range(1, count))
    return f"{''.join(functions)}y = f{count - 1}(1)"


def callbacks(count: int) -> str:
    return "".join(f"call(function() x{n} = 1 end)\n" for n in range(count))


WINDING = [nested_ifs(90), doubling_calls(50), callbacks(300)]
LONG = [
    "".join(f"if obj.a{n} then x{n} = obj.b{n} end\n" for n in range(2000)),
    nested_loops(40),
    doubling_calls(150),
    "x = " + " or ".join(f"(obj.a{n} and obj.b{n})" for n in range(1000)),
    "".join(f"x{n} = {{}} x{n}.a = {n}\n" for n in range(5000)),
    "x = " + " .. ".join(f"(obj.a{n} or 'x')" for n in range(500)),
    callbacks(3000),
]


@pytest.mark.parametrize(
    "script", [*WINDING, *(pytest.param(script, marks=pytest.mark.tier("all")) for script in LONG)]
)
def test_complex_script_is_linted_in_bounded_time(script: str) -> None:
    assert calls_of(lint_script, script + ANSWER) < 30_000_000  # four times the cost of the slowest script
