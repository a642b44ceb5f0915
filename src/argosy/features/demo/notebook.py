"""Example notebook of the demo: a training that fails silently if its learning rate is too high.

In: the folder of a demo. Out: the notebook in it. Never: overwrites an edited notebook.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from argosy.cli.data_folder import write_text

NOTEBOOK: Final = "notebooks/train.ipynb"


def put_notebook(root: Path) -> None:
    place = root / NOTEBOOK
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_text(place, (files("argosy.features.demo") / "train.ipynb.template").read_text())


def notebook_to_try(root: Path) -> str:
    """Path of the notebook; empty if it does not exist or notebooks cannot run here."""
    can_run = all(find_spec(each) for each in ("nbclient", "nbformat", "ipykernel"))
    return str(root / NOTEBOOK) if can_run and (root / NOTEBOOK).exists() else ""
