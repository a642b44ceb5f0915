"""`argosy check` for empty folders, folders outside a repository, shared broken bases and charts."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from argosy.errors import UserError
from argosy.features.check.service import CheckResult, check_paths
from argosy.gitops.workspace import manifest_files as files
from argosy.main import main

APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: "https://git.example.com/a.git", path: "{name}", targetRevision: main}}
  destination: {{name: in-cluster, namespace: {name}}}
  syncPolicy: {{syncOptions: [CreateNamespace=true]}}
"""


def check_folder(folder: Path) -> CheckResult:
    return check_paths([str(folder)], log=lambda text: None)


def test_folder_without_checkable_files_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "readme.txt").write_text("nothing")
    assert check_folder(tmp_path).is_empty
    assert main(["check", str(tmp_path)]) != 0
    assert "no Application, kustomization, manifest or notebook found" in capsys.readouterr().err


def test_empty_working_folder_error_suggests_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, advice in (
        ([], "choose a folder: argosy check FOLDER, or start a repository: argosy init FOLDER"),
        (["."], "correct the path"),
    ):
        assert main(["check", *words]) == 2
        assert capsys.readouterr().err.splitlines()[-1] == f"next: {advice}"


def test_folder_with_a_notebook_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    assert not check_folder(tmp_path).is_empty


def test_large_folder_outside_a_git_repository_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILES", 3)
    for number in range(4):
        (tmp_path / f"{number}.yaml").write_text("a: 1\n")
    with pytest.raises(UserError, match="not in a Git repository, and has more than 3 files; pass the folder"):
        list(files.load_manifest_files([str(tmp_path)]))
    (tmp_path / "3.yaml").unlink()
    assert len(list(files.load_manifest_files([str(tmp_path)]))) == 3


def test_broken_base_is_one_finding_for_all_its_applications(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "kustomization.yaml").write_text("resources: [gone.yaml]\n")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kustomization.yaml").write_text("resources: [../base]\n")
        (tmp_path / f"{name}.yaml").write_text(APPLICATION.format(name=name))
    findings = [finding for finding in check_folder(tmp_path).findings if finding.rule.id == "AGY102"]
    assert len(findings) == 1 and findings[0].violation.message.startswith("one, two: ")


def test_duplicate_keys_are_reported_only_in_kubernetes_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    files = {
        "locales/en.yml": 'title: a\ntitle: b\n"1": x\n1: y\n',
        "package.json": '{"a": 1,\n "a": 2}',
        "app/kustomization.yaml": "resources: [cm.yaml]\npatches: [{path: patch.yml, target: {kind: ConfigMap}}]\n",
        "twice/kustomization.yaml": "commonLabels: {a: b}\nlabels: []\nlabels: []\n",
        "app/cm.yaml": config_map,
        "app/patch.yml": "- op: add\n  path: /data\n  value: {}\n  value: {a: b}\n",
        "chart-values.yaml": "a: 1\na: 2\n",
        "loose.yaml": config_map + "data: {}\ndata: {}\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    reported_files = [
        finding.location.file
        for finding in check_paths(["."], log=lambda _: None).findings
        if finding.rule.id == "AGY154"
    ]
    assert sorted(reported_files) == ["app/patch.yml", "chart-values.yaml", "loose.yaml", "twice/kustomization.yaml"]


def write_charts(folder: Path, names: list[str]) -> None:
    for name in names:
        (folder / name).mkdir()
        (folder / name / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 1.0.0\n")


def chart_notes(result: CheckResult) -> list[str]:
    return [note for note in result.notes if "not rendered" in note]


@pytest.mark.parametrize("name", ["my chart", "a;b", "-x", "it's"])
def test_chart_note_contains_a_command_that_can_be_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_charts(tmp_path, [name])
    (note,) = chart_notes(check_paths(["."], log=lambda _: None))
    *command, path = shlex.split(note.rpartition(": ")[2])
    assert command == ["argosy", "check"]
    assert not path.startswith("-") and Path(path).samefile(tmp_path / name)


@pytest.mark.parametrize(("count", "notes"), [(5, 5), (6, 1)])
def test_notes_about_many_charts_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, notes: int
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [f"chart {number}" for number in range(count)]
    write_charts(tmp_path, names)
    messages = chart_notes(check_paths(["."], log=lambda _: None))
    assert len(messages) == notes
    assert all(name in " ".join(messages) for name in names)
    assert all("argosy check 'chart 0'" in note for note in messages[:1])
