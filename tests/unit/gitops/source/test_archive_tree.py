"""Archives that a client sends become trees in memory; those that are hostile are refused."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import SourceError
from argosy.gitops.source import archive_tree
from argosy.gitops.source.archive_tree import MAX_ARCHIVE_BYTES, MAX_DEPTH, MAX_UNPACKED_BYTES, read_archive
from argosy.gitops.source.folder_tree import FolderTree

LONG = "/".join(["folder" * 10] * 6) + "/a file with a long näme.yaml"


def build_member(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, target: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, target, len(content)
    return member, content


def pack(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=form) as archive:
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_files_folders_and_links_are_read(form: int) -> None:
    long = LONG if form != tarfile.USTAR_FORMAT else "d" * 90 + "/" + "f" * 90
    data = pack(
        build_member(".", kind=tarfile.DIRTYPE),
        build_member("./app/", kind=tarfile.DIRTYPE),
        build_member("app/a.yaml", b"a: 1\n" * 1000),
        build_member("/b.yaml", b""),
        build_member("empty", kind=tarfile.DIRTYPE),
        build_member("app/link", kind=tarfile.SYMTYPE, target="../b.yaml"),
        build_member(long, b"deep"),
        build_member("pipe", kind=tarfile.FIFOTYPE),
        form=form,
    )
    tree = read_archive(data)
    assert [(entry.name, entry.kind) for entry in tree.list_folder("app")] == [("a.yaml", "file"), ("link", "link")]
    assert {entry.name for entry in tree.list_folder("")} == {"app", "b.yaml", "empty", long.split("/")[0]}
    assert (tree.read_file("app/a.yaml"), tree.read_file("b.yaml")) == (b"a: 1\n" * 1000, b"")
    assert (tree.read_file("app/link"), tree.read_file(long)) == (b"../b.yaml", b"deep")
    assert [tree.find_entry(path) is None for path in ("", "app", "none", "app/none", "pipe")] == [
        False, False, True, True, True
    ]  # fmt: skip
    assert tree.list_folder("none") == tree.list_folder("b.yaml") == ()


def test_ids_are_equal_if_the_content_is() -> None:
    one = read_archive(pack(build_member("a/x", b"1"), build_member("b/x", b"1"), build_member("c/x", b"2")))
    entries = [one.find_entry(path) for path in "abc"]
    assert entries[0] is not None and entries[1] is not None and entries[2] is not None
    assert entries[0].id == entries[1].id != entries[2].id


@pytest.mark.parametrize("path", ["none", "a", "../a", "/a", "a/../b"])
def test_paths_that_are_no_files_cannot_be_read(path: str) -> None:
    with pytest.raises(SourceError):
        read_archive(pack(build_member("a/b", b"1"))).read_file(path)


@pytest.mark.parametrize(("members", "problem"), [
    ([build_member("../a", b"x")], "path with .."),
    ([build_member("a/../../b", b"x")], "path with .."),
    ([build_member("link", kind=tarfile.SYMTYPE, target="../outside")], "out-of-bounds symlinks. file: link"),
    ([build_member("a/link", kind=tarfile.SYMTYPE, target="../../outside")], "out-of-bounds symlinks"),
    ([build_member("link", kind=tarfile.SYMTYPE, target="/etc/passwd")], "out-of-bounds symlinks"),
    ([build_member("up", kind=tarfile.SYMTYPE, target="."), build_member("up/a", b"x")], "no folder"),
    ([build_member("a", b"x"), build_member("a/b", b"x")], "no folder"),
    ([build_member("a/b", b"x"), build_member("a", b"x")], "more than once"),
    ([build_member("a", b"x"), build_member("a", kind=tarfile.SYMTYPE, target="b")], "more than once"),
    ([build_member("a/" * (MAX_DEPTH + 1) + "b", b"x")], "move the files up"),
    ([build_member("a" * 5000, b"x")], "move the files up"),
])  # fmt: skip
def test_a_hostile_archive_is_refused(members: list[tuple[tarfile.TarInfo, bytes]], problem: str) -> None:
    with pytest.raises(SourceError, match=problem):
        read_archive(pack(*members))


def test_a_bomb_is_not_unpacked() -> None:
    with pytest.raises(SourceError, match=f"more than {MAX_UNPACKED_BYTES} bytes unpacked"):
        read_archive(gzip.compress(bytes(MAX_UNPACKED_BYTES + 1)))
    with pytest.raises(SourceError, match=f"larger than {MAX_ARCHIVE_BYTES} bytes"):
        read_archive(bytes(MAX_ARCHIVE_BYTES + 1))


def test_files_and_the_folders_around_them_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_tree, "MAX_ENTRIES", 100)
    members = [build_member(f"{number}/" * 60 + "file") for number in range(3)]
    with pytest.raises(SourceError, match="more than 100 files and folders"):
        read_archive(pack(*members))
    read_archive(pack(*[build_member(f"a/{number}", b"x") for number in range(90)]))


def test_members_that_repeat_a_path_or_are_ignored_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_tree, "MAX_ENTRIES", 100)
    for member in (build_member("a/b", b"x"), build_member("a/b", kind=tarfile.DIRTYPE), build_member(".")):
        read_archive(pack(*[member] * 100))
        with pytest.raises(SourceError, match="more than 100 files and folders"):
            read_archive(pack(*[member] * 101))
    with pytest.raises(SourceError, match="more than 100 files and folders"):
        read_archive(pack(*[build_member("pipe", kind=tarfile.FIFOTYPE)] * 101))


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "no gzip": gzip.decompress,
    "truncated gzip": lambda data: data[:-10],
    "something after it": lambda data: data + b"x",
    "two archives": lambda data: data + data,
    "truncated tar": lambda data: gzip.compress(gzip.decompress(data)[:520]),
    "wrong checksum": lambda data: gzip.compress(b"x" + gzip.decompress(data)[1:]),
    "no tar": lambda data: gzip.compress(b"x" * 1024),
    "no UTF-8": lambda data: pack_name(b"\xff"),
}


def pack_name(name: bytes) -> bytes:
    header = bytearray(gzip.decompress(pack(build_member("a", b"x"))))
    header[: len(name)] = name
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header[:512])
    return gzip.compress(bytes(header))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_archive_is_refused(name: str) -> None:
    with pytest.raises(SourceError):
        read_archive(BROKEN[name](pack(build_member("a", b"xyz" * 1000))))


@given(st.binary(max_size=2000), st.integers(0, 3000))
def test_anything_is_read_or_refused(junk: bytes, position: int) -> None:
    data = bytearray(gzip.decompress(pack(build_member(LONG, b"x" * 100), build_member("b", b"y"))))
    data[position : position + len(junk)] = junk
    try:
        tree = read_archive(gzip.compress(bytes(data), 1))
    except SourceError:
        return
    for entry in tree.list_folder(""):
        assert tree.find_entry(entry.name) == entry


@settings(max_examples=30)
@given(st.dictionaries(st.from_regex(r"(D[a-z]?/)?[a-z]{1,2}", fullmatch=True), st.binary(max_size=50), max_size=8))
def test_an_archive_of_a_folder_has_what_the_folder_has(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    folder = tmp_path_factory.mktemp("folder")
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if not (folder / path).is_dir():
            (folder / path).write_bytes(content)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.add(folder, arcname=".")
    actual, expected = read_archive(buffer.getvalue()), FolderTree(folder)

    def compare(path: str) -> None:
        entries = expected.list_folder(path)
        assert [(entry.name, entry.kind) for entry in actual.list_folder(path)] == [
            (entry.name, entry.kind) for entry in entries
        ]
        for entry in entries:
            child = f"{path}/{entry.name}" if path else entry.name
            if entry.kind == "folder":
                compare(child)
            else:
                assert actual.read_file(child) == expected.read_file(child)

    compare("")
