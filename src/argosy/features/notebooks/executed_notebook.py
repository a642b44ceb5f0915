"""Loads the executed notebook of a run that ran on this machine.

In: the data folder of a local cluster, a job, the number of a run. Out: a notebook, or None. Never: reads a file
outside of that folder, or more than a limit; raises because a file is invalid.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from argosy.kube.objects import Manifest

MOST_BYTES: Final = 32 << 20
NAME: Final = "output.ipynb"


def executed(place: Path | None, job: Manifest, generation: int, number: int) -> dict[str, Any] | None:
    if place is None:
        return None
    metadata = job["metadata"]
    uid, namespace, name = (str(metadata.get(field) or "") for field in ("uid", "namespace", "name"))
    parts = (namespace, name, f"{uid[:8]}-{generation}-{number}")
    if any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts):
        return None
    file = place.joinpath("runs", *parts, NAME)
    try:
        if file.is_symlink() or file.stat().st_size > MOST_BYTES:
            return None
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
