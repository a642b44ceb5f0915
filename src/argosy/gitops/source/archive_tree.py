"""A gzip-compressed tar archive that a client sent, as a file tree in memory.

In: the bytes of the archive. Out: ArchiveTree. Never: writes a file; unpacks more than the limits; accepts a path or a
link that leaves the archive.

argo: manifests of `app diff --local --server-side-generate` are sent like this. Its server unpacks them into a folder.
The reader is our own: the one of the standard library takes quadratic time for some headers, and unpacks sparse files.
"""

from __future__ import annotations

import hashlib
import posixpath
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from argosy.errors import SourceError, SourceTooLarge
from argosy.gitops.application.file_tree_protocol import TreeEntry
from argosy.gitops.source.validated_path_components import split_path

MAX_ARCHIVE_BYTES: Final = 16 << 20
MAX_UNPACKED_BYTES: Final = 32 << 20  # headers included
MAX_ENTRIES: Final = 10_000  # members of the archive; also files, folders and links of the tree
MAX_DEPTH: Final = 100  # folders
MAX_PATH_BYTES: Final = 4096
_BLOCK_BYTES: Final = 512
_GZIP: Final = 31  # zlib's number for gzip with a header
_FILE, _OLD_FILE, _LINK, _FOLDER, _CONTIGUOUS_FILE = b"0", b"\0", b"2", b"5", b"7"
_PAX, _LONG_NAME, _LONG_LINK = b"x", b"L", b"K"
_BROKEN: Final = "the archive is not a valid tar file"


class _Member(NamedTuple):
    kind: Literal["file", "folder", "link"]
    path: str
    content: bytes  # of a file
    target: str  # of a link


@dataclass(frozen=True)
class ArchiveTree:
    """Implements `FileTree`."""

    files: Mapping[str, bytes]
    links: Mapping[str, str]
    folders: Mapping[str, tuple[TreeEntry, ...]]  # with the root, ""
    ids: Mapping[str, str]

    def find_entry(self, path: str) -> TreeEntry | None:
        split_path(path)
        name = path.rpartition("/")[2]
        if path in self.folders:
            return TreeEntry(name, "folder", self.ids[path])
        if path in self.files:
            return TreeEntry(name, "file", self.ids[path])
        return TreeEntry(name, "link", self.ids[path]) if path in self.links else None

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        return self.folders.get(path, ())

    def read_file(self, path: str) -> bytes:
        split_path(path)
        if path in self.links:
            return self.links[path].encode()
        if path not in self.files:
            raise SourceError("is a folder, not a file" if path in self.folders else "no such file", where=path)
        return self.files[path]


def read_archive(data: bytes) -> ArchiveTree:
    """Raise SourceError if the archive is invalid, or exceeds a limit."""
    if len(data) > MAX_ARCHIVE_BYTES:
        raise SourceTooLarge(f"the archive is larger than {MAX_ARCHIVE_BYTES} bytes; send fewer files")
    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    names: dict[str, set[str]] = {"": set()}  # by folder
    new_folders: list[tuple[str, str]] = []  # with the folder that each is in
    for member in _read_members(_unpack(data)):
        parent, _, name = member.path.rpartition("/")
        folder = member.path if member.kind == "folder" else parent
        while folder not in names:  # up to the first known folder: most members have a known one
            if folder in files or folder in links:
                raise SourceError("is no folder, but the archive has files below it", where=folder)
            names[folder] = set()
            above, _, folder_name = folder.rpartition("/")
            new_folders.append((above, folder_name))
            folder = above
        while new_folders:
            above, folder_name = new_folders.pop()
            names[above].add(folder_name)
        if len(files) + len(links) + len(names) > MAX_ENTRIES:
            raise _build_too_many_error()
        if member.kind == "folder":
            continue
        if member.path in names or member.path in links or (member.kind == "link" and member.path in files):
            raise SourceError("is more than once in the archive", where=member.path)
        names[parent].add(name)
        if member.kind == "file":
            files[member.path] = member.content
        else:
            links[member.path] = member.target
    return _build_tree(files, links, names)


def _build_tree(files: dict[str, bytes], links: dict[str, str], names: dict[str, set[str]]) -> ArchiveTree:
    ids = {path: _hash(b"file", content) for path, content in files.items()}
    ids |= {path: _hash(b"link", target.encode()) for path, target in links.items()}
    folders: dict[str, tuple[TreeEntry, ...]] = {}
    for folder in sorted(names, key=lambda path: path.count("/") + bool(path), reverse=True):  # the deepest first
        entries = []
        for name in sorted(names[folder]):
            path = f"{folder}/{name}" if folder else name
            kind: Literal["file", "folder", "link"] = "folder" if path in names else "link" if path in links else "file"
            entries.append(TreeEntry(name, kind, ids[path]))
        folders[folder] = tuple(entries)
        ids[folder] = _hash(b"folder", "\0".join(str(field) for entry in entries for field in entry).encode())
    return ArchiveTree(files, links, folders, ids)


def _hash(kind: bytes, content: bytes) -> str:
    return hashlib.sha256(kind + b"\0" + content).hexdigest()


