"""Tests AGY401 and AGY402: what a health script returns."""

from __future__ import annotations

import pytest

from argosy.gitops.application.step_results import HealthStatus
from argosy.gitops.health.lint import LintFinding, lint_script
from argosy.gitops.health.lua import run_health_script

HEAD = "local hs = {}\n"


def list_findings(script: str, rule: str, **options: object) -> list[tuple[int, str]]:
    return [(finding.line, finding.severity) for finding in lint_script(script, **options) if finding.rule == rule]  # type: ignore[arg-type]


def one(script: str, rule: str = "AGY401") -> LintFinding:
    (finding,) = [candidate for candidate in lint_script(script) if candidate.rule == rule]
    return finding


def test_syntax_error_is_the_only_finding_and_has_its_line() -> None:
    (finding,) = lint_script("local hs = {}\nif obj.status.x then\n")
    assert (finding.rule, finding.line, finding.severity) == ("AGY401", 3, "error")
    assert "'end' expected" in finding.message and finding.advice


def test_script_without_return_is_reported_once() -> None:
    assert one("local hs = {}\nhs.status = 'Healthy'\n").message == "never returns anything"


@pytest.mark.parametrize(
    "script",
    [
        "if obj.a then\n return {status = 'Healthy'}\nend\n",
        "if obj.a then\n return {status = 'Healthy'}\nelseif obj.b then\n return {status = 'Degraded'}\nend",
        "for i, c in ipairs(obj.a or {}) do\n return {status = 'Healthy'}\nend",
        "while obj.a do\n return {status = 'Healthy'}\nend",
        "for i, c in ipairs(obj.a or {}) do\n if c.x then goto out end\nend\nif obj.b then return {} end\n::out::",
    ],
)
def test_path_to_the_end_without_return_is_found(script: str) -> None:
    assert any("without returning" in finding.message for finding in lint_script(script))


@pytest.mark.parametrize(
    "script",
    [
        "if obj.a then return {status = 'Healthy'} else return {status = 'Degraded'} end",
        "if obj.a then return {status = 'Healthy'} end if not obj.a then return {status = 'Degraded'} end",
        "if obj.a == nil then return {status = 'Healthy'} elseif obj.a ~= nil then return {status = 'Degraded'} end",
        "while true do if obj.a then return {status = 'Healthy'} else return {status = 'Degraded'} end end",
        "if obj.n < 3 then return {status = 'Healthy'} end if obj.n >= 3 then return {status = 'Degraded'} end",
        "repeat if obj.a then return {status = 'Healthy'} end until false",
        "if obj.a then return {status = 'Healthy'} end error('x')",
        "do return {status = obj.a} end",
    ],
)
def test_script_that_returns_on_every_path_is_not_reported(script: str) -> None:
    assert not list_findings(script, "AGY401")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("return 'Healthy'", "returns a string, not a table"),
        ("return true", "returns a boolean, not a table"),
        ("return 1", "returns a number, not a table"),
        ("return 'Healthy', 'it is well'", "returns a string, not a table"),
        ("return nil", "returns nil, not a result"),
        ("return", "returns nil, not a result"),
        ("return {}", "returns a table without a status"),
        ("return {message = 'x'}", "returns a table without a status"),
        ("local hs = {} hs.message = 'x' return hs", "returns a table without a status"),
        ("return {state = 'Healthy'}", "returns a table without a status"),
        ("return {status = obj.a, message = 5}", "returns a message that is a number, not a string"),
        ("return {status = obj.a, message = obj.b == 'x'}", "returns a message that is a boolean, not a string"),
        ("hs = {status = obj.a} hs.message = {} return hs", "returns a message that is a table, not a string"),
        ("return {status = true}", "returns a status that is a boolean, not a string"),
        ("return {status = 'Healty'}", '"Healty" is not a health status'),
        ("local function f() return 'x' end return f()", "returns a string, not a table"),
        ("local function f() return {} end return f()", "returns a table without a status"),
    ],
)
def test_invalid_return_value_is_named(answer: str, message: str) -> None:
    assert one(answer).message == message


@pytest.mark.parametrize(
    ("word", "advice"),
    [("Healty", '"Healthy"'), ("healthy", '"Healthy"'), ("Progresing", '"Progressing"'), ("OK", "one of Healthy")],
)
def test_misspelled_status_is_corrected(word: str, advice: str) -> None:
    finding = one(
        f"local hs = {{}}\nif obj.a then\n  hs.status = '{word}'\nelse\n  hs.status = 'Healthy'\nend\nreturn hs"
    )
    assert finding.line == 3 and advice in finding.advice


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        ("{}", "an empty table counts as no result"),
        ("{message = 'x'}", "makes its object Unknown; set a status"),
        ("{state = 'Healthy'}", "makes its object Unknown; call it status, not state"),
    ],
)
def test_advice_for_missing_status_matches_the_actual_result(answer: str, advice: str) -> None:
    assert advice in one(f"return {answer}").advice
    assessed = run_health_script(f"return {answer}", {}, open_libs=False)
    assert assessed.health is (None if answer == "{}" else HealthStatus.UNKNOWN)


@pytest.mark.parametrize(
    "script",
    [
        "local words = {\n  Ready = 'Healty',\n}\nlocal hs = {}\nhs.status = words[obj.phase]\nreturn hs",
        "local words = {\n  Ready = 'Healty',\n}\nreturn {status = words[obj.phase] or 'Progressing'}",
        "local words = {\n  Ready = 'Healty',\n}\nlocal word = words[obj.phase]\nreturn {status = word}",
    ],
)
def test_misspelled_status_in_a_lookup_table_is_corrected(script: str) -> None:
    finding = one(script)
    assert (finding.line, finding.advice) == (2, 'write "Healthy"')


