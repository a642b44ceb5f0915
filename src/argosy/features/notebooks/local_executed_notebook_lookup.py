"""Loads the executed notebook of a run that ran on this machine.

In: the data folder of a local cluster, a job, the number of a run. Out: a notebook, or None. Never: reads a file
outside of that folder, or more than a limit; raises because a file is invalid.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from argosy.kube.objects import Manifest

MAX_NOTEBOOK_BYTES: Final = 32 << 20
FILE_NAME: Final = "output.ipynb"


def load_executed_notebook(
    data_folder: Path | None, job: Manifest, generation: int, number: int
) -> dict[str, Any] | None:
    if data_folder is None:
        return None
    metadata = job["metadata"]
    uid, namespace, name = (str(metadata.get(field) or "") for field in ("uid", "namespace", "name"))
    parts = (namespace, name, f"{uid[:8]}-{generation}-{number}")
    if any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts):
        return None
    file = data_folder.joinpath("runs", *parts, FILE_NAME)
    try:
        if file.is_symlink() or file.stat().st_size > MAX_NOTEBOOK_BYTES:
            return None
        notebook = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return notebook if isinstance(notebook, dict) else None
