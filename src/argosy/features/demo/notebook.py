"""A notebook to try: a training that fails silently where its steps are too long.

In: the folder of a demo. Out: the notebook in it. Never: overwrites what a user made of it.
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
    """Its path, where there is one and notebooks can be run; else nothing."""
    can_run = all(find_spec(each) for each in ("nbclient", "nbformat", "ipykernel"))
    return str(root / NOTEBOOK) if can_run and (root / NOTEBOOK).exists() else ""
