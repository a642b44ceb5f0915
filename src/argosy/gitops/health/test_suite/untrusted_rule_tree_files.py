"""Reads files of an untrusted rule tree. In: a path below the tree. Out: its bytes or its first YAML document.

Never: reads outside the tree, a special file (a pipe, a device), or more than `MAX_FILE_BYTES`.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Final

from argosy.errors import LimitError, UserError
from argosy.kube.objects import InputLimits, YamlDialect
from argosy.kube.objects.kubernetes_yaml_parser import parse_documents

MAX_FILE_BYTES: Final = 2 << 20
MAX_SCRIPT_BYTES: Final = 256 << 10
_INPUT_LIMITS: Final = InputLimits(size=MAX_FILE_BYTES)


class RuleTreeFiles:
    """The files below one folder; links that lead outside are refused."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def load_document(self, folder: str, path: str) -> Any:
        return read_first_document(self.read(folder, path), where=join_path(folder, path))

    def read(self, folder: str, path: str, *, max_bytes: int = MAX_FILE_BYTES) -> bytes:
        """Read a file named in a test file; `path` is relative to the folder of the test file."""
        where = join_path(folder, path)
        if not path:
            raise UserError("the row has no file path; add it", where=where)
        if "\0" in path:
            raise UserError("the path contains a NUL character; correct it", where=where.replace("\0", "?"))
        # argo: its tests join both as strings, so a path with a leading slash is below the folder, too
        file = self.folder / folder / path.lstrip("/")
        try:
            resolved = file.resolve(strict=True)
            if not resolved.is_relative_to(self.folder):
                raise UserError("is outside the tree; copy the file into it", where=where)
            return _read_file(resolved, max_bytes, where)
        except (OSError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or "its links form a loop"
            raise UserError(f"cannot be read ({reason}); correct the path or add the file", where=where) from error


def _read_file(file: Path, max_bytes: int, where: str) -> bytes:
    # Open without blocking, then check: between a check and an open the file could be replaced by a pipe.
    handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise UserError("is not a regular file; name a file", where=where)
        data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise LimitError(f"exceeds the limit of {max_bytes} bytes for files of a rule; make it smaller", where=where)
    return data


def read_first_document(text: bytes, *, where: str) -> Any:
    """argo: reads only the first document, and accepts repeated keys: the last one counts."""
    for document in parse_documents(
        text, dialect=YamlDialect.KUBERNETES, where=where, strict=False, limits=_INPUT_LIMITS
    ):
        return document.value
    return None


def join_path(folder: str, path: str) -> str:
    return "/".join(part for part in (folder, path) if part) or "."
