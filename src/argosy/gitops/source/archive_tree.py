"""A gzip-compressed tar archive that a client sent, as a file tree in memory.

In: the bytes of the archive. Out: ArchiveTree. Never: writes a file; unpacks more than the limits; accepts a path or a
link that leaves the archive.

argo: manifests of `app diff --local --server-side-generate` are sent like this. Its server unpacks them into a folder.
"""

from __future__ import annotations

import hashlib
import io
import posixpath
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from argosy.errors import SourceError, SourceTooLarge
from argosy.gitops.application.file_tree_protocol import TreeEntry
from argosy.gitops.source.tar_reader import FILE, FOLDER, LINK, read_members
from argosy.gitops.source.validated_path_components import split_path

MAX_ARCHIVE_BYTES: Final = 16 << 20
MAX_UNPACKED_BYTES: Final = 32 << 20  # headers included
MAX_ENTRIES: Final = 10_000  # members of the archive; also files, folders and links of the tree
MAX_DEPTH: Final = 100  # folders
MAX_PATH_BYTES: Final = 4096
_GZIP: Final = 31  # zlib's number for gzip with a header


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
    # Members that are ignored, or replace an earlier one, count, too: each costs the same work.
    for count, (kind, raw_path, content, target) in enumerate(read_members(io.BytesIO(data), MAX_UNPACKED_BYTES), 1):
        if count > MAX_ENTRIES:
            raise _build_too_many_error()
        path = _clean_path(raw_path)
        if path and (member := _build_member(kind, path, content, target)):
            yield member


def _build_too_many_error() -> SourceTooLarge:
    return SourceTooLarge(f"the archive has more than {MAX_ENTRIES} files and folders; send fewer of them")


def _build_member(kind: bytes, path: str, content: bytes, target: str) -> _Member | None:
    """Return None for a kind of entry that is ignored. argo: devices, pipes and hard links are."""
    if kind == FILE:
        return _Member("file", path, content, "")
    if kind == FOLDER:
        return _Member("folder", path, b"", "")
    if kind != LINK:
        return None
    destination = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if not target or target.startswith("/") or destination.split("/")[0] == "..":
        raise SourceError(f"streamed files contains out-of-bounds symlinks. file: {path}")  # argo: the same message
    _check_utf_8(target)
    return _Member("link", path, b"", target)


def _clean_path(path: str) -> str:
    """Return the path without `.` and slashes around it; "" for the root."""
    _check_utf_8(path)
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in path:
        raise SourceError("the archive has a path with .., which would leave it")
    if len(parts) > MAX_DEPTH or len(path.encode()) > MAX_PATH_BYTES:
        problem = f"a path of more than {MAX_DEPTH} folders, or {MAX_PATH_BYTES} bytes"
        raise SourceTooLarge(f"the archive has {problem}; move the files up")
    return "/".join(parts)


def _check_utf_8(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise SourceError("the archive has a path that is not UTF-8") from error
