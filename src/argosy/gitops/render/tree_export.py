"""Writes a tree, or parts of it, to a temporary folder for programs that read files.

In: a tree and paths in it. Out: a private folder that exists as long as it is needed.
Never: a link that leads out of the folder; more files or bytes than the limits allow.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from argosy.errors import LimitError, RenderError
from argosy.gitops.application.file_tree_protocol import FileTree, TreeEntry
from argosy.gitops.render.lfs_check import reject_lfs_pointer
from argosy.isolation.scratch_folders import create_scratch_folder

_TOOL_FILE_SUFFIXES = (".yaml", ".yml", ".tpl", ".tgz", ".tar.gz")  # other files in Git LFS are not read by a tool
_NOBODY_UID = 65534  # the user of a confined program when we are root


@dataclass(frozen=True, slots=True)
class ExportLimits:
    files: int = 20_000
    size: int = 512 << 20
    depth: int = 64


@contextmanager
def export_tree(
    tree: FileTree,
    paths: str | Sequence[str] = "",
    *,
    extra: Mapping[str, bytes] | None = None,
    writable: bool = False,
    limits: ExportLimits = ExportLimits(),
) -> Iterator[Path]:
    """Write these paths below a new folder, each at its own path, and remove the folder afterwards.

    `extra` files are added to the tree's files, or replace them. The folder is read-only for programs unless `writable`
    is
    set; then its parent folder is the program's scratch folder.
    """
    with create_scratch_folder("argosy-tree-") as scratch:
        folder = scratch / "files" / "tree"  # a program may own the parent folder, but not the one with the lock
        folder.parent.mkdir(0o700)
        folder.mkdir()
        export = _TreeExporter(tree, folder, limits, extra or {})
        for path in (paths,) if isinstance(paths, str) else paths:
            export.add(path)
        export.add_extra()
        _set_owner_and_mode(folder, writable)
        yield folder


def _set_owner_and_mode(folder: Path, writable: bool) -> None:
    """Give the folder to the user that programs run as, and hide its names from other users."""
    is_root = os.geteuid() == 0
    for directory, _, files in os.walk(folder, topdown=False):
        os.chmod(directory, 0o755 if writable else 0o555)
        if writable:
            for path in (directory, *(os.path.join(directory, name) for name in files)):
                if is_root:
                    os.chown(path, _NOBODY_UID, _NOBODY_UID, follow_symlinks=False)
                if not os.path.islink(path):
                    os.chmod(path, os.stat(path).st_mode | 0o200)
    if is_root:
        os.chown(folder.parent, 0, _NOBODY_UID)
        os.chmod(folder.parent, 0o750)  # noqa: S103
        os.chmod(folder.parent.parent, 0o711)  # noqa: S103  # the user can traverse it, but not list it


def check_link_target(path: str, target: str) -> None:
    """Refuse a link unless it leads up and then down: then its text alone proves that it stays in the tree."""
    parts = [part for part in target.split("/") if part not in ("", ".")]
    parent_steps = next((i for i, part in enumerate(parts) if part != ".."), len(parts))
    if target.startswith("/") or parent_steps > path.count("/") or ".." in parts[parent_steps:] or "\0" in target:
        raise RenderError("is a link that leads out of the repository; use a relative link inside it", where=path)


class _TreeExporter:
    def __init__(self, tree: FileTree, folder: Path, limits: ExportLimits, extra: Mapping[str, bytes]) -> None:
        self._tree, self._folder, self._limits, self._extra = tree, folder, limits, extra
        self._file_count = self._total_bytes = 0
        self._added_paths: set[str] = set()

    def add(self, path: str) -> None:
        if not path:
            self._add_folder("")
            return
        entry = self._tree.find_entry(path)
        if entry is None:
            raise RenderError("no such file or folder at this revision; correct the path", where=path)
        (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
        self._add_entry(path, entry)

    def add_extra(self) -> None:
        for path, data in self._extra.items():
            self._check_name(path, path.rpartition("/")[2])
            (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
            self._write_file(path, data)

    def _add_entry(self, path: str, entry: TreeEntry) -> None:
        if path in self._added_paths or path in self._extra:
            return
        self._check_name(path, path.rpartition("/")[2])
        if entry.kind == "folder":
            self._add_folder(path)
            return
        self._added_paths.add(path)
        self._file_count += 1
        if self._file_count > self._limits.files:
            raise LimitError(f"more than {self._limits.files} files; use a source with fewer files", where=path)
        if entry.kind == "link":
            self._add_link(path, os.fsdecode(self._tree.read_file(path)))
        else:
            data = self._tree.read_file(path)
            self._write_file(path, reject_lfs_pointer(data, path) if path.endswith(_TOOL_FILE_SUFFIXES) else data)

    def _add_folder(self, path: str) -> None:
        if path.count("/") > self._limits.depth:
            raise LimitError(f"folders are nested more than {self._limits.depth} deep", where=path)
        (self._folder / path).mkdir(parents=True, exist_ok=True)
        for entry in self._tree.list_folder(path):
            self._add_entry(f"{path}/{entry.name}" if path else entry.name, entry)

    def _write_file(self, path: str, data: bytes) -> None:
        self._total_bytes += len(data)
        if self._total_bytes > self._limits.size:
            raise LimitError(f"the files exceed {self._limits.size >> 20} MiB in total", where=path)
        mode = 0o555 if data.startswith(b"#!") else 0o444  # the same for every tree, on disk and in Git
        with open(os.open(self._folder / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
        os.chmod(self._folder / path, mode)

    def _add_link(self, path: str, target: str) -> None:
        check_link_target(path, target)
        os.symlink(target, self._folder / path)

    def _check_name(self, path: str, name: str) -> None:
        if name in ("", ".", "..") or "\0" in path or path.startswith("/") or ".." in path.split("/"):
            raise RenderError("is not a valid file name", where=path)
