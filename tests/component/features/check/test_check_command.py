"""`argosy check`: output formats, exit codes, suppressions and baselines."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from argosy.cli.exit_codes import EXIT_ERROR, EXIT_NEGATIVE, EXIT_OK
from argosy.main import main
from support.paths import ROOT

APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: fraud
  namespace: argocd
spec:
  project: default
  source: {repoURL: https://git.example.com/acme/fraud.git, path: manifests, targetRevision: main}
  destination: {server: https://kubernetes.default.svc, namespace: fraud}
  syncPolicy:
    syncOptions: [CreateNamespace=true]
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  annotations:
    argosy.dev/other: "yes"
spec:
  ttlSecondsAfterFinished: 60
  template:
    spec:
      restartPolicy: Never
      containers: [{name: train, image: registry.example.com/train:1}]
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "application.yaml").write_text(APPLICATION)
    (tmp_path / "manifests" / "job.yaml").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_text_output_shows_location_rule_summary_and_next_command(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check"]) == EXIT_NEGATIVE
    captured = capsys.readouterr()
    assert captured.out.startswith("manifests/job.yaml:8: AGY135 warning: Job/train is deleted 60 s after it finishes")
    assert "1 Application, 1 object: 0 errors, 1 warning, 0 for information" in captured.err
    assert "next: argosy explain AGY135" in captured.err


@pytest.mark.parametrize(("least", "code"), [("error", EXIT_OK), ("warning", EXIT_NEGATIVE), ("info", EXIT_NEGATIVE)])
def test_fail_on_sets_the_severity_that_fails(repository: Path, least: str, code: int) -> None:
    assert main(["check", "--fail-on", least]) == code


def test_json_output_has_location_certainty_and_fix(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "-o", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert (answer["kind"], answer["applications"], answer["objects"]) == ("Check", 1, 1)
    (item,) = answer["items"]
    location = item["rule"], item["file"], item["line"], item["object"]
    assert location == ("AGY135", "manifests/job.yaml", 8, "Job/train")
    assert item["sure"] and item["fix"]


def test_sarif_output_names_the_rule_and_the_line(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "-o", "sarif"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    (result,) = run["results"]
    assert result["ruleId"] == "AGY135" == run["tool"]["driver"]["rules"][0]["id"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 8


def test_gitlab_github_and_junit_outputs_hold_the_finding(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "-o", "gitlab"])
    (item,) = json.loads(capsys.readouterr().out)
    assert item["location"] == {"path": "manifests/job.yaml", "lines": {"begin": 8}}
    main(["check", "-o", "github"])
    assert capsys.readouterr().out.startswith("::warning file=manifests/job.yaml,line=8,title=AGY135::Job/train")
    main(["check", "-o", "junit"])
    suite = ElementTree.fromstring(capsys.readouterr().out)
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")


def test_suppress_annotation_with_a_reason_is_honored(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = repository / "manifests" / "job.yaml"
    job.write_text(JOB.replace('argosy.dev/other: "yes"', "argosy.dev/suppress: AGY135 it is kept for a day"))
    assert main(["check", "-o", "json"]) == EXIT_OK
    answer = json.loads(capsys.readouterr().out)
    assert answer["items"] == []
    assert [finding["reason"] for finding in answer["excused"]] == ["it is kept for a day"]


def test_suppress_annotation_without_a_reason_is_ignored(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = repository / "manifests" / "job.yaml"
    job.write_text(JOB.replace('argosy.dev/other: "yes"', "argosy.dev/suppress: AGY135"))
    assert main(["check"]) == EXIT_NEGATIVE
    assert "suppresses nothing" in capsys.readouterr().err


def test_argosy_yaml_suppresses_a_rule_by_path(repository: Path) -> None:
    (repository / "argosy.yaml").write_text(
        "apiVersion: argosy.dev/v1\nkind: Delivery\nrepository: {url: https://git.example.com/acme/fraud.git}\n"
        "environments:\n  dev: {application: other, path: manifests}\n"
        "check:\n  suppress:\n    - {rule: AGY135, path: manifests, reason: on purpose}\n"
    )
    assert main(["check"]) == EXIT_OK


def test_baseline_hides_known_findings_and_shows_new_ones(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--baseline", "known.yaml", "--write-baseline"]) == EXIT_OK
    job = repository / "manifests" / "job.yaml"
    job.write_text("# a line more\n" + JOB)
    assert main(["check", "--baseline", "known.yaml"]) == EXIT_OK
    (repository / "manifests" / "second.yaml").write_text(JOB.replace("name: train\n", "name: second\n", 1))
    capsys.readouterr()
    assert main(["check", "--baseline", "known.yaml"]) == EXIT_NEGATIVE
    assert capsys.readouterr().out.count("AGY135") == 1


def test_missing_baseline_is_an_error(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--baseline", "known.yaml"]) == EXIT_ERROR
    assert "baseline not found" in capsys.readouterr().err


def test_application_of_another_repository_is_reported_as_not_checked(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "manifests" / "job.yaml").unlink()
    (repository / "manifests").rmdir()
    assert main(["check"]) == EXIT_OK
    assert "not checked: https://git.example.com/acme/fraud.git is another repository" in (capsys.readouterr().err)


@pytest.mark.parametrize(
    ("remote", "code"),
    [
        ("acme/fraud", EXIT_NEGATIVE),
        ("someone/fraud", EXIT_NEGATIVE),
        ("/copy", EXIT_NEGATIVE),
        ("acme/platform", EXIT_OK),
    ],
)
def test_missing_folder_is_a_finding_only_in_this_repository_or_a_fork(
    repository: Path, remote: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["git", "init", "-q", "."], check=True)
    address = remote if remote.startswith("/") else f"https://git.example.com/{remote}.git"
    subprocess.run(["git", "remote", "add", "origin", address], check=True)
    text = APPLICATION.replace("name: fraud", "name: other").replace("path: manifests", "path: not/here")
    (repository / "other.yaml").write_text(text)
    assert main(["check", "--fail-on", "error"]) == code
    assert ("AGY101" in capsys.readouterr().out) == (code == EXIT_NEGATIVE)


def test_application_with_placeholders_is_reported_as_not_checked(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = APPLICATION.replace("targetRevision: main", "targetRevision: '${BRANCH}'")
    text = text.replace("name: fraud", "name: other")
    (repository / "template.yaml").write_text(text.replace("path: manifests", "path: 'clusters/${CLUSTER}'"))
    assert main(["check", "--fail-on", "error"]) == EXIT_OK
    captured = capsys.readouterr()
    assert "template.yaml:1: Application/other not checked: it has the placeholder ${CLUSTER}" in captured.err
    assert "template.yaml" not in captured.out


def test_explain_describes_a_rule_and_rejects_an_unknown_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "AGY135"]) == EXIT_OK
    assert "Known because:" in capsys.readouterr().out
    assert main(["explain", "AGY999"]) == EXIT_ERROR
    assert "unknown rule" in capsys.readouterr().err


SHIPPED = (
    "llmops-via-argocd", "examples/notebooks-to-serving", "examples/sandbox", "deploy/notebooks", "deploy/page",
    "integrations",
)  # fmt: skip


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(folder, marks=pytest.mark.tier("all") if number % 3 else ())
        for number, folder in enumerate(SHIPPED)
    ],
)
def test_shipped_folders_pass_the_check(
    folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["check", folder]) == EXIT_OK, capsys.readouterr().out


@pytest.mark.tier("all")
def test_shipped_health_checks_have_only_always_healthy_warnings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A claim, and all kinds of the lenient profile: users choose them for a sync that never waits."""
    monkeypatch.chdir(ROOT)
    main(["check", "deploy/health", "-o", "json"])
    findings = json.loads(capsys.readouterr().out)["items"]
    assert {(finding["rule"], finding["severity"]) for finding in findings} == {("AGY402", "warning")}


def test_repository_created_by_init_passes_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "fresh"]) == EXIT_OK
    assert main(["check", "fresh"]) == EXIT_OK, capsys.readouterr().out
