"""The checked-out branch and commit of a working tree, read from the files in .git."""

from __future__ import annotations

from pathlib import Path

from argosy.gitops.workspace.checked_out_head import CheckedOutHead, is_checked_out, read_head

ONE, TWO = "1" * 40, "2" * 40


def repository(folder: Path, head: str, **files: str) -> str:
    (folder / ".git" / "refs" / "heads").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(head)
    for name, text in files.items():
        (folder / ".git" / name.replace("__", "/").replace("_", "-")).write_text(text)
    return str(folder)


def test_read_head_finds_packed_and_loose_branches(tmp_path: Path) -> None:
    packed = f"# pack-refs with: peeled\n{ONE} refs/heads/main\n{TWO} refs/heads/main-2\n"
    root = repository(tmp_path, "ref: refs/heads/main\n", packed_refs=packed)
    assert read_head(root) == CheckedOutHead("main", ONE)
    (tmp_path / ".git" / "refs" / "heads" / "main").write_text(f"{TWO}\n")
    assert read_head(root) == CheckedOutHead("main", TWO)


def test_read_head_handles_a_detached_head_and_an_unborn_branch(tmp_path: Path) -> None:
    assert read_head(repository(tmp_path / "a", f"{ONE}\n")) == CheckedOutHead("", ONE)
    assert read_head(repository(tmp_path / "b", "ref: refs/heads/main\n")) == CheckedOutHead("main", "")
    assert read_head(str(tmp_path)) == CheckedOutHead()


def test_checked_out_commit_matches_its_branch_tag_and_hash_names(tmp_path: Path) -> None:
    packed = f"{ONE} refs/heads/main\n{TWO} refs/tags/v1\n^{ONE}\n{TWO} refs/tags/v2\n"
    root = repository(tmp_path, "ref: refs/heads/main\n", packed_refs=packed)
    names = ("", "HEAD", "main", "refs/heads/main", "v1", "refs/tags/v1", ONE, ONE[:8])
    assert [name for name in names if not is_checked_out(root, name)] == []
    others = ("other", "v2", "v9", TWO, ONE[:3], "../../HEAD", "v1.*")
    assert [name for name in others if is_checked_out(root, name)] == []
