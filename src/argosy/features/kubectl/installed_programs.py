"""Finds an installed kubectl, and builds wrapper scripts for missing programs.

In: PATH. Out: the path of kubectl, or the text of a script. Never: takes argosy's script for a real program.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Final

KUBECTL_VARIABLE: Final = "ARGOSY_KUBECTL"  # a path; `none`: ignore installed ones
NO_KUBECTL: Final = "none"
SCRIPT_MARKER: Final = "# made by argosy"


def find_kubectl(path: str | None = None) -> str:
    """Path of kubectl on PATH or next to the Python interpreter (an inactive virtual environment); empty if none."""
    configured = os.environ.get(KUBECTL_VARIABLE, "")
    if configured:
        return "" if configured == NO_KUBECTL else configured
    return find_program("kubectl", path) or _usable_path(Path(sys.executable).parent / "kubectl")


def find_program(name: str, path: str | None = None) -> str:
    """First program of this name on PATH that is not argosy's script; unreadable folders are skipped, as in shells."""
    folders = (os.environ.get("PATH", "") if path is None else path).split(os.pathsep)
    return next(
        (program_path for folder in folders if folder and (program_path := _usable_path(Path(folder) / name))), ""
    )


def render_argosy_script(*arguments: str) -> str:
    """Shell script that runs argosy with these arguments."""
    command = " ".join(shlex.quote(argument) for argument in (sys.executable, "-m", "argosy", *arguments))
    return f'#!/bin/sh\n{SCRIPT_MARKER}\nexec {command} "$@"\n'


def _usable_path(file_path: Path) -> str:
    # Not Path.is_file, which raises for a folder that this user may not look into.
    if not os.path.isfile(file_path) or not os.access(file_path, os.X_OK):
        return ""
    try:
        with file_path.open("rb") as file:
            return "" if SCRIPT_MARKER.encode() in file.read(200) else str(file_path)
    except OSError:
        return str(file_path)  # executable but not readable
