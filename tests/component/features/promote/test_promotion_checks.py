"""The promotion gate `check: true` checks a copy of the repository and reads no file outside that copy."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest

from argosy.features.promote.argosy_check_of_edited_repository import check_edited_repository
from argosy.features.promote.environments_at_commit import RepositorySnapshot
from argosy.gitops.workspace.git_repository import GitRepository

SECRET = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-the-machine}\n"
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd}
spec:
  project: default
  source: {repoURL: https://example.com/web.git, path: other/base, targetRevision: HEAD}
  destination: {server: https://kubernetes.default.svc, namespace: web}
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with temporary files and a sibling folder that no repository may read."""
    write(tmp_path / "other/base/kustomization.yaml", "resources: [settings.yaml]\n")
    write(tmp_path / "other/base/settings.yaml", SECRET)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def check_commit(folder: Path) -> tuple[bool, str]:
    who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    repository = GitRepository.open(folder)
    assert repository is not None
    survey = RepositorySnapshot(repository, lambda _: None)
    try:
        return check_edited_repository(survey, {})
    finally:
        survey.close()


@pytest.mark.parametrize("current", ["repository", "."])
def test_check_gate_rejects_kustomize_base_outside_the_repository(
    machine: Path, monkeypatch: pytest.MonkeyPatch, current: str
) -> None:
    write(machine / "repository/dev/kustomization.yaml", "resources: [../../../other/base]\n")
    monkeypatch.chdir(machine / current)
    is_green, output = check_commit(machine / "repository")
    assert not is_green
    assert "AGY102" in output and "../../../other/base" in output and "leads out of" in output


def test_check_gate_does_not_resolve_application_path_outside_the_copy(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(machine / "repository/web.yaml", APPLICATION)
    monkeypatch.chdir(machine)
    assert check_commit(machine / "repository") == (True, "no errors, no warnings in 0 objects")


def test_check_gate_renders_kustomize_bases_inside_the_repository(machine: Path) -> None:
    write(machine / "repository/dev/kustomization.yaml", "resources: [../base]\n")
    write(machine / "repository/base/kustomization.yaml", "resources: [settings.yaml]\n")
    write(machine / "repository/base/settings.yaml", SECRET)
    assert check_commit(machine / "repository") == (True, "no errors, no warnings in 1 objects")
