"""The cache of commit folders keeps what is in use, within limits."""

from __future__ import annotations

import pytest

from argosy.gitops.source.git import object_reader
from argosy.gitops.source.git.object_reader import MAX_CACHED_COMMITS, FolderCache


def test_shared_folders_stay_cached_and_old_roots_are_evicted() -> None:
    folders = FolderCache()
    folders.store("shared", {"deployment.yaml": 1})
    for number in range(10 * MAX_CACHED_COMMITS):
        folders.store(f"root of {number}", {str(index): 1 for index in range(100)}, is_root=True)
        assert folders.get("shared") == {"deployment.yaml": 1}
        assert folders.get(f"root of {number}") is not None
    assert len(folders) <= 2 * MAX_CACHED_COMMITS + 1
    assert folders.get("root of 0") is None


def test_first_read_of_a_large_commit_evicts_none_of_its_folders() -> None:
    folders = FolderCache()
    folders.store("root", {}, is_root=True)
    for number in range(5000):
        folders.store(f"folder {number}", {"a": 1})
    assert len(folders) == 5001 and folders.get("folder 0") is not None


def test_cached_entries_never_exceed_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_reader, "MAX_CACHED_ENTRIES", 10)
    folders = FolderCache()
    for number in range(100):
        folders.store(f"folder {number}", {"a": 1, "b": 2})
    assert len(folders) <= 5
