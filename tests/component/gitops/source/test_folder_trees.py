"""FolderTree: a folder on disk as a file tree."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from argosy.errors import SourceError, SourceTooLarge
from argosy.gitops.application.file_tree_protocol import TreeEntry
from argosy.gitops.source.folder_tree import FolderTree
from argosy.gitops.source.repository_access_settings import SourceLimits


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    (path / "base").mkdir(parents=True)
    (path / "base" / "model.yaml").write_text("a: 1")
    (path / "base.yaml").write_text("b: 2")
    (path / "run.sh").write_text("#!/bin/sh")
    (path / "run.sh").chmod(0o755)
    (path / "link").symlink_to("base")
    (path / "out").symlink_to("/etc")
    (tmp_path / "canary").write_text("secret")
    (path / "canary").symlink_to("../canary")
    return path


def test_entry_ids_match_git_object_ids(folder: Path) -> None:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    for arguments in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", folder, *arguments], check=True, env=env)
    result = subprocess.run(["git", "-C", folder, "write-tree"], check=True, env=env, capture_output=True, text=True)
    tree = FolderTree(folder)
    root = tree.find_entry("")
    assert root is not None and root.id == result.stdout.strip()
    assert ".git" not in {entry.name for entry in tree.list_folder("")}
    assert tree.find_entry(".git") is None and tree.find_entry(".git/HEAD") is None
    with pytest.raises(SourceError):
        tree.read_file(".git/HEAD")


def test_list_folder_returns_entries_sorted_by_name(folder: Path) -> None:
    entries = [(entry.name, entry.kind) for entry in FolderTree(folder).list_folder("")]
    assert entries == [
        ("base", "folder"), ("base.yaml", "file"), ("canary", "link"), ("link", "link"), ("out", "link"),
        ("run.sh", "file"),
    ]  # fmt: skip


def test_symlinks_are_listed_but_never_followed(folder: Path) -> None:
    tree = FolderTree(folder)
    assert tree.read_file("canary") == b"../canary"
    assert tree.read_file("out") == b"/etc"
    assert (
        tree.find_entry("out/passwd") is None
        and tree.list_folder("out") == ()
        and tree.find_entry("link/model.yaml") is None
    )
    with pytest.raises(SourceError, match="no such file"):
        tree.read_file("out/passwd")


@pytest.mark.parametrize("path", ["..", "../canary", "base/../../canary", "/etc/passwd", "a\0"])
def test_paths_out_of_the_folder_are_rejected(folder: Path, path: str) -> None:
    tree = FolderTree(folder)
    for question in (tree.find_entry, tree.list_folder, tree.read_file):
        with pytest.raises(SourceError, match="not a valid path"):
            question(path)


def test_fifo_is_not_an_entry(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    tree = FolderTree(folder)
    assert tree.find_entry("pipe") is None
    with pytest.raises(SourceError):
        tree.read_file("pipe")


def test_list_folder_does_not_read_files(folder: Path) -> None:
    (folder / "weights").write_bytes(b"0" * 2000)
    tree = FolderTree(folder, SourceLimits(file_bytes=1000))
    weights = next(entry for entry in tree.list_folder("") if entry.name == "weights")
    with pytest.raises(SourceTooLarge, match="larger than 1000"):
        _ = weights.id


def test_entries_with_the_same_content_are_equal(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "model.yaml").write_text("a: 1")
    tree = FolderTree(folder)
    one, other = tree.find_entry("base/model.yaml"), tree.find_entry("other/model.yaml")
    assert one is not None and other is not None
    assert one == other == TreeEntry("model.yaml", "file", one.id) and hash(one) == hash(other)
    assert tuple(one) == ("model.yaml", "file", one.id, False)
    assert tree.find_entry("base") != tree.find_entry("other") and tree.list_folder("base") == tree.list_folder("other")


def test_folder_nested_too_deep_raises_source_too_large(tmp_path: Path) -> None:
    deep = tmp_path / "/".join("d" * 110)
    deep.mkdir(parents=True)
    root = FolderTree(tmp_path).find_entry("")
    assert root is not None
    with pytest.raises(SourceTooLarge, match="folders deep"):
        _ = root.id


def test_missing_folder_raises_source_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="not a folder"):
        FolderTree(tmp_path / "none")
