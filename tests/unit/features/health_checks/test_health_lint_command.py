"""Findings and reports of `argosy health lint` for files, folders and standard input."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from argosy.main import main

SCRIPT = """\
local hs = {status = "Progressing"}
if obj.status ~= nil then
  hs.status = "Healthy"
end
return hs
"""
KEY = "resource.customizations.health.ml.example.com_Model"
CM = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata:\n"
CR = "apiVersion: argoproj.io/v1beta1\nkind: ArgoCD\nmetadata: {name: gitops}\nspec:\n"


def indented(script: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in script.splitlines())


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["health", "lint", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def cm(tmp_path: Path) -> Path:
    (tmp_path / "cm.yaml").write_text(f"{CM}  {KEY}: |\n{indented(SCRIPT, 4)}")
    return tmp_path / "cm.yaml"


def test_configmap_that_differs_from_the_cr_in_another_file_is_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, cm: Path
) -> None:
    other = indented(SCRIPT.replace("Progressing", "Degraded"), 6)
    check = f"  resourceHealthChecks:\n  - group: ml.example.com\n    kind: Model\n    check: |\n{other}"
    (tmp_path / "cr.yaml").write_text(CR + check)
    code, out, _ = run(capsys, tmp_path / "cr.yaml", cm)
    assert code == 1
    assert f"{cm}:5: AGY405 error: differs from ArgoCD/gitops spec.resourceHealthChecks[0]" in out


def test_argocd_cm_files_of_two_installations_do_not_conflict(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, cm: Path
) -> None:
    (tmp_path / "prod.yaml").write_text(cm.read_text().replace("Progressing", "Degraded"))
    assert run(capsys, cm, tmp_path / "prod.yaml")[:2] == (0, "")


def test_identical_checks_are_reported_with_their_own_lines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = "    return {\n"
    text = f"{CM}  resource.customizations.health.Pod: |\n{bad}  resource.customizations.health.Node: |\n{bad}"
    (tmp_path / "cm.yaml").write_text(text)
    lines = [remark["line"] for remark in json.loads(run(capsys, tmp_path / "cm.yaml", "-o", "json")[1])["items"]]
    assert lines == [7, 9] or lines == [6, 8]


def test_findings_have_the_line_of_the_setting(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        f"{CM}  resource.customizations: |\n    a_B: {{health.lua: x}}\n"
        "  resource.customizations.health.Pod: 3\n  resource.customization.health.Node: x\n---\n"
        f"{CR}  resourceHealthChecks:\n  - kind: Node\n    check: 3\n"
    )
    items = json.loads(run(capsys, tmp_path / "s.yaml", "-o", "json")[1])["items"]
    assert [(item["line"], item["severity"]) for item in items] == [
        (6, "error"),
        (7, "error"),
        (8, "warning"),
        (15, "error"),
    ]


def test_misspelled_argosy_settings_are_warnings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = "  fallback: 'true'\n  health.profile.serving.kserve.io_InferenceService: stric\n"
    (tmp_path / "own.yaml").write_text(CM.replace("argocd-cm", "argosy-cm") + data)
    code, out, err = run(capsys, tmp_path / "own.yaml")
    assert code == 0
    assert "own.yaml:5: AGY406 warning: is not a known setting; did you mean health.fallback?" in out
    assert "own.yaml:6: AGY406 warning: " in out and "did you mean strict?" in out
    assert "0 scripts: 0 errors, 2 warnings" in err
    assert run(capsys, tmp_path / "own.yaml", "--strict")[0] == 1


@pytest.mark.parametrize("text", [SCRIPT, "-- kind: Pod is meant\n" + SCRIPT])
def test_script_is_read_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run(capsys, "-") == (0, "", "1 script: 0 errors, 0 warnings\n")


@pytest.mark.parametrize("text", [CM + "  a: b\n", '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}'])
def test_settings_on_standard_input_are_not_parsed_as_a_script(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code, _, err = run(capsys, "-")
    assert (code, "does not parse" in err) == (2 if "Secret" in text else 0, False)


def test_folder_is_searched_for_scripts_and_settings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, cm: Path
) -> None:
    (tmp_path / "a.lua").write_text(SCRIPT)
    (tmp_path / "b.lua").write_text("return {")
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    code, out, err = run(capsys, tmp_path)
    assert code == 1
    assert "b.lua:1: AGY401" in out
    assert err.startswith("3 scripts: 1 error, ")


def test_empty_folder_exits_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run(capsys, tmp_path)
    assert code == 2
    assert "contains no script" in err


def test_unreadable_file_does_not_hide_findings_of_other_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "b.lua").write_text("return {")
    code, out, err = run(capsys, tmp_path / "nowhere.lua", tmp_path / "b.lua")
    assert code == 2
    assert "b.lua:1: AGY401" in out
    assert "nowhere.lua: does not exist\nnext: " in err


def test_junit_report_has_one_case_per_script(capsys: pytest.CaptureFixture[str], tmp_path: Path, cm: Path) -> None:
    (tmp_path / "b.lua").write_text("return {")
    (tmp_path / "c.lua").write_text('return {status = "Healthy"}')
    cm.write_text(cm.read_text() + "  resource.customizations.health.Pod: 3\n")
    arguments = [tmp_path / "b.lua", tmp_path / "c.lua", cm, "-o", "junit"]
    suite = ElementTree.fromstring(run(capsys, *arguments)[1])
    failed = {case.get("name"): case.find("failure") is not None for case in suite}
    names = {str(tmp_path / "b.lua"): True, str(tmp_path / "c.lua"): False, KEY: False}
    assert failed == names | {"resource.customizations.health.Pod": True}
    assert (suite.get("tests"), suite.get("failures")) == ("4", "2")
    strict = ElementTree.fromstring(run(capsys, *arguments, "--strict")[1])
    assert strict.get("failures") == "3"


def test_notebook_check_without_observed_generation_is_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    key = "resource.customizations.health.mlops.mlops.dev_NotebookValidationJob"
    (tmp_path / "cm.yaml").write_text(f"{CM}  {key}: |\n{indented(SCRIPT, 4)}")
    rule = tmp_path / "rules" / "mlops.mlops.dev" / "NotebookValidationJob"
    rule.mkdir(parents=True)
    (rule / "health.lua").write_text(SCRIPT)
    (rule / "health_test.yaml").write_text("tests: []\n")
    for path, location in (
        (tmp_path / "cm.yaml", f"{tmp_path}/cm.yaml:8"),
        (tmp_path / "rules", f"{rule}/health.lua:3"),
    ):
        code, out, _ = run(capsys, path)
        message = "AGY409 warning: never compares status.observedGeneration with metadata.generation"
        assert (code, f"{location}: {message}" in out) == (0, True), out
