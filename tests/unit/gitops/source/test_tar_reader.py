"""Where a tar archive ends, and which ones are damaged: as for Go's archive/tar, which Argo CD unpacks charts with."""

from __future__ import annotations

import gzip
import io
import tarfile

import pytest

from argosy.errors import ArgosyError, CorruptSource, SourceError, SourceTooLarge
from argosy.gitops.source.archive_tree import read_archive
from argosy.gitops.source.charts.chart_archive import unpack_chart
from argosy.gitops.source.tar_reader import FOLDER, read_members

PATHS = ["c/Chart.yaml", "c/a.yaml", "c/b.yaml"]  # a header and a block each, then two blocks of zeros


def build_archive(paths: list[str] = PATHS, form: int = tarfile.USTAR_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for path in paths:
            header = tarfile.TarInfo(path)
            header.size = 5
            archive.addfile(header, io.BytesIO(b"hello"))
    return buffer.getvalue()[: 1024 * len(paths) + 1024] if form == tarfile.USTAR_FORMAT else buffer.getvalue()


FULL = build_archive()
WITHOUT_END = FULL[:-1024]


def change(position: int, data: bytes, *, corrects_checksum: bool = False) -> bytes:
    """Change the second header."""
    archive = bytearray(FULL)
    archive[1024 + position : 1024 + position + len(data)] = data
    if corrects_checksum:
        archive[1024 + 148 : 1024 + 156] = b" " * 8
        archive[1024 + 148 : 1024 + 156] = b"%06o\0 " % sum(archive[1024:1536])
    return bytes(archive)


def list_members(archive: bytes, max_bytes: int = 1000) -> list[str]:
    return [member.path for member in read_members(io.BytesIO(archive), max_bytes)]


@pytest.mark.parametrize(
    "archive",
    [
        FULL,
        WITHOUT_END,
        WITHOUT_END + bytes(512),
        FULL + WITHOUT_END,
        FULL + b"rubbish",
        FULL[: 2048 + 512 + 5],
        change(257, b"xxxxx\0", corrects_checksum=True),
    ],
    ids=["full", "no-end", "half-an-end", "second-archive", "rubbish-after-it", "no-padding", "no-magic"],
)
def test_archive_that_go_accepts_is_read_to_its_end(archive: bytes) -> None:
    assert list_members(archive) == PATHS


DAMAGED = {
    "name": change(3, b"X"),
    "checksum": change(148, b"Z"),
    "zeros-instead-of-a-header": change(0, bytes(512)),
    "zeros-between": WITHOUT_END + bytes(512) + WITHOUT_END,
    "cut-in-a-header": FULL[:1124],
    "cut-in-a-file": FULL[:1539],
    "size": change(124, b"9", corrects_checksum=True),
    "rubbish-instead-of-the-end": WITHOUT_END + b"rubbish",
    "cut-in-the-end": WITHOUT_END + bytes(100),
    "hard-link-with-content": change(156, b"1", corrects_checksum=True),
    "sparse": change(156, b"S", corrects_checksum=True),
}


@pytest.mark.parametrize("archive", DAMAGED.values(), ids=DAMAGED)
def test_damaged_archive_is_an_error_and_never_read_in_part(archive: bytes) -> None:
    with pytest.raises(CorruptSource):
        list_members(archive)
    with pytest.raises(CorruptSource, match="the archive of the chart cannot be unpacked"):
        unpack_chart(gzip.compress(archive), "c")
    with pytest.raises(SourceError):
        read_archive(gzip.compress(archive))


def test_damage_after_the_last_member_of_a_chart_is_found_by_the_checksum_of_gzip() -> None:
    archive = bytearray(gzip.compress(FULL))
    archive[-8] ^= 1
    with pytest.raises(CorruptSource):
        unpack_chart(bytes(archive), "c")


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_are_read_and_their_length_is_limited(form: int) -> None:
    path = "/".join(["long" * 20] * 5)
    assert list_members(build_archive([path], form)) == [path]
    with pytest.raises(SourceTooLarge, match="a name of more than"):
        list_members(build_archive(["x" * (1 << 20)], form), 2 << 20)


def test_size_of_a_file_is_limited_before_it_is_read() -> None:
    with pytest.raises(SourceTooLarge, match="more than 1000 bytes"):
        list_members(change(124, b"\x80" + bytes(3) + b"\xff" * 8, corrects_checksum=True))


def test_old_archive_names_a_folder_by_a_slash_and_a_global_header_is_ignored() -> None:
    old = change(0, b"c/a/\0\0\0\0", corrects_checksum=True)
    old = old[: 1024 + 156] + b"\0" + old[1024 + 157 :]
    with pytest.raises(CorruptSource):  # the checksum is the one of the other type
        list_members(old)
    header = bytearray(old[1024:1536])
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    member = next(read_members(io.BytesIO(bytes(header) + bytes(512)), 1000))
    assert (member.kind, member.path) == (FOLDER, "c/a/")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "a commit"}) as tar:
        tar.addfile(tarfile.TarInfo("a"))
    assert list_members(buffer.getvalue()) == ["a"]


@pytest.mark.parametrize("position", range(0, len(FULL), 41))
def test_no_changed_byte_hides_a_member(position: int) -> None:
    """A changed byte is an error, or it changes a file's content, or it is in what nobody reads."""
    archive = bytearray(FULL)
    archive[position] ^= 0x55
    try:
        paths = list_members(bytes(archive))
    except ArgosyError:
        return
    assert paths == PATHS
