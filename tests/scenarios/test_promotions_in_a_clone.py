"""`argosy promote` in a clone that is shallow, behind, ahead or edited: what is told is true, or it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from promotion_repository import ALONE, Shelf, make


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """Dev has 1.2, staging 1.1, production 1.0; nobody writes to it again."""
    folder = tmp_path_factory.mktemp("origin")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**ALONE, "XDG_STATE_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}.items():
            patch.setenv(name, value)
        shelf = make(folder / "web")
        shelf.pin("dev", "1.1")
        shelf.argosy("run", "--to", "staging")
        shelf.pin("dev", "1.2")
        yield shelf


@pytest.fixture
def clone(origin: Shelf, tmp_path: Path) -> Shelf:
    return cloned(origin, tmp_path / "clone")


def cloned(origin: Shelf, folder: Path, *more: str) -> Shelf:
    origin.git("clone", "-q", *more, f"file://{origin.folder}", str(folder))
    shelf = Shelf(folder)
    for name, value in (("user.name", "Ann"), ("user.email", "ann@example.com")):
        shelf.git("config", name, value)
    return shelf


WRITING = [
    ("run", "--to", "staging"), ("rollback", "staging"), ("approve", "--to", "production"),
    ("reject", "--to", "production"), ("hold", "staging"), ("resume", "staging"),
]  # fmt: skip


def test_in_a_shallow_clone_nothing_is_written_and_the_status_says_why(origin: Shelf, tmp_path: Path) -> None:
    shelf = cloned(origin, tmp_path / "clone", "--depth", "1")
    before = shelf.git("rev-parse", "HEAD")
    for words in (("run", "--to", "production"), *WRITING[2:]):
        said = shelf.argosy(*words, code=1).err
        assert "this clone is shallow" in said and "next: git fetch --unshallow" in said
    assert shelf.git("rev-parse", "HEAD") == before
    assert "✖ clone" in shelf.argosy("plan", "--to", "production", code=1).out
    assert "note: this clone is shallow" in shelf.argosy("status").err
    shelf.git("fetch", "-q", "--unshallow")
    shelf.argosy("approve", "--to", "production")
    assert "Approve r2 for production" in shelf.git("log", "-1", "--format=%s")


def test_on_a_branch_that_is_behind_nothing_is_written(clone: Shelf) -> None:
    clone.git("reset", "-q", "--hard", "HEAD~1")
    before = clone.git("rev-parse", "HEAD")
    for words in WRITING:
        said = clone.argosy(*words, code=1).err
        assert "this branch is 1 commit behind origin/main" in said and "next: git pull" in said
    assert clone.git("rev-parse", "HEAD") == before
    assert "note: this branch is 1 commit behind origin/main; git pull" in clone.argosy("status").err
    clone.git("pull", "-q")
    clone.argosy("run", "--to", "staging")


def test_off_all_branches_at_an_old_commit_it_is_noted(clone: Shelf) -> None:
    clone.git("switch", "-q", "--detach", "HEAD~2")
    assert "note: HEAD is detached, and 2 commits behind origin/HEAD" in clone.argosy("status").err
    clone.argosy("run", "--to", "staging", "--branch", "aside", code=1)
    clone.git("switch", "-q", "--detach", "origin/main")
    clone.argosy("run", "--to", "staging", "--branch", "aside")


def test_what_is_not_pushed_and_not_committed_is_noted_in_the_status(clone: Shelf) -> None:
    assert "note: not committed" not in clone.argosy("status").err
    clone.argosy("hold", "staging")
    clone.write("argosy.yaml", "kind: [")
    said = clone.argosy("status").err
    assert "note: 1 commit not pushed to origin/main: nothing of that is deployed; git push" in said
    assert "note: not committed, so not looked at: argosy.yaml" in said
