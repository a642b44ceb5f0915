"""A tree as files: what is there is what the tree holds, and nothing leads out."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from argosy.model.errors import LimitError, RenderError, SourceError
from argosy.model.tree import TreeEntry
from argosy.render.exporting import ExportLimits, exported


class Files:
    """A tree of texts; a link is a text that starts with `-> `."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def _kind(self, path: str):
        if path in self._files:
            return "link" if self._files[path].startswith("-> ") else "file"
        return "folder" if any(each.startswith(f"{path}/") for each in self._files) else None

    def entry(self, path: str):
        kind = self._kind(path)
        return TreeEntry(path.rpartition("/")[2], kind, "id") if kind else None

    def listing(self, path: str):
        start = f"{path}/" if path else ""
        names = {each[len(start) :].partition("/")[0] for each in self._files if each.startswith(start)}
        return [self.entry(start + name) for name in sorted(names)]

    def read(self, path: str) -> bytes:
        if path not in self._files:
            raise SourceError("nothing there", where=path)
        return self._files[path].removeprefix("-> ").encode()


TREE = Files(
    {"a/b.yaml": "b", "a/deep/c.yaml": "c", "other/d": "d", "run.sh": "#!/bin/sh\n", "a/link": "-> ../other/d"}
)


def names(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if not each.is_dir())


def test_a_whole_tree_is_there_and_later_gone():
    with exported(TREE) as folder:
        assert names(folder) == ["a/b.yaml", "a/deep/c.yaml", "a/link", "other/d", "run.sh"]
        assert (folder / "a/link").read_text() == "d"
    assert not folder.exists()


def test_only_what_was_asked_for_is_there():
    with exported(TREE, ["a/deep", "other/d"]) as folder:
        assert names(folder) == ["a/deep/c.yaml", "other/d"]


def test_nothing_can_be_written_and_only_scripts_can_be_run():
    with exported(TREE) as folder:
        assert {stat.S_IMODE(each.stat().st_mode) & 0o222 for each in folder.rglob("*")} == {0}
        assert os.stat(folder / "run.sh").st_mode & 0o111
        assert not os.stat(folder / "a/b.yaml").st_mode & 0o111
        assert not folder.stat().st_mode & 0o007


def test_an_extra_file_takes_the_place_of_the_trees():
    with exported(TREE, "a", extra={"a/b.yaml": b"mine", "new/e": b"e"}) as folder:
        assert (folder / "a/b.yaml").read_bytes() == b"mine"
        assert (folder / "new/e").read_bytes() == b"e"
        assert (folder / "a/deep/c.yaml").read_bytes() == b"c"


@pytest.mark.parametrize("target", ["/etc/passwd", "../../etc", "..", "x/../../..", "./../.."])
def test_a_link_that_leads_out_is_refused(target):
    with pytest.raises(RenderError, match="leads out"), exported(Files({"link": f"-> {target}"})):
        pass


def test_a_link_beside_another_cannot_lead_out_together_with_it():
    tree = Files({"a/b/c/up": "-> ../..", "a/x": "-> b/c/up/../../../../etc"})
    with pytest.raises(RenderError, match="a/x"), exported(tree):
        pass


@pytest.mark.parametrize("name", ["..", "a/../../b", "/etc/x"])
def test_a_name_that_leads_out_is_refused(name):
    with pytest.raises(RenderError), exported(Files({"ok": ""}), extra={name: b""}):
        pass


def test_what_is_not_there_is_named():
    with pytest.raises(RenderError, match=r"^a/none: there is no such file"), exported(TREE, "a/none"):
        pass


@pytest.mark.parametrize(
    ("limits", "said"),
    [(ExportLimits(files=2), "more than 2 files"), (ExportLimits(size=3), "MiB"), (ExportLimits(depth=0), "deep")],
)
def test_a_tree_over_a_limit_is_refused(limits, said):
    with pytest.raises(LimitError, match=said), exported(TREE, limits=limits):
        pass