def _unpack(data: bytes) -> bytes:
    decompressor = zlib.decompressobj(_GZIP)
    try:
        content = decompressor.decompress(data, MAX_UNPACKED_BYTES + 1)
    except zlib.error as error:
        raise SourceError("the archive is not compressed with gzip") from error
    if len(content) > MAX_UNPACKED_BYTES:
        raise SourceTooLarge(f"the archive has more than {MAX_UNPACKED_BYTES} bytes unpacked; send fewer files")
    if not decompressor.eof or decompressor.unused_data:
        raise SourceError("the archive is truncated, or something follows it")
    return content


def _read_members(data: bytes) -> Iterator[_Member]:
    position, count, long_path, long_target, long_size = 0, 0, "", "", -1
    while position + _BLOCK_BYTES <= len(data):
        header = data[position : position + _BLOCK_BYTES]
        position += _BLOCK_BYTES
        if not header.strip(b"\0"):
            return
        _check_sum(header)
        kind = header[156:157]
        size = _read_number(header[124:136]) if long_size < 0 or kind in (_PAX, _LONG_NAME, _LONG_LINK) else long_size
        if kind in (_LINK, _FOLDER):
            size = 0
        content = data[position : position + size]
        if len(content) < size:
            raise SourceError("the archive ends within a file")
        position += -(-size // _BLOCK_BYTES) * _BLOCK_BYTES
        if kind == _PAX:
            records = _read_pax_records(content)
            long_path, long_target = records.get(b"path", long_path), records.get(b"linkpath", long_target)
            long_size = int(text) if (text := records.get(b"size", "")).isdecimal() and len(text) < 16 else -1
        elif kind == _LONG_NAME:
            long_path = _decode(content.rstrip(b"\0"))
        elif kind == _LONG_LINK:
            long_target = _decode(content.rstrip(b"\0"))
        else:
            count += 1  # also of members that are ignored, or replace an earlier one: each costs the same work
            if count > MAX_ENTRIES:
                raise _build_too_many_error()
            path = _clean_path(long_path or _read_path(header))
            if path and (member := _build_member(kind, path, content, long_target or _read_text(header[157:257]))):
                yield member
            long_path, long_target, long_size = "", "", -1


def _build_too_many_error() -> SourceTooLarge:
    return SourceTooLarge(f"the archive has more than {MAX_ENTRIES} files and folders; send fewer of them")


def _build_member(kind: bytes, path: str, content: bytes, target: str) -> _Member | None:
    """Return None for a kind of entry that is ignored. argo: devices, pipes and hard links are."""
    if kind in (_FILE, _OLD_FILE, _CONTIGUOUS_FILE):
        return _Member("file", path, content, "")
    if kind == _FOLDER:
        return _Member("folder", path, b"", "")
    if kind != _LINK:
        return None
    destination = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if not target or target.startswith("/") or destination.split("/")[0] == "..":
        raise SourceError(f"streamed files contains out-of-bounds symlinks. file: {path}")  # argo: the same message
    return _Member("link", path, b"", target)


def _clean_path(path: str) -> str:
    """Return the path without `.` and slashes around it; "" for the root."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in path:
        raise SourceError("the archive has a path with .., which would leave it")
    if len(parts) > MAX_DEPTH or len(path.encode()) > MAX_PATH_BYTES:
        problem = f"a path of more than {MAX_DEPTH} folders, or {MAX_PATH_BYTES} bytes"
        raise SourceTooLarge(f"the archive has {problem}; move the files up")
    return "/".join(parts)


def _check_sum(header: bytes) -> None:
    """Check the sum of all bytes of a header, in which the sum itself counts as spaces."""
    if _read_number(header[148:156]) != sum(header) - sum(header[148:156]) + 8 * ord(" "):
        raise SourceError(_BROKEN)


def _read_number(field: bytes) -> int:
    """Read an octal number, or a binary one if the first bit is set."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:])
    digits = field.strip(b" \0")
    if not all(0x30 <= byte <= 0x37 for byte in digits):
        raise SourceError(_BROKEN)
    return int(digits or b"0", 8)


def _read_path(header: bytes) -> str:
    name = _read_text(header[:100])
    prefix = _read_text(header[345:500]) if header[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name


def _read_text(field: bytes) -> str:
    return _decode(field.partition(b"\0")[0])


def _decode(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise SourceError("the archive has a path that is not UTF-8") from error


def _read_pax_records(content: bytes) -> dict[bytes, str]:
    """Read records such as `30 path=some/long/path\\n`; the number is the length of the record."""
    records: dict[bytes, str] = {}
    position = 0
    while position < len(content):
        end = content.find(b" ", position, position + 10)
        digits = content[position:end] if end > 0 else b""
        if not digits.isdigit() or not (length := int(digits)) > len(digits) + 1:
            raise SourceError(_BROKEN)
        key, separator, value = content[end + 1 : position + length].removesuffix(b"\n").partition(b"=")
        if not separator or position + length > len(content):
            raise SourceError(_BROKEN)
        if key in (b"path", b"linkpath", b"size"):
            records[key] = _decode(value)
        position += length
    return records
