"""git blame: the commit that last changed a line, and the commit that removed a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.gitops.source.git.blame import blame, find_last_change, read_blame
from support.engine import Repository

pytestmark = pytest.mark.anyio


async def test_blame_returns_the_last_commit_of_a_line(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    first = repository.push({"a.yaml": "one\ntwo\n"}, "Begin")
    second = repository.push({"a.yaml": "one\n2\n"}, "Write numbers\n\nand more")
    folder = repository.path / ".git"
    one, two = await blame(folder, second, "a.yaml", 1), await blame(folder, second, "a.yaml", 2)
    assert one and two
    assert (one.revision, one.subject) == (first, "Begin")
    assert (two.revision, two.author, two.subject) == (second, "ann@example.com", "Write numbers")
    earlier = await blame(folder, first, "a.yaml", 2)
    assert earlier and earlier.revision == first


async def test_blame_includes_changes_indented_below_the_line(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    text = "ops:\n- op: replace\n  value: 1\n- op: add\n  value: 1\nother: 1\n"
    folder = repository.path / ".git"
    first = repository.push({"a.yaml": text}, "Begin")
    lines = text.splitlines(keepends=True)
    second = await _later(repository, "".join([*lines[:2], "  value: 2\n", *lines[3:]]))
    commits = [await blame(folder, second, "a.yaml", line) for line in (1, 2, 4, 6)]
    assert [commit and commit.revision for commit in commits] == [second, second, first, first]


async def _later(repository: Repository, text: str) -> str:
    """Push a commit dated 2030, because commits within one second have no order."""
    repository.push({"a.yaml": text}, "Write 2")
    repository._git("commit", "--quiet", "--amend", "--no-edit", "--date", "2030-01-01T00:00:00Z")
    return repository.head


@pytest.mark.parametrize("revision, file, line", [("", "a.yaml", 9), ("", "b.yaml", 1), ("", "", 1), ("", "a.yaml", 0),
                                                  ("main", "a.yaml", 1), ("--all", "a.yaml", 1)])  # fmt: skip
async def test_blame_returns_none_for_invalid_input(tmp_path: Path, revision: str, file: str, line: int) -> None:
    repository = Repository(tmp_path / "repository")
    head = repository.push({"a.yaml": "one\n"})
    assert await blame(repository.path / ".git", revision or head, file, line) is None


async def test_find_last_change_returns_the_commit_that_removed_a_file(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    first = repository.push({"[a]*.yaml": "one\n", "a.yaml": "one\n"}, "Begin")
    second = repository.push({"[a]*.yaml": None}, "Take it away")
    third = repository.push({"a.yaml": "two\n"}, "Write another")
    folder = repository.path / ".git"
    commit = await find_last_change(folder, first, third, "[a]*.yaml")
    assert commit and (commit.revision, commit.author, commit.subject) == (second, "ann@example.com", "Take it away")
    assert await find_last_change(folder, second, third, "[a]*.yaml") is None
    assert await find_last_change(folder, "main", third, "a.yaml") is None


def test_read_blame_truncates_subject_and_escapes_control_characters() -> None:
    commit = read_blame(f"{'a' * 40} 1 1 1\nauthor Ann\nauthor-time 99\nsummary \x1b[31m{'x' * 200}\n\tsummary no\n")
    assert commit and commit.subject.startswith("?[31mx") and len(commit.subject) == 80
    assert read_blame("") is None and read_blame("nonsense") is None
