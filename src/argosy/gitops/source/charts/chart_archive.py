"""The files of a chart archive, as a file tree.

In: an archive in the cache. Out: file contents, names and IDs. Never: writes a file; follows a link; reads more than
the limits allow, whatever the archive claims.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import threading
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from argosy.errors import CorruptSource, SourceError, SourceTooLarge, SourceUnreachable
from argosy.gitops.application.file_tree_protocol import TreeEntry
from argosy.gitops.source.tar_reader import FILE, FOLDER, LINK, TarMember, read_members
from argosy.gitops.source.validated_path_components import split_path

MIB: Final = 1 << 20
MAX_UNPACKED_BYTES: Final = 100 * MIB  # Helm's own limit
MAX_FILES: Final = 20_000  # files, links and folders
MAX_PATH_DEPTH: Final = 100
MAX_LOADED_BYTES: Final = 64 * MIB  # of all archives that a process keeps unpacked; one of any size is kept
_NODE_BYTES: Final = 700  # what a file or folder takes in memory besides its name and content
MAX_VERIFIED: Final = 10_000  # archives in the cache that this process has found intact
_CHUNK_BYTES: Final = 1 << 16
_BAD_NAMES: Final = ("", ".", "..")
EntryKind = Literal["file", "link"]


class ArchiveKey(NamedTuple):
    """Which state of which archive, and the folder in it. A replaced archive has another key."""

    path: str
    mtime_ns: int
    size: int
    folder: str


_VERIFIED: Final[set[ArchiveKey]] = set()
_VERIFIED_LOCK: Final = threading.Lock()


class _Entry(NamedTuple):
    kind: EntryKind
    content: bytes
    id: str


class _Folder(dict[str, "_Folder | _Entry"]):
    """Names in one folder of the archive, with the ID that depends on all of its content."""

    id = ""


class ChartTree:
    """Implements `FileTree`. Equal trees are of the same state of an archive.

    Pickling keeps only the key; another process reads the archive itself.
    """

    def __init__(self, key: ArchiveKey) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChartTree) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple[type[ChartTree], tuple[ArchiveKey]]:
        return ChartTree, (self.key,)

    @property
    def id(self) -> str:
        return _LOADED.get(self.key).id

    def find_entry(self, path: str) -> TreeEntry | None:
        node = self._find(path)
        return _to_tree_entry(path.rpartition("/")[2], node) if node is not None else None

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        node = self._find(path)
        return [_to_tree_entry(name, node[name]) for name in sorted(node)] if isinstance(node, _Folder) else ()

    def read_file(self, path: str) -> bytes:
        node = self._find(path)
        if isinstance(node, _Entry):
            return node.content
        raise SourceError("no such file" if node is None else "is a folder, not a file", where=path)

    def _find(self, path: str) -> _Folder | _Entry | None:
        node: _Folder | _Entry | None = _LOADED.get(self.key)
        for part in split_path(path):
            node = node.get(part) if isinstance(node, _Folder) else None
        return node


def open_chart(path: Path, chart: str) -> ChartTree:
    """Open an archive of the cache. Raises FileNotFoundError."""
    status = path.stat()
    return ChartTree(ArchiveKey(str(path), status.st_mtime_ns, status.st_size, chart.rpartition("/")[2]))


def is_intact(tree: ChartTree) -> bool:
    """False if the archive in the cache is damaged or gone; a damaged one is removed."""
    with _VERIFIED_LOCK:
        if tree.key in _VERIFIED:
            return True
    try:
        check_archive(_read_archive(tree.key), tree.key.folder)
    except CorruptSource:
        remove_archive(tree.key)
        return False
    except SourceUnreachable:
        return False
    with _VERIFIED_LOCK:
        if len(_VERIFIED) >= MAX_VERIFIED:
            _VERIFIED.clear()
        _VERIFIED.add(tree.key)
    return True


def check_archive(archive: bytes, chart: str) -> None:
    """Raise a SourceError if the archive is damaged, too large, or has no chart."""
    if not isinstance(unpack_chart(archive, chart.rpartition("/")[2]).get("Chart.yaml"), _Entry):
        raise CorruptSource(f"the archive of chart {chart} has no Chart.yaml")


class _LoadedArchives:
    """The archives that this process has unpacked, from least to most recently used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folders: OrderedDict[ArchiveKey, tuple[_Folder, int]] = OrderedDict()

    def get(self, key: ArchiveKey) -> _Folder:
        with self._lock:
            if key in self._folders:
                self._folders.move_to_end(key)
                return self._folders[key][0]
        folder = _unpack_or_remove(key)
        size = _measure(folder)
        with self._lock:
            self._folders[key] = folder, size
            while len(self._folders) > 1 and sum(size for _, size in self._folders.values()) > MAX_LOADED_BYTES:
                self._folders.popitem(last=False)
        return folder


_LOADED: Final = _LoadedArchives()


def _unpack_or_remove(key: ArchiveKey) -> _Folder:
    archive = _read_archive(key)
    try:
        return unpack_chart(archive, key.folder)
    except CorruptSource as error:  # it was intact when it was stored
        remove_archive(key)
        message = f"the archive of chart {key.folder} in the cache was damaged and is removed; argosy fetches it again"
        raise SourceUnreachable(message) from error


def remove_archive(key: ArchiveKey) -> None:
    """Remove the archive from the cache, unless another one has replaced it."""
    path = Path(key.path)
    with contextlib.suppress(OSError):
        status = path.stat()
        if (status.st_mtime_ns, status.st_size) == (key.mtime_ns, key.size):
            path.unlink()


