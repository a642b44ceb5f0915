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
from argosy.gitops.application.lfs_pointers import LFS_POINTER_MESSAGE, is_lfs_pointer

MAX_NOTEBOOK_BYTES: Final = 64 << 20
NotebookData = dict[str, Any]


def load_notebook(path: Path) -> NotebookData:
    """Raises UserError if the file is not a notebook."""
    try:
        if path.stat().st_size > MAX_NOTEBOOK_BYTES:
            raise UserError(f"is larger than {MAX_NOTEBOOK_BYTES >> 20} MiB; clear its outputs", where=str(path))
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
        if is_lfs_pointer(content):
            raise UserError(f"{LFS_POINTER_MESSAGE}; fetch it first: git lfs pull", where=str(path))
        notebook = json.loads(content)
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); check the path", where=str(path)) from None
    except (ValueError, RecursionError):
        raise UserError("is not a notebook: it is not JSON; save it again with Jupyter", where=str(path)) from None
    if isinstance(notebook, dict) and "worksheets" in notebook:
        notebook = _load_version_3(path)
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise UserError("is not a notebook: it has no cells; save it again with Jupyter", where=str(path))
    if not all(isinstance(cell, dict) for cell in notebook["cells"]):
        raise UserError("has an invalid cell; save it again with Jupyter", where=str(path))
    return notebook


def list_notebooks(folder: Path) -> list[Path]:
    """List the notebooks below a folder, without Jupyter's checkpoints and without hidden folders."""
    notebooks = sorted(
        file
        for file in folder.rglob("*.ipynb")
        if not any(part.startswith(".") for part in file.relative_to(folder).parts) and file.is_file()
    )
    if not notebooks:
        raise UserError("contains no notebook; use an .ipynb file, or another folder", where=str(folder))
    return notebooks


def _load_version_3(path: Path) -> NotebookData:
    """Read a notebook of version 3 as the runner does."""
    from argosy.features.notebooks.runner import run_of_notebook
    from argosy.features.notebooks.runner.run_request import RunRequestError

    try:
        return dict(json.loads(run_of_notebook.dump_notebook(run_of_notebook.read_notebook(str(path)))))
    except RunRequestError as error:
        raise UserError(str(error)) from None


def write_atomically(path: Path, text: str) -> None:
    """Write atomically: readers see the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temp_fd, temp_path = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(temp_fd, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temp_path, 0o644 if not path.exists() else path.stat().st_mode & 0o777)
        os.replace(temp_path, path)
    except BaseException:
        Path(temp_path).unlink(missing_ok=True)
        raise


def dump_notebook(notebook: NotebookData) -> str:
    """Notebook as JSON in Jupyter's format."""
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"
