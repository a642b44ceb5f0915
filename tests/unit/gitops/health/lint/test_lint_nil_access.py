"""Tests AGY403: values that may be nil must be tested before use."""

from __future__ import annotations

import pytest

from argosy.gitops.health.lint import lint_script

ANSWER = "\nif obj.ok then return {status = 'Healthy'} end return {status = 'Degraded'}"


def list_findings(script: str) -> list[tuple[int, str, str]]:
    findings = lint_script(script + ANSWER)
    assert all(one.rule == "AGY403" for one in findings), findings
    return [(one.line, one.severity, one.message.split(" ")[0]) for one in findings]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("x = obj.status.phase", (1, "error", "obj.status")),
        ("\nif obj.status.phase == 'a' then y = 1 end", (2, "error", "obj.status")),
        ("local s = obj.status\nx = s.phase", (2, "error", "obj.status")),
        ("if obj.status then x = obj.status.a.b end", (1, "warning", "obj.status.a")),
        ("if obj.status then for i, c in ipairs(obj.status.a) do y = 1 end end", (1, "warning", "obj.status.a")),
        ("if obj.status then x = #obj.status.a end", (1, "warning", "obj.status.a")),
        ("if obj.status then x = 'm' .. obj.status.a end", (1, "warning", "obj.status.a")),
        ("x = obj.metadata.annotations['a/b']", (1, "error", "obj.metadata.annotations")),
        ("x = obj.metadata.labels.app", (1, "error", "obj.metadata.labels")),
        ("x = obj.spec.replicas", (1, "warning", "obj.spec")),
        ("x = obj.data.key", (1, "error", "obj.data")),
        ("for i, c in ipairs(obj.items or {}) do\n x = 'm' .. c.message\nend", (2, "warning", "c.message")),
        ("if obj.status == nil then x = obj.status.a end", (1, "error", "obj.status")),
        ("if obj.status == nil or obj.status.a then x = obj.status.a end", (1, "error", "obj.status")),
        ("local s = obj.status or {}\nfor i, c in ipairs(s.a) do y = 1 end", (2, "warning", "obj.status.a")),
        ("local function f(o)\n return o.phase\nend\nx = f(obj.status)", (2, "error", "obj.status")),
        ("obj.status.a = 1", (1, "error", "obj.status")),
    ],
)
def test_unguarded_access_is_found(script: str, expected: tuple[int, str, str]) -> None:
    assert list_findings(script) == [expected]


@pytest.mark.parametrize(
    "script",
    [
        "if obj.status ~= nil then x = obj.status.phase end",
        "if obj.status then x = obj.status.phase end",
        "if obj.status and obj.status.a then x = obj.status.a.b end",
        "if obj.status ~= nil and obj.status.a ~= nil then for i, c in ipairs(obj.status.a) do y = c.type end end",
        "if obj.status == nil then return {status = 'Progressing'} end x = obj.status.phase",
        "if not obj.status then return {status = 'Progressing'} end x = obj.status.phase",
        "if not obj.status or not obj.status.a then return {status = 'Progressing'} end x = obj.status.a.b",
        "if obj.status == nil or obj.status.a == nil then return {status = 'Progressing'} end x = 'm' .. obj.status.a",
        "obj.status = obj.status or {} x = obj.status.phase",
        "local s = obj.status or {} x = s.phase",
        "local s = obj.status if s == nil then return {status = 'Progressing'} end x = s.phase",
        "local s = obj.status and obj.status.a or {} x = s.b",
        "x = (obj.status or {}).phase",
        "x = obj.status and obj.status.phase",
        "x = obj.status ~= nil and obj.status.phase == 'a'",
        "if type(obj.status) == 'table' then x = obj.status.phase end",
        "if type(obj.status) ~= 'table' then return {status = 'Progressing'} end x = obj.status.phase",
        "if nil ~= obj.status then x = obj.status.phase end",
        "if obj.status == nil then obj.status = {} end x = obj.status.phase",
        "local has = obj.status ~= nil if has then x = obj.status.phase end",
        "local function ok(o, k) return o and o[k] ~= nil end if ok(obj.status, 'a') then x = obj.status.a.b end",
        "local function phase(o) return o.status.phase end if obj.status then x = phase(obj) end",
        "while obj.status do x = obj.status.phase break end",
        "pcall(function() x = obj.status.phase end)",
        "x = obj.metadata.name .. obj.metadata.namespace .. obj.kind",
        "x = obj.metadata.generation + 1",
        "for i, c in ipairs(obj.items or {}) do x = c.type .. c.status .. (c.message or '') end",
        "for i, c in ipairs(obj.items or {}) do if c.message ~= nil then x = 'm' .. c.message end end",
        "for i, c in ipairs(obj.items or {}) do if c.a then goto on end y = c.b ::on:: end",
        "for k, v in pairs(obj.metadata.labels or {}) do x = k .. v end",
        "if obj.metadata.annotations ~= nil then x = obj.metadata.annotations['a'] end",
        "local n = tonumber(obj.size) if n ~= nil then x = 'm' .. obj.size end",
        "local t = {} x = t.a.b",
    ],
)
def test_common_guards_are_understood(script: str) -> None:
    assert list_findings(script) == []


def test_same_nil_access_is_reported_once_per_path() -> None:
    assert list_findings("x = obj.status.a\ny = obj.status.b\nz = obj.status.c") == [(1, "error", "obj.status")]


def test_guard_is_invalid_after_an_assignment() -> None:
    assert list_findings("if obj.status then\n obj.status = nil\n x = obj.status.a\nend") == [
        (3, "error", "obj.status")
    ]


def test_unguarded_claim_check_has_two_findings_with_lines() -> None:
    script = (
        "hs = {}\n"
        "if obj.status.phase == 'Waiting' then\n"
        "  hs.status = 'Healthy'\n"
        "else\n"
        "  hs.status = 'Progressing'\n"
        "  hs.message = 'it is ' .. obj.status.phase\n"
        "end\n"
        "return hs"
    )
    assert [(finding.rule, finding.line, finding.severity) for finding in lint_script(script)] == [
        ("AGY403", 2, "error"),
        ("AGY403", 6, "warning"),
    ]


def test_action_may_assume_that_spec_exists() -> None:
    assert lint_script("obj.spec.paused = true\nreturn obj", purpose="action") == []