def _read_archive(key: ArchiveKey) -> bytes:
    try:
        with open(key.path, "rb") as file:
            archive = file.read(key.size + 1)
    except OSError:
        archive = b""
    if len(archive) != key.size:
        raise SourceUnreachable(f"the archive of chart {key.folder} was removed from the cache; argosy will retry")
    return archive


def unpack_chart(archive: bytes, folder: str) -> _Folder:
    """Return the files below the chart's folder. argo: it has the name of the chart; else the only one is taken."""
    unpacked = _UnpackedArchive()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(archive)) as unzipped:
            limited = io.BufferedReader(_LimitedReader(unzipped), _CHUNK_BYTES)
            for member in read_members(limited, MAX_UNPACKED_BYTES):
                unpacked.add(member)
            while limited.read(_CHUNK_BYTES):  # to the checksum of gzip
                pass
    except CorruptSource as error:
        raise CorruptSource(f"the archive of the chart cannot be unpacked: {error.message}") from error
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise CorruptSource(f"the archive of the chart cannot be unpacked ({type(error).__name__})") from error
    root = unpacked.root
    if not root:
        raise CorruptSource("the archive of the chart is empty")
    folders = [name for name, node in root.items() if isinstance(node, _Folder)]
    name = folder if folder in folders else folders[0] if len(folders) == 1 else ""
    chart = root.get(name)
    if not isinstance(chart, _Folder):
        raise CorruptSource(f"the archive of the chart has no folder {folder}")
    _set_ids(chart)
    return chart


class _LimitedReader(io.RawIOBase):
    """Counts unpacked bytes: a small archive may unpack to any size."""

    def __init__(self, source: gzip.GzipFile) -> None:
        self._source, self._remaining = source, MAX_UNPACKED_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        chunk = self._source.read(min(len(buffer), self._remaining + 1))
        self._remaining -= len(chunk)
        if self._remaining < 0:
            raise SourceTooLarge(f"the chart unpacks to more than {MAX_UNPACKED_BYTES} bytes")
        buffer[: len(chunk)] = chunk
        return len(chunk)


class _UnpackedArchive:
    """The members of an archive as folders. Folders that are only in the path of a file count, too."""

    def __init__(self) -> None:
        self.root = _Folder()
        self._member_count = self._folder_count = 0

    def add(self, member: TarMember) -> None:
        self._member_count += 1
        parts = [part for part in member.path.split("/") if part not in ("", ".")]
        if ".." in parts or member.path.startswith("/") or "\0" in member.path or "\\" in member.path:
            raise CorruptSource("it has a file outside of its folder")
        if len(parts) > MAX_PATH_DEPTH:
            raise SourceTooLarge(f"the chart has more than {MAX_PATH_DEPTH} levels of folders")
        if parts and member.kind == FOLDER:
            self._make_folder(parts)
        elif parts:
            self._add_entry(parts, _read_entry(member, parts))
        if self._member_count + self._folder_count > MAX_FILES:
            raise SourceTooLarge(f"the chart has more than {MAX_FILES} files and folders")

    def _add_entry(self, parts: Sequence[str], entry: _Entry) -> None:
        folder = self._make_folder(parts[:-1])
        if isinstance(folder.get(parts[-1]), _Folder):
            raise CorruptSource("it has a file and a folder of the same name")
        folder[parts[-1]] = entry

    def _make_folder(self, parts: Sequence[str]) -> _Folder:
        folder = self.root
        for part in parts:
            child = folder.get(part)
            if child is None:
                child = folder[part] = _Folder()
                self._folder_count += 1
            if not isinstance(child, _Folder):
                raise CorruptSource("it has a file and a folder of the same name")
            folder = child
        return folder


def _read_entry(member: TarMember, parts: Sequence[str]) -> _Entry:
    if member.kind == LINK:
        _check_link(parts, member.target)
        return _build_entry("link", member.target.encode("utf-8", "surrogateescape"))
    if member.kind != FILE:
        raise CorruptSource("it has a hard link or a special file")
    return _build_entry("file", member.content)


def _build_entry(kind: EntryKind, content: bytes) -> _Entry:
    return _Entry(kind, content, hashlib.sha256(content).hexdigest())


def _check_link(parts: Sequence[str], target: str) -> None:
    """Raise CorruptSource unless the link stays in the chart's folder, which is the first part of its path."""
    depth = len(parts) - 1  # of the folder that has the link
    for step in target.split("/"):
        depth += -1 if step == ".." else 0 if step in ("", ".") else 1
        if depth < 1:
            break
    if target.startswith("/") or depth < 1:
        raise CorruptSource("it has a link that leads out of its folder")


def _set_ids(folder: _Folder) -> None:
    """Set the IDs of all folders, inner ones first: equal content has equal IDs in every archive."""
    digest = hashlib.sha256()
    for name in sorted(folder):
        node = folder[name]
        if isinstance(node, _Folder):
            _set_ids(node)
        digest.update(f"{_to_tree_entry(name, node)!r}\n".encode("utf-8", "surrogateescape"))
    folder.id = digest.hexdigest()


def _to_tree_entry(name: str, node: _Folder | _Entry) -> TreeEntry:
    return TreeEntry(name, "folder" if isinstance(node, _Folder) else node.kind, node.id)


def _measure(folder: _Folder) -> int:
    """Return about how many bytes of memory the folder takes, with all that is in it."""
    return sum(
        _NODE_BYTES + len(name) + (_measure(node) if isinstance(node, _Folder) else len(node.content))
        for name, node in folder.items()
    )
