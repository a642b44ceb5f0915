"""Packs a folder of a tree for plug-ins: tar and gzip, as Argo CD streams it.

In: a tree, a folder in it. Out: a file with the archive, its SHA-256 and its size. Never: a link that leads out of the
tree; more files or bytes than the limits allow.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from argosy.errors import LimitError, RenderError
from argosy.gitops.application.file_tree_protocol import FileTree, TreeEntry
from argosy.gitops.render.tree_export import ExportLimits, check_link_target
from argosy.languages.globs import compile_name_glob

# argo: no limits. These protect the disk, and fit large repositories: discovery gets all files of one.
LIMITS: Final = ExportLimits(files=200_000, size=4 << 30)
MAX_ARCHIVE_BYTES: Final = 1 << 30
_HINT: Final = "leave some out with reposerver.plugin.tar.exclusions in argocd-cmd-params-cm"
_COMPRESSION_LEVEL: Final = 3  # the archive does not leave the machine
_MODE_BY_KIND: Final = {"folder": 0o755, "link": 0o777}


@dataclass(frozen=True)
class SourceArchive:
    file: Path
    checksum: str
    size: int


def write_archive(tree: FileTree, root: str, file: Path, excluded_globs: tuple[str, ...] = ()) -> SourceArchive:
    """Write everything below `root` to a new file, with names relative to `root`. Raises RenderError, LimitError."""
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as output:
        digesting = _DigestingFile(output)
        with (
            gzip.GzipFile(fileobj=digesting, mode="wb", compresslevel=_COMPRESSION_LEVEL, mtime=0) as compressing,
            tarfile.open(fileobj=compressing, mode="w|") as archive,
        ):
            packer = _Packer(tree, root, archive, excluded_globs)
            packer.add_folder("")
    if not packer.file_count:
        raise RenderError("has no files for a plug-in: correct the source's path", where=root or ".")
    return SourceArchive(file, digesting.digest.hexdigest(), digesting.size)


class _DigestingFile(io.RawIOBase):
    def __init__(self, output: io.BufferedWriter) -> None:
        self._output, self.digest, self.size = output, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.size += len(data)
        if self.size > MAX_ARCHIVE_BYTES:
            raise LimitError(f"the archive of the files for plug-ins exceeds {MAX_ARCHIVE_BYTES >> 20} MiB; {_HINT}")
        self.digest.update(data)
        return self._output.write(data)


class _Packer:
    def __init__(self, tree: FileTree, root: str, archive: tarfile.TarFile, excluded_globs: tuple[str, ...]) -> None:
        self._tree, self._root, self._archive = tree, root, archive
        # argo: a star does not match a slash, so a glob and a path have as many segments
        self._excluded = [[compile_name_glob(part) for part in glob.split("/")] for glob in excluded_globs]
        self.file_count = self._entry_count = self._total_bytes = 0

    def add_folder(self, folder: str) -> None:
        if folder.count("/") > LIMITS.depth:
            raise LimitError(f"folders are nested more than {LIMITS.depth} deep; {_HINT}", where=folder)
        for entry in self._tree.list_folder(self._locate(folder)):
            name = f"{folder}/{entry.name}" if folder else entry.name
            if not self._is_excluded(name.split("/")):
                self._add_entry(name, entry)

    def _is_excluded(self, parts: list[str]) -> bool:
        return any(
            len(patterns) == len(parts) and all(pattern.fullmatch(part) for pattern, part in zip(patterns, parts))
            for patterns in self._excluded
        )

    def _locate(self, name: str) -> str:
        return f"{self._root}/{name}".strip("/")

    def _add_entry(self, name: str, entry: TreeEntry) -> None:
        path = self._locate(name)
        self._entry_count += 1
        if self._entry_count > LIMITS.files:
            raise LimitError(f"the plug-in would get more than {LIMITS.files} files and folders; {_HINT}", where=path)
        header = tarfile.TarInfo(name)
        header.mode = _MODE_BY_KIND.get(entry.kind, 0o755 if entry.is_executable else 0o644)
        if entry.kind == "folder":
            header.type = tarfile.DIRTYPE
            self._archive.addfile(header)
            self.add_folder(name)
        elif entry.kind == "link":
            # argo: a link may lead out of the folder that is sent, but never out of the repository
            header.type, header.linkname = tarfile.SYMTYPE, os.fsdecode(self._tree.read_file(path))
            check_link_target(path, header.linkname)
            self._archive.addfile(header)
        else:
            self._add_file(header, self._tree.read_file(path), path)

    def _add_file(self, header: tarfile.TarInfo, data: bytes, path: str) -> None:
        self.file_count += 1
        self._total_bytes += len(data)
        if self._total_bytes > LIMITS.size:
            raise LimitError(f"the files for the plug-in exceed {LIMITS.size >> 20} MiB; {_HINT}", where=path)
        header.size = len(data)
        self._archive.addfile(header, io.BytesIO(data))
