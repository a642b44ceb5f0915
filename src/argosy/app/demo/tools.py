"""A folder for PATH: the names that the guides type, whatever this machine has of them.

In: a folder. Out: `oc`, `argocd`, and `kubectl` where there is none. Never: hides a program that is installed.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from argosy.app.folder import write_text

NAMES: Final = ("oc", "argocd", "kubectl")


def put_tools(folder: Path) -> Path:
    """Real ones come first: what is here only fills gaps."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in NAMES:
        place = folder / name
        place.unlink(missing_ok=True)
        if _installed(name, folder):
            continue
        write_text(place, _script(name))
        place.chmod(0o700)
    return folder


def _installed(name: str, folder: Path) -> bool:
    found = shutil.which(name)
    return found is not None and Path(found).parent.resolve() != folder.resolve()


def _script(name: str) -> str:
    python = shlex.quote(sys.executable)
    if name == "argocd":
        return f'#!/bin/sh\nexec {python} -m argosy --argocd-compat "$@"\n'
    return f'#!/bin/sh\nexec {python} -m argosy {name} "$@"\n'
