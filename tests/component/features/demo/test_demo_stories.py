"""Accidents of the demo that are merged: whether one is there is read from the files, and only its lines are undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.features.demo.content import BEN, make_repository
from argosy.features.demo.failure_drills import COMMITS, _revert
from argosy.gitops.workspace.bare_repository import BareRepository, Change
from argosy.gitops.workspace.new_repository import File


@pytest.fixture
def repository(tmp_path: Path) -> BareRepository:
    return make_repository(tmp_path / "demo.git")


def write(repository: BareRepository, path: str, text: str, message: str = "somebody's") -> None:
    repository.commit([Change([File(path, text.encode())], message, BEN, 1)])


@pytest.mark.parametrize("name", COMMITS)
def test_what_somebody_changed_since_an_accident_stays_when_it_is_undone(repository: BareRepository, name: str) -> None:
    story = COMMITS[name]
    before = repository.read(story.path).decode()
    write(repository, story.path, "# mine\n" + story.staged(before))
    assert f"undoes '{story.message}'" in _revert(repository, name, story)
    assert repository.read(story.path).decode() == "# mine\n" + before


@pytest.mark.parametrize("name", COMMITS)
def test_an_accident_that_is_there_twice_is_undone_twice(repository: BareRepository, name: str) -> None:
    story = COMMITS[name]
    before = repository.read(story.path).decode()
    write(repository, story.path, story.staged(story.staged(before)))
    _revert(repository, name, story)
    assert repository.read(story.path).decode() == before


@pytest.mark.parametrize("name", COMMITS)
def test_an_accident_that_was_reverted_through_git_is_not_there(repository: BareRepository, name: str) -> None:
    story = COMMITS[name]
    before = repository.read(story.path).decode()
    write(repository, story.path, story.staged(before), f"{story.message}\n\nDemo-Break: {name}\n")
    write(repository, story.path, before, "Put it right")
    commits = repository.commits()
    assert _revert(repository, name, story) == ""
    assert repository.commits() == commits
