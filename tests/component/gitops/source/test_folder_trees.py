"""A folder on disk as a tree."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from argosy.errors import SourceError, SourceTooLarge
from argosy.gitops.application.file_tree_protocol import TreeEntry
from argosy.gitops.source.folder_tree import FolderTree
from argosy.gitops.source.settings import SourceLimits


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


def test_ids_are_those_of_git(folder: Path) -> None:
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


def test_a_listing_names_what_is_there_by_name(folder: Path) -> None:
    entries = [(entry.name, entry.kind) for entry in FolderTree(folder).list_folder("")]
    assert entries == [
        ("base", "folder"), ("base.yaml", "file"), ("canary", "link"), ("link", "link"), ("out", "link"),
        ("run.sh", "file"),
    ]  # fmt: skip


def test_links_are_told_and_never_followed_on_disk(folder: Path) -> None:
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
def test_no_path_leads_out_of_a_folder(folder: Path, path: str) -> None:
    tree = FolderTree(folder)
    for question in (tree.find_entry, tree.list_folder, tree.read_file):
        with pytest.raises(SourceError, match="not a valid path"):
            question(path)


def test_pipes_and_sockets_are_not_there(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    tree = FolderTree(folder)
    assert tree.find_entry("pipe") is None
    with pytest.raises(SourceError):
        tree.read_file("pipe")


def test_a_listing_reads_no_file(folder: Path) -> None:
    (folder / "weights").write_bytes(b"0" * 2000)
    tree = FolderTree(folder, SourceLimits(file_bytes=1000))
    weights = next(entry for entry in tree.list_folder("") if entry.name == "weights")
    with pytest.raises(SourceTooLarge, match="larger than 1000"):
        _ = weights.id


def test_an_entry_is_equal_to_one_with_the_same_content(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "model.yaml").write_text("a: 1")
    tree = FolderTree(folder)
    one, other = tree.find_entry("base/model.yaml"), tree.find_entry("other/model.yaml")
    assert one is not None and other is not None
    assert one == other == TreeEntry("model.yaml", "file", one.id) and hash(one) == hash(other)
    name, kind, id = one
    assert (name, kind, id) == ("model.yaml", "file", one.id)
    assert tree.find_entry("base") != tree.find_entry("other") and tree.list_folder("base") == tree.list_folder("other")


def test_a_folder_that_is_too_deep_is_refused(tmp_path: Path) -> None:
    deep = tmp_path / "/".join("d" * 110)
    deep.mkdir(parents=True)
    root = FolderTree(tmp_path).find_entry("")
    assert root is not None
    with pytest.raises(SourceTooLarge, match="folders deep"):
        _ = root.id


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="not a folder"):
        FolderTree(tmp_path / "none")
