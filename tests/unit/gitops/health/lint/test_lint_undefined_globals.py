"""Tests AGY401 and AGY403: undefined globals, and a leading byte order mark or # line that Argo CD does not skip."""

from __future__ import annotations

import pytest

from argosy.gitops.application.step_results import HealthStatus
from argosy.gitops.health.lint import LintFinding, lint_script
from argosy.gitops.health.lua import run_health_script

ANSWER = "\nif obj.ok then return {status = 'Healthy'} end return {status = 'Degraded'}"


def find_undefined_names(script: str, *, open_libs: bool = False) -> list[LintFinding]:
    return [one for one in lint_script(script, open_libs=open_libs) if "is not defined" in one.message]


@pytest.mark.parametrize(
    ("script", "line", "rule", "name", "advice"),
    [
        ("local s = {}\ns.status = 'Healthy'\nreturn hs", 3, "AGY401", "hs", "did you mean s?"),
        ("if object.status then x = 1 end" + ANSWER, 1, "AGY403", "object", "did you mean obj?"),
        ("x = Obj.status" + ANSWER, 1, "AGY403", "Obj", "did you mean obj?"),
        ("x = status.phase" + ANSWER, 1, "AGY403", "status", "did you mean obj.status?"),
        ("retrun {status = 'Healthy'}", 1, "AGY401", "retrun", "did you mean return?"),
        ("x = tonumer(obj.a)" + ANSWER, 1, "AGY401", "tonumer", "did you mean tonumber?"),
        ("local hs = {}\nhs.status = Healthy\nreturn hs", 2, "AGY401", "Healthy", 'write it in quotes: "Healthy"'),
        ("local message = ''\nx = 'a' .. mesage" + ANSWER, 2, "AGY401", "mesage", "did you mean message?"),
        ("for i, c in ipairs(conditons) do x = c end" + ANSWER, 1, "AGY401", "conditons", "set it before"),
        ("x = qqq\ny = qqq + 1" + ANSWER, 2, "AGY401", "qqq", "set it before it is used"),
    ],
)
def test_undefined_name_is_reported_once_with_a_suggestion(
    script: str, line: int, rule: str, name: str, advice: str
) -> None:
    (finding,) = find_undefined_names(script)
    assert (finding.line, finding.rule, finding.severity) == (line, rule, "error")
    assert finding.message == f"{name} is not defined" and finding.advice.startswith(advice)


@pytest.mark.parametrize(
    ("script", "advice"),
    [
        ("if obj.status == null then x = 1 end", "did you mean nil?"),
        ("if obj.a == True then x = 1 end", "did you mean true?"),
        ("local function f() return objct end x = f()", "did you mean obj?"),
    ],
)
def test_undefined_name_that_is_only_read_is_a_warning(script: str, advice: str) -> None:
    (finding,) = find_undefined_names(script + ANSWER)
    assert (finding.rule, finding.severity, finding.advice) == ("AGY401", "warning", advice)


def test_returning_an_undefined_name_returns_nil() -> None:
    assert "returns nil, not a result" in [one.message for one in lint_script("local s = {} return hs")]


@pytest.mark.parametrize(
    "script",
    [
        "if string ~= nil then x = string.find('a', 'b') end",
        "if json then x = json.decode('1') end",
        "if json == nil then x = 1 else x = json.decode('1') end",
        "x = json and json.decode('1')",
        "if type(json) == 'table' then x = json.decode('1') end",
        "if not json then x = 1 end",
        "local ok = pcall(undefined) x = ok",
        "local ok, y = pcall(function() return json.decode('1') end) x = y",
        "if obj.a then late = 1 end x = late",
        "function made() return 1 end x = made()",
        "_G.other = 1 x = other",
        "setfenv(1, {}) x = other.a",
        "x = facts and facts.a y = actionParams.b z = _VERSION",
        "x = table.concat({}) y = package.loaded z = unpack({1})",
        "local function f(...) return arg.n end x = f()",
        "local t = {} function t:f() return self.a end x = t:f()",
        "for k, v in next, obj do x = k end",
    ],
)
def test_defined_provided_or_tested_names_are_not_reported(script: str) -> None:
    assert find_undefined_names(script + ANSWER) == []
    assert find_undefined_names(script + ANSWER, open_libs=True) == []


@pytest.mark.parametrize(
    ("script", "advice"),
    [
        ("local hs = {}\nretrun hs", "did you mean return where it says retrun?"),
        ("if obj.a then\n x = 1\nelif obj.b then\n x = 2\nend", "did you mean elseif where it says elif?"),
        ("local x = = 1", "correct the syntax at this line"),
    ],
)
def test_misspelled_keyword_is_named_in_the_syntax_error(script: str, advice: str) -> None:
    (finding,) = lint_script(script)
    assert finding.message.startswith("does not parse") and finding.advice == advice


@pytest.mark.parametrize("beginning", ["\ufeff", "#!/usr/bin/lua\n", "# a comment\n", "\ufeff#x\n"])
def test_first_line_that_argo_cd_cannot_read_is_a_warning(beginning: str) -> None:
    script = beginning + "return {status = obj.word or 'Healthy'}"
    assert run_health_script(script, {}, open_libs=False).health is HealthStatus.HEALTHY
    (finding,) = lint_script(script)
    assert (finding.rule, finding.line, finding.severity) == ("AGY401", 1, "warning")
    assert "which Argo CD does not read" in finding.message


@pytest.mark.parametrize("script", ["\n#x\nreturn {}", "\ufeff\ufeffreturn {status = 'Healthy'}"])
def test_skipped_prefix_elsewhere_is_an_error_in_run_and_lint(script: str) -> None:
    assert run_health_script(script, {}, open_libs=False).health is HealthStatus.UNKNOWN
    assert [one.severity for one in lint_script(script)] == ["error"]


def test_line_numbers_include_a_skipped_first_line() -> None:
    (finding,) = find_undefined_names("#!/usr/bin/lua\n\nx = object.status" + ANSWER)
    assert finding.line == 3
