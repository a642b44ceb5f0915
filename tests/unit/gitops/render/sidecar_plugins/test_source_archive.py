"""The archive that plug-ins get: a large repository fits, and a larger one is an error that names the setting."""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from argosy.errors import LimitError
from argosy.gitops.application.file_tree_protocol import TreeEntry
from argosy.gitops.render.sidecar_plugins import source_archive
from argosy.gitops.render.sidecar_plugins.source_archive import write_archive
from argosy.gitops.render.tree_export import ExportLimits
from support.file_trees import TextTree

SETTING = r"leave some out with reposerver\.plugin\.tar\.exclusions in argocd-cmd-params-cm"


class LargeRepository:
    """Implements `FileTree`: more files than a program of another tool may get."""

    id = ""

    def __init__(self, folders: int, files: int) -> None:
        self.folders, self.files = folders, files

    def find_entry(self, path: str) -> TreeEntry | None:
        return TreeEntry(path.rpartition("/")[2], "file", "") if "/" in path else TreeEntry(path, "folder", "")

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        if path:
            return [TreeEntry(f"{number}.yaml", "file", "") for number in range(self.files)]
        return [TreeEntry(f"team-{number}", "folder", "") for number in range(self.folders)]

    def read_file(self, path: str) -> bytes:
        return b"a: 1\n"


def test_repository_with_more_files_than_other_programs_may_get_is_packed(tmp_path: Path) -> None:
    tree = LargeRepository(folders=3, files=7_000)
    archive = write_archive(tree, "", tmp_path / "all.tgz")
    with tarfile.open(archive.file) as packed:
        assert sum(member.isfile() for member in packed) == 21_000 > ExportLimits().files


@pytest.mark.parametrize(
    ("limits", "archive_bytes", "problem"),
    [
        (ExportLimits(files=2), 1 << 20, "the plug-in would get more than 2 files and folders"),
        (ExportLimits(size=1), 1 << 20, "the files for the plug-in exceed 0 MiB"),
        (ExportLimits(depth=0), 1 << 20, "folders are nested more than 0 deep"),
        (ExportLimits(), 10, "the archive of the files for plug-ins exceeds 0 MiB"),
    ],
)
def test_larger_repository_is_an_error_that_names_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: ExportLimits, archive_bytes: int, problem: str
) -> None:
    monkeypatch.setattr(source_archive, "LIMITS", limits)
    monkeypatch.setattr(source_archive, "MAX_ARCHIVE_BYTES", archive_bytes)
    tree = TextTree({"app/a/x.yaml": "a: 1", "other/y.yaml": "b: 1", "z.yaml": "c: 1"})
    with pytest.raises(LimitError, match=f"{problem}; {SETTING}"):
        write_archive(tree, "", tmp_path / "all.tgz")
    monkeypatch.setattr(source_archive, "MAX_ARCHIVE_BYTES", 1 << 20)
    assert write_archive(TextTree({"a": ""}), "", tmp_path / "small.tgz").size > 0


def test_files_that_the_setting_leaves_out_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_archive, "LIMITS", ExportLimits(files=2))
    tree = TextTree({"app/x.yaml": "a: 1", "data/1": "", "data/2": "", "data/3": ""})
    assert write_archive(tree, "", tmp_path / "all.tgz", ("data",)).size > 0
