"""A tree as files: what is there is what the tree holds, and nothing leads out."""

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


def test_a_whole_tree_is_there_and_later_gone():
    with export_tree(TREE) as folder:
        assert names(folder) == ["a/b.yaml", "a/deep/c.yaml", "a/link", "other/d", "run.sh"]
        assert (folder / "a/link").read_text() == "d"
    assert not folder.exists()


def test_only_what_was_asked_for_is_there():
    with export_tree(TREE, ["a/deep", "other/d"]) as folder:
        assert names(folder) == ["a/deep/c.yaml", "other/d"]


def test_nothing_can_be_written_and_only_scripts_can_be_run():
    with export_tree(TREE) as folder:
        assert {stat.S_IMODE(path.stat().st_mode) & 0o222 for path in folder.rglob("*")} == {0}
        assert os.stat(folder / "run.sh").st_mode & 0o111
        assert not os.stat(folder / "a/b.yaml").st_mode & 0o111
        assert not folder.parent.stat().st_mode & 0o007


def test_an_extra_file_takes_the_place_of_the_trees():
    with export_tree(TREE, "a", extra={"a/b.yaml": b"mine", "new/e": b"e"}) as folder:
        assert (folder / "a/b.yaml").read_bytes() == b"mine"
        assert (folder / "new/e").read_bytes() == b"e"
        assert (folder / "a/deep/c.yaml").read_bytes() == b"c"


@pytest.mark.parametrize("target", ["/etc/passwd", "../../etc", "..", "x/../../..", "./../.."])
def test_a_link_that_leads_out_is_refused(target):
    with pytest.raises(RenderError, match="leads out"), export_tree(TextTree({}, {"link": target})):
        pass


def test_a_link_beside_another_cannot_lead_out_together_with_it():
    tree = TextTree({}, {"a/b/c/up": "../..", "a/x": "b/c/up/../../../../etc"})
    with pytest.raises(RenderError, match="a/x"), export_tree(tree):
        pass


@pytest.mark.parametrize("name", ["..", "a/../../b", "/etc/x"])
def test_a_name_that_leads_out_is_refused(name):
    with pytest.raises(RenderError), export_tree(TextTree({"ok": ""}), extra={name: b""}):
        pass


def test_what_is_not_there_is_named():
    with pytest.raises(RenderError, match=r"^a/none: no such file"), export_tree(TREE, "a/none"):
        pass


@pytest.mark.parametrize(
    ("limits", "said"),
    [(ExportLimits(files=2), "more than 2 files"), (ExportLimits(size=3), "MiB"), (ExportLimits(depth=0), "deep")],
)
def test_a_tree_over_a_limit_is_refused(limits, said):
    with pytest.raises(LimitError, match=said), export_tree(TREE, limits=limits):
        pass


def test_a_copy_to_work_in_can_be_changed_in_every_place():
    with export_tree(TREE, writable=True) as folder:
        for path in folder.rglob("*"):
            assert path.is_symlink() or path.stat().st_mode & 0o200
            assert os.geteuid() or path.lstat().st_uid == 65534
