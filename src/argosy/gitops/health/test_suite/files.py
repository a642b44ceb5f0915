"""The files of a tree that is not trusted. In: a path below the tree. Out: its bytes or its first YAML document.

Never: reads outside of the tree, a file that is none (a pipe, a device), or more than a rule's files hold.
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
    """The files below one folder, which links may not leave."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def document(self, folder: str, path: str) -> Any:
        return first_document(self.read(folder, path), where=shown(folder, path))

    def read(self, folder: str, path: str, *, most: int = MOST_BYTES) -> bytes:
        """The bytes of a file that a test file names: `path` starts at the folder of the test file."""
        where = shown(folder, path)
        if not path:
            raise UserError("the row names no file; add its path", where=where)
        if "\0" in path:
            raise UserError("the path holds a NUL; correct it", where=where.replace("\0", "?"))
        # argo: its tests join the two as text, so a path that starts with a slash is below the folder too
        file = self.folder / folder / path.lstrip("/")
        try:
            real = file.resolve(strict=True)
            if not real.is_relative_to(self.folder):
                raise UserError("leads out of the tree; copy the file into it", where=where)
            return _bytes(real, most, where)
        except (OSError, RuntimeError) as error:
            what = getattr(error, "strerror", None) or "its links go round in a circle"
            raise UserError(f"cannot be read ({what}); correct the path or add the file", where=where) from error


def _bytes(file: Path, most: int, where: str) -> bytes:
    # Opened without blocking and then looked at: between a look and an open the file could become a pipe.
    handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise UserError("is no regular file; name a file", where=where)
        data = stream.read(most + 1)
    if len(data) > most:
        raise LimitError(f"more than the {most} bytes that a rule's file may have; make it smaller", where=where)
    return data


def first_document(text: bytes, *, where: str) -> Any:
    """argo: its reader stops after the first document, and takes a repeated key: the last one counts."""
    for document in documents(text, profile=Profile.KUBERNETES, where=where, strict=False, limits=_LIMITS):
        return document.value
    return None


def shown(folder: str, path: str) -> str:
    return "/".join(part for part in (folder, path) if part) or "."
