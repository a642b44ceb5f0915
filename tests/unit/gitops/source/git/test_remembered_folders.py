"""Folders of commits are remembered as long as somebody asks for them, and not for ever."""

from __future__ import annotations

import pytest

from argosy.gitops.source.git import object_reader
from argosy.gitops.source.git.object_reader import MAX_CACHED_COMMITS, FolderCache


def test_what_each_commit_shares_stays_and_what_each_replaces_goes() -> None:
    folders = FolderCache()
    folders.store("shared", {"deployment.yaml": 1})
    for number in range(10 * MAX_CACHED_COMMITS):
        folders.store(f"root of {number}", {str(index): 1 for index in range(100)}, is_root=True)
        assert folders.get("shared") == {"deployment.yaml": 1}
        assert folders.get(f"root of {number}") is not None
    assert len(folders) <= 2 * MAX_CACHED_COMMITS + 1
    assert folders.get("root of 0") is None


def test_a_first_look_at_a_large_commit_forgets_nothing_of_it() -> None:
    folders = FolderCache()
    folders.store("root", {}, is_root=True)
    for number in range(5000):
        folders.store(f"folder {number}", {"a": 1})
    assert len(folders) == 5001 and folders.get("folder 0") is not None


def test_there_are_never_more_entries_than_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_reader, "MAX_CACHED_ENTRIES", 10)
    folders = FolderCache()
    for number in range(100):
        folders.store(f"folder {number}", {"a": 1, "b": 2})
    assert len(folders) <= 5
