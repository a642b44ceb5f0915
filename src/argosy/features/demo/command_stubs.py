"""A folder for PATH: the names that the guides type, where this machine has none of them.

In: a folder. Out: `argosy`, also as `argocd`; `oc` and `kubectl`, which call a real kubectl or are a small one.
Never: hides a program that is installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from argosy.cli.data_folder import write_text
from argosy.features.kubectl.installed_programs import real_program, script

WORDS: Final[dict[str, tuple[str, ...]]] = {
    "argosy": (), "argocd": ("--argocd-compat",), "oc": ("oc",), "kubectl": ("kubectl",),
}  # fmt: skip


def put_tools(folder: Path) -> Path:
    """The folder comes last in PATH: what is here only fills gaps."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, words in WORDS.items():
        place = folder / name
        place.unlink(missing_ok=True)
        if not real_program(name):
            write_text(place, script(*words))
            place.chmod(0o700)
    return folder
