"""A folder for PATH: the names that the guides type, where this machine has none of them.

In: a folder. Out: `argocd`, which is argosy, and `oc`, which is kubectl. Never: hides a program that is installed.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from argosy.app.folder import write_text

NAMES: Final = ("argocd", "oc")


def put_tools(folder: Path) -> Path:
    """The folder comes last in PATH: what is here only fills gaps."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in NAMES:
        place = folder / name
        place.unlink(missing_ok=True)
        if script := "" if shutil.which(name) else _script(name):
            write_text(place, script)
            place.chmod(0o700)
    return folder


def _script(name: str) -> str:
    if name == "argocd":
        return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m argosy --argocd-compat "$@"\n'
    kubectl = _kubectl()
    return f'#!/bin/sh\nexec {shlex.quote(kubectl)} "$@"\n' if kubectl else ""


def _kubectl() -> str:
    """On PATH, or beside the Python that runs this: a virtual environment need not be active."""
    return shutil.which("kubectl") or shutil.which("kubectl", path=str(Path(sys.executable).parent)) or ""
