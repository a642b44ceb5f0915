"""The folder of downloaded charts stays within its limits; the files that were used last stay."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from argosy.gitops.source.charts import chart_cache
from argosy.gitops.source.charts.chart_cache import ChartCache


def make_older(path: Path) -> None:
    os.utime(path, ns=(1, path.stat().st_mtime_ns))


def test_least_recently_used_file_is_deleted_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_cache, "MAX_CACHE_BYTES", 30)
    cache = ChartCache(tmp_path / "charts")
    first, second = cache.store("a", b"a" * 10), cache.store("b", b"b" * 10)
    make_older(first)
    make_older(second)
    assert cache.find("a") == first and cache.find("none") is None
    cache.store("c", b"c" * 20)
    assert sorted(path.name for path in cache.folder.iterdir()) == ["a", "c"]


def test_number_of_files_is_limited_and_the_new_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_cache, "MAX_CACHE_FILES", 1)
    monkeypatch.setattr(chart_cache, "MAX_CACHE_BYTES", 5)
    cache = ChartCache(tmp_path)
    for name in "abc":
        cache.store(name, b"x" * 10)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_partial_file_of_a_killed_process_is_deleted_later(tmp_path: Path) -> None:
    stale, current = tmp_path / ".partial-old", tmp_path / ".partial-new"
    for path in (stale, current):
        path.write_bytes(b"x")
    os.utime(stale, (1, 1))
    ChartCache(tmp_path).store("a", b"x")
    assert not stale.exists() and current.exists()


def test_replacing_a_file_changes_its_identity_and_using_it_does_not(tmp_path: Path) -> None:
    cache = ChartCache(tmp_path)
    before = cache.store("a", b"1").stat().st_mtime_ns
    path = cache.find("a")
    assert path is not None and path.stat().st_mtime_ns == before
    os.utime(path, ns=(1, 1))
    assert cache.store("a", b"2").stat().st_mtime_ns != 1
