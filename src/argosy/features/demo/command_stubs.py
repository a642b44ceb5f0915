"""Scripts for PATH: argosy, argocd, oc and kubectl for machines that lack them.

In: a folder. Out: scripts; `oc` and `kubectl` call a real kubectl or argosy's own. Never: shadows an installed program.
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
    """Write the scripts that are missing on PATH; the folder must come last in PATH."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, words in WORDS.items():
        place = folder / name
        place.unlink(missing_ok=True)
        if not real_program(name):
            write_text(place, script(*words))
            place.chmod(0o700)
    return folder
