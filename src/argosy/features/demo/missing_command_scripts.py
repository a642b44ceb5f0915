"""Scripts for PATH: argosy, argocd, oc and kubectl for machines that lack them.

In: a folder. Out: scripts; `oc` and `kubectl` call a real kubectl or argosy's own. Never: shadows an installed program.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from argosy.cli.sandbox_data_folder_and_lock import write_private_text
from argosy.features.kubectl.installed_programs import find_program, render_argosy_script

COMMAND_ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "argosy": (), "argocd": ("--argocd-compat",), "oc": ("oc",), "kubectl": ("kubectl",),
}  # fmt: skip


def write_command_stubs(folder: Path) -> Path:
    """Write the scripts that are missing on PATH; the folder must come last in PATH."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, arguments in COMMAND_ARGUMENTS.items():
        file = folder / name
        file.unlink(missing_ok=True)
        if not find_program(name):
            write_private_text(file, render_argosy_script(*arguments))
            file.chmod(0o700)
    return folder
