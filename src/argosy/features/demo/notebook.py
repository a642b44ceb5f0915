"""Example notebook of the demo: a training that fails silently if its learning rate is too high.

In: the folder of a demo. Out: the notebook in it. Never: overwrites an edited notebook.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from argosy.cli.sandbox_data_folder_and_lock import write_private_text

NOTEBOOK_PATH: Final = "notebooks/train.ipynb"


def write_notebook(root: Path) -> None:
    file = root / NOTEBOOK_PATH
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private_text(file, (files("argosy.features.demo") / "train.ipynb.template").read_text())


def find_runnable_notebook(root: Path) -> str:
    """Path of the notebook; empty if it does not exist or notebooks cannot run here."""
    can_run = all(find_spec(module_name) for module_name in ("nbclient", "nbformat", "ipykernel"))
    return str(root / NOTEBOOK_PATH) if can_run and (root / NOTEBOOK_PATH).exists() else ""
