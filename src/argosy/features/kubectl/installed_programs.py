"""Finds an installed kubectl, and builds wrapper scripts for missing programs.

In: PATH. Out: the path of kubectl, or the text of a script. Never: takes argosy's script for a real program.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Final

SETTING: Final = "ARGOSY_KUBECTL"  # a path; `none`: ignore installed ones
NONE: Final = "none"
MARK: Final = "# made by argosy"


def real_kubectl(path: str | None = None) -> str:
    """Path of kubectl on PATH or next to the Python interpreter (an inactive virtual environment); empty if none."""
    wish = os.environ.get(SETTING, "")
    if wish:
        return "" if wish == NONE else wish
    return real_program("kubectl", path) or _usable(Path(sys.executable).parent / "kubectl")


def real_program(name: str, path: str | None = None) -> str:
    """First program of this name on PATH that is not argosy's script; unreadable folders are skipped, as in shells."""
    folders = (os.environ.get("PATH", "") if path is None else path).split(os.pathsep)
    return next((found for folder in folders if folder and (found := _usable(Path(folder) / name))), "")


def script(*words: str) -> str:
    """Shell script that runs argosy with these arguments."""
    command = " ".join(shlex.quote(word) for word in (sys.executable, "-m", "argosy", *words))
    return f'#!/bin/sh\n{MARK}\nexec {command} "$@"\n'


def _usable(place: Path) -> str:
    # Not Path.is_file, which raises for a folder that this user may not look into.
    if not os.path.isfile(place) or not os.access(place, os.X_OK):
        return ""
    try:
        with place.open("rb") as file:
            return "" if MARK.encode() in file.read(200) else str(place)
    except OSError:
        return str(place)  # executable but not readable
