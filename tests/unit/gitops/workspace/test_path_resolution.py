"""Root folder of a local path: its Git repository, the current folder, or the path itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.errors import UserError
from argosy.gitops.workspace.enclosing_repository_lookup import (
    TreePath,
    find_shared_git_folder,
    load_remotes,
    locate_folder,
)


def test_root_is_the_enclosing_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    (tmp_path / "repository" / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    root = str(tmp_path.resolve() / "repository")
    assert locate_folder("repository/a/b") == TreePath(root, "a/b")
    assert locate_folder("repository") == TreePath(root, "")


def test_root_without_a_repository_is_the_current_folder_or_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "ab").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    assert locate_folder("b") == TreePath(str(tmp_path.resolve() / "a"), "b")
    assert locate_folder("../ab") == TreePath(str(tmp_path.resolve() / "ab"), "")


@pytest.mark.parametrize(
    ("name", "said"), [("none", "no such folder"), ("app.yaml", "-f "), ("kustomization.yaml", "pass its folder")]
)
def test_path_that_is_not_a_folder_is_an_error_with_a_hint(tmp_path: Path, name: str, said: str) -> None:
    if name != "none":
        (tmp_path / name).write_text("{}")
    with pytest.raises(UserError, match=said):
        locate_folder(str(tmp_path / name))


def test_remotes_are_read_from_the_repository_and_its_worktrees(tmp_path: Path) -> None:
    git_folder = tmp_path / "one" / ".git"
    (git_folder / "worktrees" / "two").mkdir(parents=True)
    (git_folder / "config").write_text(
        '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://host/a.git\n\tfetch = +refs/*\n[branch "main"]\n'
        '\turl = no\n[remote "other"]\n\tURL = "git@host:a"\n'
    )
    (git_folder / "worktrees" / "two" / "commondir").write_text("../..\n")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / ".git").write_text(f"gitdir: {git_folder}/worktrees/two\n")
    expected = {"origin": "https://host/a.git", "other": "git@host:a"}
    assert load_remotes(str(tmp_path / "one")) == expected
    assert load_remotes(str(tmp_path / "two")) == expected
    assert find_shared_git_folder(str(tmp_path / "two")) == git_folder.resolve()
    assert load_remotes(str(tmp_path)) == {}
