"""Tests AGY407: libraries that do not exist where a script runs."""

from __future__ import annotations

import pytest

from argosy.gitops.health.lint import lint_script

ANSWER = "\nif obj.ok then return {status = 'Healthy'} end return {status = 'Degraded'}"


def list_findings(script: str, *, open_libs: bool = False) -> list[tuple[int, str, str]]:
    findings = lint_script(script + ANSWER, open_libs=open_libs)
    return [(one.line, one.severity, one.message) for one in findings if one.rule == "AGY407"]


@pytest.mark.parametrize("name", ["string", "math", "io", "debug", "coroutine", "channel"])
def test_library_is_missing_without_open_libraries(name: str) -> None:
    assert list_findings(f"\nx = {name}.find(obj)") == [(2, "error", f"there is no library {name} here")]
    if name not in ("io", "debug"):
        assert list_findings(f"x = {name}.find(obj)", open_libs=True) == []


@pytest.mark.parametrize("name", ["bit", "jit", "ffi", "utf8", "bit32"])
def test_libraries_of_other_lua_engines_never_exist(name: str) -> None:
    assert list_findings(f"x = {name}.f()", open_libs=True) == [(1, "error", f"there is no library {name}")]


def test_os_must_be_required_and_has_only_time_and_date() -> None:
    assert list_findings("x = os.time()") == [(1, "error", "there is no global os")]
    (finding,) = [one for one in lint_script("x = os.time()" + ANSWER) if one.rule == "AGY407"]
    assert 'local os = require("os")' in finding.advice
    assert list_findings('local os = require("os") x = os.time() .. os.date("!%Y")') == []
    assert list_findings('os = require("os") x = os.time()') == []
    assert list_findings('local os = require("os") x = os.getenv("HOME")') == [
        (1, "error", 'require("os") has no getenv')
    ]


def test_forbidden_functions_of_open_libraries_are_a_warning() -> None:
    assert list_findings("x = os.execute('ls')", open_libs=True) == [(1, "warning", "os.execute is not permitted here")]
    assert list_findings("x = io.open('f')", open_libs=True) == [(1, "warning", "io is not permitted here")]
    assert list_findings("x = os.time()", open_libs=True) == []


@pytest.mark.parametrize(
    "script",
    [
        "x = ('a'):upper()",
        "x = obj.metadata.name:find('a')",
        "local name = obj.metadata.name\nx = name:sub(1, 2)",
        "for i, c in ipairs(obj.items or {}) do x = c.type:lower() end",
        "x = tostring(obj.a):len()",
        "x = ('a' .. obj.kind):len()",
    ],
)
def test_strings_have_no_methods_without_the_string_library(script: str) -> None:
    assert [severity for _, severity, _ in list_findings(script)] == ["error"]
    assert list_findings(script, open_libs=True) == []


@pytest.mark.parametrize(
    "script",
    [
        "local string = {find = f} x = string.find(obj)",
        "string = {} x = string.find",
        "if string then x = string.find('a', 'b') end",
        "x = string and string.find('a', 'b')",
        "if string ~= nil then x = string.find('a', 'b') end",
        "if nil == string then x = 1 else x = string.find('a', 'b') end",
        "if type(string) == 'table' then x = string.find('a', 'b') end",
        "local t = {} function t:upper() return 1 end x = t:upper()",
        "local m = obj.a m = {} x = m:find()",
        "x = table.concat({}, ',') .. table.getn({})",
        "local x = obj.string.find",
        "local function f(math) return math.floor end",
    ],
)
def test_names_defined_or_tested_by_the_script_are_not_reported(script: str) -> None:
    assert list_findings(script) == []


def test_only_the_os_module_can_be_required() -> None:
    assert list_findings('x = require("json")') == [(1, "error", 'there is no module "json" here')]
    assert list_findings('x = require("string")') == [(1, "error", 'there is no module "string" here')]
    assert list_findings('x = require("string")', open_libs=True) == []


def test_functions_of_later_lua_versions_do_not_exist() -> None:
    assert list_findings("x = table.unpack({})", open_libs=True) == [(1, "error", "Lua 5.1 has no table.unpack")]
