"""Which kubectl this machine has, and scripts that stand in for what it has not.

In: PATH. Out: the path of a real kubectl, or the text of a script. Never: takes a script of ours for a real program.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Final

SETTING: Final = "ARGOSY_KUBECTL"  # a path; `none`: act as if there were no kubectl here
NONE: Final = "none"
MARK: Final = "# made by argosy"


def real_kubectl(path: str | None = None) -> str:
    """On PATH, or beside the Python that runs this: a virtual environment need not be active. Empty: there is none."""
    wish = os.environ.get(SETTING, "")
    if wish:
        return "" if wish == NONE else wish
    return real_program("kubectl", path) or _usable(Path(sys.executable).parent / "kubectl")


def real_program(name: str, path: str | None = None) -> str:
    """The first in PATH that is no script of ours; a folder that cannot be looked into is skipped, as shells do."""
    folders = (os.environ.get("PATH", "") if path is None else path).split(os.pathsep)
    return next((found for folder in folders if folder and (found := _usable(Path(folder) / name))), "")


def script(*words: str) -> str:
    """A program of ours under another name."""
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
        return str(place)  # it may be run, and not read