@pytest.mark.parametrize(
    "script",
    [
        "local words = {Ready = 'Healthy', x = 'Ready'} return {status = words[obj.phase]}",
        "local words = {Ready = 'Healty'} return {status = obj.a, message = words[obj.phase]}",
        "local words = {a = 'Suspend', b = 'Healthy'} local w = words[obj.a] if w == 'Suspend' then w = 'Suspended' end"
        " return {status = w}",
    ],
)
def test_other_words_in_a_table_are_not_reported(script: str) -> None:
    assert lint_script(script) == []


def test_wrong_status_is_found_in_locals_and_function_results() -> None:
    assert one("local s = 'Ready'\nif obj.a then s = 'Healthy' end\nreturn {status = s}").line == 1
    assert one("local function f()\n return 'Good', 'm'\nend\nlocal s, m = f()\nreturn {status = s}").line == 2


@pytest.mark.parametrize(
    "script",
    [
        "hs = {}\nif obj.a == 1 then hs.status = 'Healthy'\nelseif obj.b then hs.status = 'Degraded' end\nreturn hs",
        "hs = {}\nfor i, c in ipairs(obj.a or {}) do\n if c.x then hs.status = 'Healthy' end\nend\nreturn hs",
    ],
)
def test_path_that_sets_no_status_is_a_warning(script: str) -> None:
    assert list_findings(script, "AGY401") == [(script.count("\n") + 1, "warning")]


@pytest.mark.parametrize(
    "script",
    [
        "hs = {} if obj.a then hs.status = 'Healthy' end if hs.status == nil then hs.status = 'Degraded' end return hs",
        "hs = {} if obj.a then hs.status = 'Healthy' end if not obj.a then hs.status = 'Degraded' end return hs",
        "hs = {} if obj.a then hs.status = 'Healthy' end hs.status = hs.status or 'Degraded' return hs",
        "hs={} if obj.a~= nil then hs.status = 'Healthy' end if obj.a == nil then hs.status = 'Unknown' end return hs",
        "hs = {} local function f(s) hs.status = s end if obj.a then f('Healthy') else f('Degraded') end return hs",
        "local fill = obj.fill hs = {} fill(hs) return hs",
        "hs = {} local t = hs t.status = obj.a return hs",
        "hs = {} hs['status'] = obj.a return hs",
        "hs = {} local k = obj.k hs[k] = 'Healthy' return hs",
        "hs = {} table.sort(obj.a, function(a, b) hs.status = 'Healthy' return a < b end) return hs",
        "local words = {A = 'Healthy', B = 'Degraded'} return {status = words[obj.phase]}",
        "local function f(x) if x then return {status = 'Healthy'} end return {status = 'Missing'} end return f(obj.a)",
        "local function f(x) if x then return 'Healthy' end return 'Degraded' end return {status = f(obj.a)}",
        "return {status = obj.a and 'Healthy' or 'Progressing'}",
        "return {Status = obj.a and 'Healthy' or 'Progressing'}",
        "local m = 5 if obj.a then m = 'm' else m = tostring(m) end return {status = obj.b, message = m}",
        "local hs = {} pcall(function() hs.status = 'Healthy' end) return hs",
        "return obj",
        "local unknown = obj.f return unknown(obj)",
    ],
)
def test_status_set_indirectly_is_not_reported(script: str) -> None:
    assert lint_script(script) == []


def test_action_and_discovery_scripts_must_return_a_table() -> None:
    assert lint_script("obj.spec.paused = true\nreturn obj", purpose="action") == []
    assert lint_script("local actions = {} actions.restart = {} return actions", purpose="discovery") == []
    assert list_findings("obj.spec.paused = true\n", "AGY401", purpose="action") == [(2, "error")]
    assert list_findings("return 'restart'", "AGY401", purpose="discovery") == [(1, "error")]
    assert list_findings("return nil", "AGY401", purpose="action") == [(1, "error")]


def test_check_with_constant_status_is_a_warning() -> None:
    finding = one("hs = {}\nhs.status = 'Healthy'\nhs.message = 'ignored'\nreturn hs", "AGY402")
    assert (finding.severity, finding.message) == ("warning", "is always Healthy, whatever the status of the object is")


def test_check_that_can_never_be_healthy_is_an_error() -> None:
    script = HEAD + "if obj.a then\n hs.status = 'Degraded'\nelse\n hs.status = 'Progressing'\nend\nreturn hs"
    finding = one(script, "AGY402")
    assert (finding.severity, finding.line) == ("error", 7)
    assert finding.message == "can never be Healthy: every result is Degraded or Progressing"


@pytest.mark.parametrize("status", ["obj.health", "next(obj)", "obj[obj.phase]", "obj.a or 'Progressing'"])
def test_status_of_unknown_value_may_be_healthy(status: str) -> None:
    assert lint_script(f"return {{status = {status}}}") == []


def test_unknown_status_stays_unknown_after_joining_many_paths() -> None:
    tests = "".join(f"if obj.a{number} then hs.message = obj.b{number} end\n" for number in range(9))
    assert lint_script(f"local hs = {{}}\nhs.status = obj[obj.phase]\n{tests}return hs") == []
    assert list_findings(f"local hs = {{}}\n{tests}return hs", "AGY401") == [(11, "error")]
