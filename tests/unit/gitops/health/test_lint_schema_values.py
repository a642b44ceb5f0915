"""Tests AGY408: comparisons with a value that the schema of the kind excludes."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.features.health_checks.lint import lint_paths
from argosy.features.health_checks.schema_value_lint import lint_schema_values
from argosy.gitops.health.bundled_rules import list_profiles, load_bundled_rules, load_profile_rules
from argosy.gitops.health.lint.values_outside_schema_enum import check_schema_values

ALLOWED = ["Success", "Failure", "Skipped"]
SCHEMA = {
    "properties": {
        "status": {
            "properties": {
                "phase": {"type": "string", "enum": ["Succeeded", "Failed"]},
                "message": {"type": "string"},
                "results": {"items": {"properties": {"status": {"enum": ALLOWED}}}},
                "byName": {"additionalProperties": {"properties": {"state": {"enum": ["On", "Off"]}}}},
            }
        }
    }
}
# The advanced check of an integration guide, unchanged
GUIDE = """\
hs = {}
if obj.status == nil or obj.status.phase == nil then
  hs.status = "Progressing"
  return hs
end
local phase = obj.status.phase
if phase == "Succeeded" then
  hs.status = "Healthy"
elseif phase == "Failed" then
  hs.status = "Degraded"
  if obj.status.results ~= nil then
    for i, result in ipairs(obj.status.results) do
      if result.status == "error" then
        hs.message = "Failed at cell " .. result.cellIndex .. ": " .. (result.errorType or "Error")
        return hs
      end
    end
  end
elseif phase == "ValidationRunning" then
  hs.status = "Progressing"
  local completed = 0
  for _, result in ipairs(obj.status.results or {}) do
    if result.status == "success" then
      completed = completed + 1
    end
  end
else
  hs.status = "Progressing"
end
return hs
"""


def list_findings(script: str) -> list[tuple[int, str, str]]:
    return [(finding.line, finding.message, finding.advice) for finding in check_schema_values(script, SCHEMA, "Job")]


def test_value_with_wrong_case_is_reported_with_the_allowed_value() -> None:
    script = 'for _, r in ipairs(obj.status.results) do if r.status == "success" then return {} end end'
    message = (
        'obj.status.results[].status is compared with "success": never equal, Job allows Success, Failure, Skipped'
    )
    assert list_findings(script) == [(1, message, 'write "Success"')]


def test_unknown_value_is_reported_with_all_allowed_values() -> None:
    [(_, message, advice)] = list_findings('if "Done" ~= obj.status.phase then return {} end')
    assert message == 'obj.status.phase is compared with "Done": always different, Job allows Succeeded, Failed'
    assert advice == "use one of Succeeded, Failed"


@pytest.mark.parametrize(
    "script",
    [
        'local s = obj.status\nlocal p = s.phase\nif p == "Done" then return {} end',
        'local results = obj.status.results or {}\nif results[1].status == "Done" then return {} end',
        'for name, it in pairs(obj.status.byName) do if it.state == "Done" then return {} end end',
        'local f = function() return obj.status["phase"] == "Done" end',
    ],
    ids=["by way of locals", "an entry by its number", "an entry of a map", "in a function"],
)
def test_field_is_resolved_through_variables_lists_and_maps(script: str) -> None:
    assert len(list_findings(script)) == 1


@pytest.mark.parametrize(
    "script",
    [
        'if obj.status.phase == "Failed" then return {} end',
        'if obj.status.message == "Done" then return {} end',
        'if obj.status.other == "Done" then return {} end',
        'local p = obj.status.phase\np = "Done"\nif p == "Done" then return {} end',
        'for _, r in ipairs(obj.status.results) do r = {status = "a"}; if r.status == "a" then return {} end end',
        'local obj = {status = {phase = "Done"}}\nif obj.status.phase == "Done" then return {} end',
        'obj = {}\nif obj.status.phase == "Done" then return {} end',
        'local ipairs = mine\nfor _, r in ipairs(obj.status.results) do if r.status == "a" then return {} end end',
        'if obj.status.phase == "succeeded" or obj.status.phase == "Succeeded" then return {} end',
        "if obj.status.phase == nil then return {} end",
        "if obj.status.phase == ",
    ],
)
def test_allowed_or_unresolved_values_are_not_reported(script: str) -> None:
    assert list_findings(script) == []


def settings(tmp_path: Path, script: str) -> Path:
    key = "resource.customizations.health.mlops.mlops.dev_NotebookValidationJob"
    lines = "".join(f"    {line}\n" for line in script.splitlines())
    file = tmp_path / "argocd-cm.yaml"
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata:\n"
    file.write_text(f"{head}  {key}: |\n{lines}")
    return file


def test_check_of_the_guide_is_reported_with_a_matching_profile(tmp_path: Path) -> None:
    report = lint_paths([settings(tmp_path, GUIDE)], open_libs=False)
    remarks = [
        (remark.line, remark.severity, remark.message, remark.advice)
        for remark in report.remarks
        if remark.rule == "AGY408"
    ]
    offered = "argosy health show NotebookValidationJob --profile cells prints a script that does"
    about = "NotebookValidationJob allows Success, Failure, Skipped"
    assert remarks == [
        (
            18,
            "warning",
            f'obj.status.results[].status is compared with "error": never equal, {about}',
            f"use one of Success, Failure, Skipped; {offered}",
        ),
        (
            28,
            "warning",
            f'obj.status.results[].status is compared with "success": never equal, {about}',
            f'write "Success"; {offered}',
        ),
    ]


def test_rule_file_is_linted_for_the_kind_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "mlops.mlops.dev" / "NotebookValidationJob"
    folder.mkdir(parents=True)
    (folder / "health.lua").write_text(GUIDE)
    report = lint_paths([tmp_path], open_libs=False)
    assert [remark.line for remark in report.remarks if remark.rule == "AGY408"] == [13, 23]


def test_bundled_rules_compare_only_with_allowed_values() -> None:
    findings = [
        (rule.name, finding.message)
        for rules in (load_bundled_rules(), *map(load_profile_rules, list_profiles()))
        for kind, rule in rules.items()
        for finding in lint_schema_values(rule.script, kind)
    ]
    assert findings == []
