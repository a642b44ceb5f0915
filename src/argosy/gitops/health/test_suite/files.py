"""Reads files of an untrusted rule tree. In: a path below the tree. Out: its bytes or its first YAML document.

Never: reads outside the tree, a special file (a pipe, a device), or more than `MAX_FILE_BYTES`.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Final

from argosy.errors import LimitError, UserError
from argosy.kube.objects import Limits, Profile
from argosy.kube.objects.yaml_reader import documents

MOST_BYTES: Final = 2 << 20
MOST_SCRIPT_BYTES: Final = 256 << 10
_LIMITS: Final = Limits(size=MOST_BYTES)


class Files:
    """The files below one folder; links that lead outside are refused."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def document(self, folder: str, path: str) -> Any:
        return first_document(self.read(folder, path), where=shown(folder, path))

    def read(self, folder: str, path: str, *, most: int = MOST_BYTES) -> bytes:
        """Read a file named in a test file; `path` is relative to the folder of the test file."""
        where = shown(folder, path)
        if not path:
            raise UserError("the row has no file path; add it", where=where)
        if "\0" in path:
            raise UserError("the path contains a NUL character; correct it", where=where.replace("\0", "?"))
        # argo: its tests join both as strings, so a path with a leading slash is below the folder, too
        file = self.folder / folder / path.lstrip("/")
        try:
            real = file.resolve(strict=True)
            if not real.is_relative_to(self.folder):
                raise UserError("is outside the tree; copy the file into it", where=where)
            return _bytes(real, most, where)
        except (OSError, RuntimeError) as error:
            what = getattr(error, "strerror", None) or "its links form a loop"
            raise UserError(f"cannot be read ({what}); correct the path or add the file", where=where) from error


def _bytes(file: Path, most: int, where: str) -> bytes:
    # Open without blocking, then check: between a check and an open the file could be replaced by a pipe.
    handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise UserError("is not a regular file; name a file", where=where)
        data = stream.read(most + 1)
    if len(data) > most:
        raise LimitError(f"exceeds the limit of {most} bytes for files of a rule; make it smaller", where=where)
    return data


def first_document(text: bytes, *, where: str) -> Any:
    """argo: reads only the first document, and accepts repeated keys: the last one counts."""
    for document in documents(text, profile=Profile.KUBERNETES, where=where, strict=False, limits=_LIMITS):
        return document.value
    return None


def shown(folder: str, path: str) -> str:
    return "/".join(part for part in (folder, path) if part) or "."
