"""Export of a tree as files: the files are those of the tree, and no path leads out."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from argosy.errors import LimitError, RenderError
from argosy.gitops.render.tree_export import ExportLimits, export_tree
from support.file_trees import TextTree

TREE = TextTree(
    {"a/b.yaml": "b", "a/deep/c.yaml": "c", "other/d": "d", "run.sh": "#!/bin/sh\n"}, {"a/link": "../other/d"}
)


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def test_whole_tree_is_exported_and_removed_afterwards():
    with export_tree(TREE) as folder:
        assert names(folder) == ["a/b.yaml", "a/deep/c.yaml", "a/link", "other/d", "run.sh"]
        assert (folder / "a/link").read_text() == "d"
    assert not folder.exists()


def test_only_requested_paths_are_exported():
    with export_tree(TREE, ["a/deep", "other/d"]) as folder:
        assert names(folder) == ["a/deep/c.yaml", "other/d"]


def test_exported_files_are_read_only_and_only_scripts_are_executable():
    with export_tree(TREE) as folder:
        assert {stat.S_IMODE(path.stat().st_mode) & 0o222 for path in folder.rglob("*")} == {0}
        assert os.stat(folder / "run.sh").st_mode & 0o111
        assert not os.stat(folder / "a/b.yaml").st_mode & 0o111
        assert not folder.parent.stat().st_mode & 0o007


def test_extra_file_replaces_the_file_of_the_tree():
    with export_tree(TREE, "a", extra={"a/b.yaml": b"mine", "new/e": b"e"}) as folder:
        assert (folder / "a/b.yaml").read_bytes() == b"mine"
        assert (folder / "new/e").read_bytes() == b"e"
        assert (folder / "a/deep/c.yaml").read_bytes() == b"c"


@pytest.mark.parametrize("target", ["/etc/passwd", "../../etc", "..", "x/../../..", "./../.."])
def test_symlink_that_leads_out_is_refused(target):
    with pytest.raises(RenderError, match="leads out"), export_tree(TextTree({}, {"link": target})):
        pass


def test_symlinks_that_lead_out_together_are_refused():
    tree = TextTree({}, {"a/b/c/up": "../..", "a/x": "b/c/up/../../../../etc"})
    with pytest.raises(RenderError, match="a/x"), export_tree(tree):
        pass


@pytest.mark.parametrize("name", ["..", "a/../../b", "/etc/x"])
def test_extra_file_name_that_leads_out_is_refused(name):
    with pytest.raises(RenderError), export_tree(TextTree({"ok": ""}), extra={name: b""}):
        pass


def test_missing_path_is_named():
    with pytest.raises(RenderError, match=r"^a/none: no such file"), export_tree(TREE, "a/none"):
        pass


@pytest.mark.parametrize(
    ("limits", "said"),
    [(ExportLimits(files=2), "more than 2 files"), (ExportLimits(size=3), "MiB"), (ExportLimits(depth=0), "deep")],
)
def test_tree_over_a_limit_is_refused(limits, said):
    with pytest.raises(LimitError, match=said), export_tree(TREE, limits=limits):
        pass


def test_writable_export_is_writable_everywhere():
    with export_tree(TREE, writable=True) as folder:
        for path in folder.rglob("*"):
            assert path.is_symlink() or path.stat().st_mode & 0o200
            assert os.geteuid() or path.lstat().st_uid == 65534
