"""A repository is created completely or not at all, also if the disk is full halfway."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from argosy.gitops.workspace.git_repository_creation import RepositoryFile, create_repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
FILES = [
    RepositoryFile("a.yaml", b"a: 1\n"),
    RepositoryFile("b/c.yaml", b"c: 1\n"),
    RepositoryFile("d.yaml", b"d: 1\n"),
]


@pytest.mark.parametrize("refused", ["a.yaml", "b", "d.yaml", ".git"])
def test_existing_folder_is_empty_again_after_a_failed_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    rename = Path.rename

    def rename_all_but_one(path: Path, target: Path) -> Path:
        if path.name == refused and target.parent == tmp_path:
            raise OSError(28, "No space left on device", str(target))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", rename_all_but_one)
    with pytest.raises(OSError, match="No space left"):
        create_repository(tmp_path, FILES, message="Begin", remote="", is_committed=True)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    assert create_repository(tmp_path, FILES, message="Begin", remote="", is_committed=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".git", "a.yaml", "b", "d.yaml"]
