"""The Git repository of promotions: reading takes no index lock, and local edits are not overwritten."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from argosy.errors import UserError
from argosy.gitops.workspace.git_repository import GitRepository


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    (tmp_path / "a.yaml").write_text("a: 1\n")
    who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"]
    for words in (["init", "-q", "-b", "main"], ["add", "a.yaml"], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    opened_repository = GitRepository.open(tmp_path)
    assert opened_repository is not None
    return opened_repository


def test_list_uncommitted_does_not_write_the_index(repository: GitRepository) -> None:
    """Plain `git status` rewrites the index after a file was touched, and a promotion would find it locked."""
    os.utime(repository.paths.folder / "a.yaml", (1e9, 1e9))
    index = repository.paths.git_folder / "index"
    before = index.read_bytes()
    assert repository.list_uncommitted(["a.yaml"]) == []
    assert index.read_bytes() == before
    (repository.paths.folder / "a.yaml").write_text("a: 2\n")
    assert repository.list_uncommitted(["a.yaml"]) == ["a.yaml"]


def test_move_branch_succeeds_when_a_file_was_only_touched(repository: GitRepository) -> None:
    file = repository.paths.folder / "a.yaml"
    os.utime(file, (1e9, 1e9))
    head = repository.find_commit("HEAD")
    commit = repository.create_commit(head, {"a.yaml": b"a: 2\n"}, "second")
    repository.move_branch("main", commit, head, "a test")
    assert repository.find_commit("refs/heads/main") == commit and file.read_text() == "a: 2\n"


def test_move_branch_does_not_overwrite_a_locally_changed_file(repository: GitRepository) -> None:
    file = repository.paths.folder / "a.yaml"
    file.write_text("a: mine\n")
    head = repository.find_commit("HEAD")
    commit = repository.create_commit(head, {"a.yaml": b"a: 2\n"}, "second")
    with pytest.raises(UserError, match="was changed by somebody else meanwhile"):
        repository.move_branch("main", commit, head, "a test")
    assert repository.find_commit("refs/heads/main") == head and file.read_text() == "a: mine\n"
