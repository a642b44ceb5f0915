"""A folder on disk as a file tree.

In: a path below the folder. Out: file contents, names, and the object ids that git would assign. Never: follows a
symbolic link in any part of a path.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from argosy.errors import SourceError, SourceTooLarge
from argosy.gitops.application.file_tree_protocol import TreeEntry
from argosy.gitops.source.limits import SourceLimits
from argosy.gitops.source.validated_path_components import split_path

MAX_FOLDER_DEPTH = 100
_IGNORED_NAME = ".git"
_GIT_MODES = {"file": "100644", "folder": "40000", "link": "120000"}
EntryKind = Literal["file", "folder", "link"]


class _LazyEntry(TreeEntry):
    """Computes its id on first access, so that listing a folder does not read every file below it."""

    _compute_id: Callable[[], str]

    @property
    def id(self) -> str:
        return self._compute_id()

    def __iter__(self) -> Iterator[Any]:
        return iter((self.name, self.kind, self.id, self.is_executable))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeEntry) and tuple(self.__iter__()) == tuple(iter(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(self.__iter__()))


class FolderTree:
    """Implements `Tree`. The folder must not change while it is read, because ids are cached."""

    def __init__(self, path: Path, limits: SourceLimits | None = None) -> None:
        self.path = path
        self.limits = limits or SourceLimits()
        self._ids: dict[str, str] = {}
        if not path.is_dir():
            raise SourceError("not a folder; name an existing one", where=str(path))

    def find_entry(self, path: str) -> TreeEntry | None:
        parts = split_path(path)
        if not parts:
            return self._lazy_entry("", "folder", "")
        with self._open_folder(parts[:-1]) as folder:
            kind, is_executable = _stat_entry(folder, parts[-1]) if folder is not None else (None, False)
        is_visible = kind and _IGNORED_NAME not in parts
        return self._lazy_entry(parts[-1], kind, path, is_executable) if kind and is_visible else None

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        with self._open_folder(split_path(path)) as folder:
            if folder is None:
                return ()
            names = sorted(os.listdir(folder))
            if len(names) > self.limits.folder_entries:
                raise SourceTooLarge(f"has {len(names)} entries; split it", where=path)
            entries = [(name, *_stat_entry(folder, name)) for name in names if name != _IGNORED_NAME]
        prefix = f"{path}/" if path else ""
        return [self._lazy_entry(name, kind, prefix + name, bit) for name, kind, bit in entries if kind]

    def read_file(self, path: str) -> bytes:
        parts = split_path(path)
        if not parts:
            raise SourceError("the source itself is a folder, not a file")
        with self._open_folder(parts[:-1]) as folder:
            is_listed = folder is not None and _IGNORED_NAME not in parts
            kind = _stat_entry(folder, parts[-1])[0] if folder is not None and is_listed else None
            if folder is None or kind is None:
                raise SourceError("no such file", where=path)
            if kind == "folder":
                raise SourceError("is a folder, not a file", where=path)
            try:
                if kind == "link":
                    return os.fsencode(os.readlink(parts[-1], dir_fd=folder))
                return self._read_content(folder, parts[-1], path)
            except OSError as error:
                raise SourceError(f"cannot be read: {error.strerror}", where=path) from error

    def _read_content(self, folder: int, name: str, path: str) -> bytes:
        # Non-blocking: the file may have been replaced by a pipe.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise SourceError("is not a regular file", where=path)
            content = file.read(self.limits.file_bytes + 1)
        if len(content) > self.limits.file_bytes:
            raise SourceTooLarge(
                f"is larger than {self.limits.file_bytes} bytes; keep such files elsewhere", where=path
            )
        return content

    @contextlib.contextmanager
    def _open_folder(self, parts: Sequence[str]) -> Iterator[int | None]:
        """Yield a descriptor of the folder, opened part by part to follow no link; None if it is not a folder."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        descriptor = os.open(self.path, flags)
        try:
            for part in parts:
                child_descriptor = os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = child_descriptor
            result: int | None = descriptor
        except (OSError, ValueError):
            result = None
        try:
            yield result
        finally:
            os.close(descriptor)

    def _lazy_entry(self, name: str, kind: EntryKind, path: str, is_executable: bool = False) -> TreeEntry:
        entry = _LazyEntry(name, kind, "", is_executable)
        entry._compute_id = lambda: self._object_id(kind, path)
        return entry

    def _object_id(self, kind: EntryKind, path: str) -> str:
        cached_id = self._ids.get(path)
        if cached_id is None:
            content = self._tree_object_content(path) if kind == "folder" else self.read_file(path)
            object_type = "tree" if kind == "folder" else "blob"
            # The id that git assigns, so that a folder and a commit with the same files share cached renders.
            digest = hashlib.sha1(f"{object_type} {len(content)}\0".encode() + content, usedforsecurity=False)
            cached_id = self._ids[path] = digest.hexdigest()
        return cached_id

    def _tree_object_content(self, path: str) -> bytes:
        if path.count("/") > MAX_FOLDER_DEPTH:
            raise SourceTooLarge(f"is more than {MAX_FOLDER_DEPTH} folders deep; move it up", where=path)
        lines = []
        for entry in self.list_folder(path):
            name = os.fsencode(entry.name)
            mode = "100755" if entry.is_executable else _GIT_MODES[entry.kind]
            sort_key = name + b"/" if entry.kind == "folder" else name
            lines.append((sort_key, mode.encode() + b" " + name + b"\0" + bytes.fromhex(entry.id)))
        return b"".join(line for _, line in sorted(lines))


def _stat_entry(folder: int, name: str) -> tuple[EntryKind | None, bool]:
    """Return the kind, None if it is none of a tree, and whether the owner may execute the file."""
    try:
        mode = os.lstat(name, dir_fd=folder).st_mode
    except (OSError, ValueError):
        return None, False
    if stat.S_ISLNK(mode):
        return "link", False
    if stat.S_ISDIR(mode):
        return "folder", False
    return ("file", bool(mode & 0o100)) if stat.S_ISREG(mode) else (None, False)
