"""Kubeconfigs are found by their content in all files that Git tracks."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from argosy.features.check.service import CheckResult, check_paths
from argosy.gitops.source.git.local_repository import LocalRepository

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters:
- name: production
  cluster: {server: "https://api.example.com:6443"}
users:
- name: ci
  user:
    client-key-data: Y29ycmVjdC1ob3JzZQ==
"""


def git(folder: Path, *words: str) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    who = ["-c", "user.name=ann", "-c", "user.email=ann@example.com"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, env=env)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "cm.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    (tmp_path / ".gitignore").write_text("ignored\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "Begin")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def places(result: CheckResult) -> list[tuple[str, int]]:
    return [finding.location for finding in result.findings if finding.rule.id == "AGY604"]


def checked(*paths: str) -> CheckResult:
    return check_paths(paths or ["."], log=lambda text: None)


@pytest.mark.parametrize("name", ["production", "access.txt", ".kube/config", "deploy/admin.conf"])
def test_tracked_kubeconfig_is_found_under_any_name(repository: Path, name: str) -> None:
    (repository / name).parent.mkdir(exist_ok=True)
    (repository / name).write_text(KUBECONFIG)
    assert places(checked()) == []  # not tracked yet
    git(repository, "add", name)
    assert places(checked()) == [(name, 9)]


def test_ignored_kubeconfig_is_not_reported(repository: Path) -> None:
    (repository / "ignored").write_text(KUBECONFIG)
    git(repository, "add", "-A")
    assert places(checked()) == []


def test_only_files_below_the_given_paths_are_searched(repository: Path) -> None:
    for name in ("one", "two"):
        (repository / name).mkdir()
        (repository / name / "access").write_text(KUBECONFIG)
    git(repository, "add", "-A")
    assert places(checked("one")) == [("one/access", 9)]
    assert places(checked("one", "two/access")) == [("one/access", 9)]  # AGY603 reports a file that is given as a path


def test_links_large_files_and_binary_files_are_skipped(repository: Path) -> None:
    (repository / "link").symlink_to("elsewhere")
    (repository / "large").write_text(KUBECONFIG + "#" * (1 << 20))
    (repository / "binary").write_bytes(b"\0" + KUBECONFIG.encode())
    git(repository, "add", "-A")
    assert places(checked()) == []


def test_yaml_kubeconfig_without_kind_is_found(repository: Path) -> None:
    (repository / "access.yaml").write_text(KUBECONFIG.partition("kind: Config\n")[2])
    git(repository, "add", "-A")
    assert places(checked()) == [("access.yaml", 7)]


def test_yaml_kubeconfig_with_kind_is_reported_once(repository: Path) -> None:
    (repository / "access.yaml").write_text(KUBECONFIG)
    git(repository, "add", "-A")
    result = checked()
    assert places(result) == []
    assert [finding.location for finding in result.findings if finding.rule.id == "AGY603"] == [("access.yaml", 9)]


def test_sops_encrypted_kubeconfig_is_not_reported(repository: Path) -> None:
    (repository / "access").write_text(KUBECONFIG.replace("Y29ycmVjdC1ob3JzZQ==", "ENC[AES256_GCM,data:x]"))
    git(repository, "add", "-A")
    assert places(checked()) == []


def test_repository_is_listed_once_for_several_paths(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listings: list[LocalRepository] = []
    list_tracked = LocalRepository.list_tracked_files

    async def count_listings(history: LocalRepository) -> list[str]:
        listings.append(history)
        return await list_tracked(history)

    monkeypatch.setattr(LocalRepository, "list_tracked_files", count_listings)
    for name in ("one", "two", "three"):
        (repository / name).mkdir()
        (repository / name / "access").write_text(KUBECONFIG)
    git(repository, "add", "-A")
    assert places(checked("one", "two", "cm.yaml")) == [("one/access", 9), ("two/access", 9)]
    assert len(listings) == 1


@pytest.mark.parametrize(("name", "rule"), [("access", "AGY604"), ("access.yaml", "AGY603")])
def test_both_rules_share_a_message_and_mention_git_only_for_tracked_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, rule: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(KUBECONFIG)
    (finding,) = [candidate for candidate in checked().findings if candidate.rule.id == rule]
    begin = "this file is a kubeconfig with client-key-data: anyone who can read"
    assert finding.violation.message == f"{begin} it can use the cluster"
    assert "Git" not in finding.violation.fix
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", "-A")
    (finding,) = [candidate for candidate in checked().findings if candidate.rule.id == rule]
    assert finding.violation.message == f"{begin} the repository can use the cluster"
    assert "remove the file from Git" in finding.violation.fix
