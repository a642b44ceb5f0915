"""A commit overlaid with working tree edits equals a commit of those edits; reading changes nothing in .git."""

from __future__ import annotations

import asyncio
import os
import pickle
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest

from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.source.folder_tree import FolderTree
from argosy.gitops.source.git.local_repository import LocalRepository
from argosy.gitops.source.git.working_tree_overlay import WorkingTreeOverlay

NAMES = ("a", "b", "c.yaml", "ö.txt", "d e")


def git(root: Path, *words: str) -> str:
    who = ["-c", "user.name=ann", "-c", "user.email=ann@example.com"]
    return subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    return tmp_path


def commit(root: Path) -> str:
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "a commit")
    return git(root, "rev-parse", "HEAD")


def history(root: Path) -> LocalRepository:
    return LocalRepository(root, root / ".git", root / ".git")


def contents(tree: FileTree, folder: str = "") -> dict[str, bytes | None]:
    """Return all files reachable by listings, and check that entry lookups agree."""
    content_by_path: dict[str, bytes | None] = {}
    for entry in tree.list_folder(folder):
        path = f"{folder}/{entry.name}" if folder else entry.name
        looked_up_entry = tree.find_entry(path)
        assert looked_up_entry is not None and (looked_up_entry.name, looked_up_entry.kind) == (entry.name, entry.kind)
        if entry.kind == "folder":
            content_by_path |= contents(tree, path)
        else:
            assert looked_up_entry.id == entry.id
            content_by_path[f"{path} {entry.kind} {entry.id}"] = tree.read_file(path)
    return content_by_path


def scramble(root: Path, chance: Random) -> None:
    for _ in range(chance.randint(1, 6)):
        path = root.joinpath(*(chance.choice(NAMES) for _ in range(chance.randint(1, 3))))
        above = path.parent
        while above != root:
            if above.is_file() or above.is_symlink():
                above.unlink()
            above = above.parent
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)
        roll = chance.random()
        if roll < 0.6:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(chance.randbytes(chance.randint(0, 20)))
        elif roll < 0.75:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.symlink(chance.choice(NAMES), path)


@pytest.mark.parametrize("seed", range(12))
def test_overlay_of_edits_equals_a_commit_of_the_edits(root: Path, seed: int) -> None:
    chance = Random(seed)
    for _ in range(4):
        scramble(root, chance)
    (root / "kept").write_text("kept")
    before = commit(root)
    for _ in range(3):
        scramble(root, chance)
    repository = history(root)
    try:
        changed = asyncio.run(repository.list_changed_files(before))
        laid = WorkingTreeOverlay(asyncio.run(repository.load_tree(before)), FolderTree(root), changed)
        overlay_contents = contents(laid)
        after = commit(root)
        assert overlay_contents == contents(asyncio.run(repository.load_tree(after)))
        assert sorted(changed) == sorted(asyncio.run(repository.list_changed_files(before, after)))
    finally:
        repository.close()


def test_working_tree_overlay_can_be_pickled(root: Path) -> None:
    (root / "a.yaml").write_text("a: 1\n")
    before = commit(root)
    (root / "b.yaml").write_text("b: 1\n")
    repository = history(root)
    laid = WorkingTreeOverlay(
        asyncio.run(repository.load_tree(before)), FolderTree(root), asyncio.run(repository.list_changed_files(before))
    )
    copied = pickle.loads(pickle.dumps(laid))
    assert (copied.read_file("a.yaml"), copied.read_file("b.yaml")) == (b"a: 1\n", b"b: 1\n")
    copied.base.objects.close()
    repository.close()


def test_git_ignored_files_are_not_in_the_overlay(root: Path) -> None:
    (root / ".gitignore").write_text("*.log\n")
    before = commit(root)
    (root / "a.log").write_text("a")
    repository = history(root)
    laid = WorkingTreeOverlay(
        asyncio.run(repository.load_tree(before)), FolderTree(root), asyncio.run(repository.list_changed_files(before))
    )
    assert laid.find_entry("a.log") is None and [entry.name for entry in laid.list_folder("")] == [".gitignore"]
    repository.close()


def test_missing_object_raises_error_without_changing_the_repository(root: Path) -> None:
    (root / "a.yaml").write_text("a: 1\n")
    before = commit(root)
    blob = git(root, "rev-parse", "HEAD:a.yaml")
    (root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    files = sorted((root / ".git").rglob("*"))
    repository = history(root)
    with pytest.raises(Exception, match="in this clone; run git fetch --unshallow"):
        asyncio.run(repository.load_tree(before)).read_file("a.yaml")
    repository.close()
    assert sorted((root / ".git").rglob("*")) == files
