"""Archives of charts: the file tree, and what a hostile archive cannot do."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import tarfile
from pathlib import Path

import pytest

from argosy.errors import CorruptSource, SourceError, SourceTooLarge, SourceUnreachable
from argosy.gitops.source.charts import chart_archive
from argosy.gitops.source.charts.chart_archive import ChartTree, check_archive, open_chart, unpack_chart
from support.chart_server import chart_files, pack


def tree(tmp_path: Path, archive: bytes, chart: str = "shop") -> ChartTree:
    path = tmp_path / "chart.tgz"
    path.write_bytes(archive)
    return open_chart(path, chart)


def with_member(name: str, type: bytes, link: str = "") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = type, link
        tar.addfile(member)
    return buffer.getvalue()


def test_tree_has_the_files_of_the_chart_without_its_folder(tmp_path: Path) -> None:
    chart = tree(tmp_path, pack({**chart_files("shop", "1.0.0"), "b/c": "x"}, "shop"))
    assert [(entry.name, entry.kind) for entry in chart.list_folder("")] == [
        ("Chart.yaml", "file"), ("b", "folder"), ("templates", "folder"), ("values.yaml", "file"),
    ]  # fmt: skip
    assert chart.read_file("b/c") == b"x" and chart.list_folder("b/c") == ()
    entry = chart.find_entry("b/c")
    assert entry is not None and (entry.name, entry.kind) == ("c", "file")
    assert chart.find_entry("b/d") is None and chart.find_entry("values.yaml/x") is None
    with pytest.raises(SourceError, match="no such file"):
        chart.read_file("b/d")
    with pytest.raises(SourceError, match="is a folder"):
        chart.read_file("b")


def test_equal_content_has_equal_ids_in_any_archive(tmp_path: Path) -> None:
    first, second = pack({"a/x": "1", "b": "2"}, "shop"), pack({"b": "3", "a/x": "1"}, "shop")
    left, right = tree(tmp_path, first), tree(tmp_path / "..", second)
    assert left.find_entry("a") == right.find_entry("a") and left.find_entry("b") != right.find_entry("b")
    assert left.id != right.id


def test_folder_of_the_chart_is_found_by_name_or_is_the_only_one() -> None:
    assert "Chart.yaml" in unpack_chart(pack({"Chart.yaml": "{}"}, "other"), "shop")
    archive = pack({"shop/Chart.yaml": "{}", "more/README": "", "._shop": ""})
    assert list(unpack_chart(archive, "shop")) == ["Chart.yaml"]
    with pytest.raises(CorruptSource, match="no folder none"):
        unpack_chart(archive, "none")


def test_tree_in_another_process_reads_the_archive_again(tmp_path: Path) -> None:
    chart = tree(tmp_path, pack({"a": "1" * 1000}, "shop"))
    chart.read_file("a")
    content = pickle.dumps(chart)
    assert len(content) < 500 and pickle.loads(content).read_file("a") == b"1" * 1000


def test_archive_that_is_gone_is_retried_later(tmp_path: Path) -> None:
    chart = tree(tmp_path, pack({"a": "1"}, "shop"))
    Path(chart.key.path).unlink()
    with pytest.raises(SourceUnreachable, match="was removed from the cache"):
        chart.read_file("a")


def test_damaged_archive_in_the_cache_is_removed_and_fetched_again_later(tmp_path: Path) -> None:
    chart = tree(tmp_path, pack({"a": "1"}, "shop"))
    path = Path(chart.key.path)
    path.write_bytes(bytes(chart.key.size))
    os.utime(path, ns=(chart.key.mtime_ns, chart.key.mtime_ns))
    with pytest.raises(SourceUnreachable, match="was damaged and is removed; argosy fetches it again"):
        chart.read_file("a")
    assert not path.exists()


def test_link_in_the_folder_is_a_link() -> None:
    folder = unpack_chart(with_member("shop/a/b", tarfile.SYMTYPE, "../c"), "shop")
    assert folder["a"]["b"].kind == "link" and folder["a"]["b"].content == b"../c"  # type: ignore[union-attr, index]


@pytest.mark.parametrize(
    "archive",
    [
        with_member("shop/a", tarfile.SYMTYPE, "../../etc/passwd"),
        with_member("shop/a", tarfile.SYMTYPE, "/etc/passwd"),
        with_member("shop/a", tarfile.SYMTYPE, "../other/a"),
        with_member("shop/a", tarfile.SYMTYPE, "b/../../a"),
        with_member("shop/a", tarfile.LNKTYPE, "shop/b"),
        with_member("shop/a", tarfile.FIFOTYPE),
        with_member("shop/a", tarfile.CHRTYPE),
        pack({"../a": ""}, "shop"),
        pack({"a": ""}, "/shop"),
        pack({"shop/a": "", "shop/a/b": ""}),
        pack({"shop/a/b": "", "shop/a": ""}),
        b"<html>",
        b"",
        pack({"a": "x" * 10_000}, "shop")[:-30],
        gzip.compress(b"x" * 2000),
    ],
    ids=[
        *("link-up", "absolute-link", "link-beside", "link-through", "hard-link", "pipe", "device"),
        *("up", "absolute", "file-then-folder", "folder-then-file", "html", "empty", "cut", "no-tar"),
    ],
)
def test_archive_with_links_or_files_outside_or_with_damage_is_rejected(archive: bytes) -> None:
    with pytest.raises(CorruptSource):
        unpack_chart(archive, "shop")


def test_archive_that_unpacks_to_too_much_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_archive, "MAX_UNPACKED_BYTES", 100_000)
    archive = pack({"a": "0" * 200_000}, "shop")
    assert len(archive) < 1000
    with pytest.raises(SourceTooLarge, match="unpacks to more than 100000 bytes"):
        unpack_chart(archive, "shop")


def test_archive_with_too_many_or_too_deep_files_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_archive, "MAX_FILES", 3)
    with pytest.raises(SourceTooLarge, match="more than 3 files and folders"):
        unpack_chart(pack(dict.fromkeys("abc", ""), "shop"), "shop")
    with pytest.raises(SourceTooLarge, match="more than 3 files and folders"):  # of which a path is enough
        unpack_chart(pack({"a/b/c": ""}, "shop"), "shop")
    with pytest.raises(SourceTooLarge, match="levels of folders"):
        unpack_chart(pack({"a/" * 101 + "b": ""}, "shop"), "shop")


def test_archive_without_a_chart_is_rejected() -> None:
    with pytest.raises(CorruptSource, match=r"has no Chart\.yaml"):
        check_archive(pack({"values.yaml": ""}, "shop"), "library/shop")
    check_archive(pack(chart_files("shop", "1.0.0"), "shop"), "library/shop")


def test_folders_of_charts_that_are_kept_unpacked_are_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[str] = []

    def unpack(archive: bytes, folder: str) -> object:
        unpacked.append(folder)
        return unpack_chart(archive, folder)

    monkeypatch.setattr(chart_archive, "unpack_chart", unpack)
    monkeypatch.setattr(chart_archive, "MAX_LOADED_BYTES", 100_000)
    charts = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        charts.append(tree(tmp_path / name, pack({"/".join("abcdefghij" * 9) + "/x": ""}, name), name))
    for chart in (*charts, *charts):  # 90 folders take more than half of the memory
        assert chart.find_entry("a") is not None
    assert unpacked == ["first", "second", "first", "second"]
