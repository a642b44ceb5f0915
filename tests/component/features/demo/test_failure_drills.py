"""Failure drills of the demo that are commits: detected from file contents, and reverted line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.features.demo.content import BEN, create_demo_repository
from argosy.features.demo.failure_drills import COMMIT_DRILLS, _revert_commit
from argosy.gitops.workspace.git_repository_creation import RepositoryFile
from argosy.gitops.workspace.hosted_bare_repository import BareRepository, CommitContent


@pytest.fixture
def repository(tmp_path: Path) -> BareRepository:
    return create_demo_repository(tmp_path / "demo.git")


def write(repository: BareRepository, path: str, text: str, message: str = "somebody's") -> None:
    repository.commit([CommitContent([RepositoryFile(path, text.encode())], message, BEN, 1)])


@pytest.mark.parametrize("name", COMMIT_DRILLS)
def test_revert_of_a_drill_keeps_other_changes(repository: BareRepository, name: str) -> None:
    story = COMMIT_DRILLS[name]
    before = repository.read_file(story.path).decode()
    write(repository, story.path, "# mine\n" + story.apply_to(before))
    assert f"undoes '{story.message}'" in _revert_commit(repository, name, story)
    assert repository.read_file(story.path).decode() == "# mine\n" + before


@pytest.mark.parametrize("name", COMMIT_DRILLS)
def test_drill_applied_twice_is_reverted_completely(repository: BareRepository, name: str) -> None:
    story = COMMIT_DRILLS[name]
    before = repository.read_file(story.path).decode()
    write(repository, story.path, story.apply_to(story.apply_to(before)))
    _revert_commit(repository, name, story)
    assert repository.read_file(story.path).decode() == before


@pytest.mark.parametrize("name", COMMIT_DRILLS)
def test_drill_already_reverted_in_git_is_not_reverted_again(repository: BareRepository, name: str) -> None:
    story = COMMIT_DRILLS[name]
    before = repository.read_file(story.path).decode()
    write(repository, story.path, story.apply_to(before), f"{story.message}\n\nDemo-Break: {name}\n")
    write(repository, story.path, before, "Put it right")
    commits = repository.list_commits()
    assert _revert_commit(repository, name, story) == ""
    assert repository.list_commits() == commits
