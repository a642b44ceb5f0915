"""The files of a chart archive, as a file tree.

In: an archive in the cache. Out: file contents, names and IDs. Never: writes a file; follows a link; reads more than
the limits allow, whatever the archive claims.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from argosy.errors import CorruptSource, SourceError, SourceTooLarge, SourceUnreachable
from argosy.gitops.application.file_tree_protocol import TreeEntry
from argosy.gitops.source.validated_path_components import split_path

MIB: Final = 1 << 20
MAX_UNPACKED_BYTES: Final = 100 * MIB  # Helm's own limit
MAX_FILES: Final = 20_000
MAX_PATH_DEPTH: Final = 100
MAX_LOADED_BYTES: Final = 64 * MIB  # of all archives that a process keeps unpacked; one of any size is kept
_CHUNK_BYTES: Final = 1 << 16
_BAD_NAMES: Final = ("", ".", "..")
EntryKind = Literal["file", "link"]


class ArchiveKey(NamedTuple):
    """Which state of which archive, and the folder in it. A replaced archive has another key."""

    path: str
    mtime_ns: int
    size: int
    folder: str


class _Entry(NamedTuple):
    kind: EntryKind
    content: bytes
    id: str


class _Folder(dict[str, "_Folder | _Entry"]):
    """Names in one folder of the archive, with the ID that depends on all of its content."""

    id = ""


class ChartTree:
    """Implements `FileTree`. Pickling keeps only the key; another process reads the archive itself."""

    def __init__(self, key: ArchiveKey) -> None:
        self.key = key

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
        folder = unpack_chart(_read_archive(key), key.folder)
        size = sum(len(entry.content) for entry in _walk_entries(folder))
        with self._lock:
            self._folders[key] = folder, size
            while len(self._folders) > 1 and sum(size for _, size in self._folders.values()) > MAX_LOADED_BYTES:
                self._folders.popitem(last=False)
        return folder


_LOADED: Final = _LoadedArchives()


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
    root = _Folder()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(archive)) as unzipped:
            limited = io.BufferedReader(_LimitedReader(unzipped), _CHUNK_BYTES)
            with tarfile.open(fileobj=limited, mode="r|") as tar:
                for count, member in enumerate(tar):
                    if count >= MAX_FILES:
                        raise SourceTooLarge(f"the chart has more than {MAX_FILES} files")
                    _add_member(root, tar, member)
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError, OverflowError) as error:
        raise CorruptSource(f"the archive of the chart cannot be unpacked ({type(error).__name__})") from error
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


def _add_member(root: _Folder, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if ".." in parts or member.name.startswith("/") or "\0" in member.name or "\\" in member.name:
        raise CorruptSource("the archive of the chart has a file outside of its folder")
    if len(parts) > MAX_PATH_DEPTH:
        raise SourceTooLarge(f"the chart has more than {MAX_PATH_DEPTH} levels of folders")
    if not parts:
        return
    if member.isdir():
        _make_folder(root, parts)
        return
    if member.issym():
        _check_link(parts, member.linkname)
        entry = _build_entry("link", member.linkname.encode("utf-8", "surrogateescape"))
    elif member.isreg() and not member.issparse():
        file = tar.extractfile(member)
        entry = _build_entry("file", file.read() if file is not None else b"")  # bounded by the limited reader
    else:
        raise CorruptSource("the archive of the chart has a hard link or a special file")
    folder = _make_folder(root, parts[:-1])
    if isinstance(folder.get(parts[-1]), _Folder):
        raise CorruptSource("the archive of the chart has a file and a folder of the same name")
    folder[parts[-1]] = entry


def _build_entry(kind: EntryKind, content: bytes) -> _Entry:
    return _Entry(kind, content, hashlib.sha256(content).hexdigest())


def _make_folder(root: _Folder, parts: Sequence[str]) -> _Folder:
    folder = root
    for part in parts:
        child = folder.setdefault(part, _Folder())
        if not isinstance(child, _Folder):
            raise CorruptSource("the archive of the chart has a file and a folder of the same name")
        folder = child
    return folder


def _check_link(parts: Sequence[str], target: str) -> None:
    """Raise CorruptSource unless the link stays in the chart's folder, which is the first part of its path."""
    depth = len(parts) - 1  # of the folder that has the link
    for step in target.split("/"):
        depth += -1 if step == ".." else 0 if step in ("", ".") else 1
        if depth < 1:
            break
    if target.startswith("/") or depth < 1:
        raise CorruptSource("the archive of the chart has a link that leads out of its folder")


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


def _walk_entries(folder: Mapping[str, _Folder | _Entry]) -> Iterator[_Entry]:
    for node in folder.values():
        if isinstance(node, _Folder):
            yield from _walk_entries(node)
        else:
            yield node
