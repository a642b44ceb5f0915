"""Reads and writes notebook files.

In: a path. Out: a notebook as plain data, or a file that was written atomically. Never: leaves a partial file; trusts
its input.
"""

from __future__ import annotations

import codecs
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.application.lfs_pointers import LFS_TEXT, is_lfs_pointer

MOST_BYTES: Final = 64 << 20
Notebook = dict[str, Any]


def read(path: Path) -> Notebook:
    """Raises UserError if the file is not a notebook."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UserError(f"is larger than {MOST_BYTES >> 20} MiB; clear its outputs", where=str(path))
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
        if is_lfs_pointer(content):
            raise UserError(f"{LFS_TEXT}; fetch it first: git lfs pull", where=str(path))
        found = json.loads(content)
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); check the path", where=str(path)) from None
    except (ValueError, RecursionError):
        raise UserError("is not a notebook: it is not JSON; save it again with Jupyter", where=str(path)) from None
    if isinstance(found, dict) and "worksheets" in found:
        found = _upgraded(path)
    if not isinstance(found, dict) or not isinstance(found.get("cells"), list):
        raise UserError("is not a notebook: it has no cells; save it again with Jupyter", where=str(path))
    if not all(isinstance(cell, dict) for cell in found["cells"]):
        raise UserError("has an invalid cell; save it again with Jupyter", where=str(path))
    return found


def list_notebooks(folder: Path) -> list[Path]:
    """List the notebooks below a folder, without Jupyter's checkpoints and without hidden folders."""
    found = sorted(
        file
        for file in folder.rglob("*.ipynb")
        if not any(part.startswith(".") for part in file.relative_to(folder).parts) and file.is_file()
    )
    if not found:
        raise UserError("contains no notebook; use an .ipynb file, or another folder", where=str(folder))
    return found


def _upgraded(path: Path) -> Notebook:
    """Read a notebook of version 3 as the runner does."""
    from argosy.features.notebooks.runner import run
    from argosy.features.notebooks.runner.order import OrderError

    try:
        return dict(json.loads(run.written(run.read(str(path)))))
    except OrderError as error:
        raise UserError(str(error)) from None


def write(path: Path, text: str) -> None:
    """Write atomically: readers see the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    place, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(place, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o644 if not path.exists() else path.stat().st_mode & 0o777)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def dumped(notebook: Notebook) -> str:
    """Notebook as JSON in Jupyter's format."""
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"
