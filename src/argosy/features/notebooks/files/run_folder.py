"""What is kept of a run: the executed notebook, a report, and what came of it.

In: a folder, a notebook's path. Out: paths of a new run, or the run that was last. Never: writes over another run.
"""

from __future__ import annotations

import glob
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.notebooks.files.notebook_file import write

FOLDER: Final = Path(".argosy") / "runs"


@dataclass(frozen=True)
class Run:
    """Files of one run, by their common beginning."""

    start: Path

    @property
    def executed(self) -> Path:
        return self._with(".ipynb")

    @property
    def report(self) -> Path:
        return self._with(".html")

    @property
    def junit(self) -> Path:
        return self._with(".xml")

    @property
    def record(self) -> Path:
        return self._with(".json")

    def _with(self, ending: str) -> Path:
        return self.start.with_name(self.start.name + ending)


def begin(folder: Path, notebook: Path, now: datetime) -> Run:
    """A run whose names nobody has yet."""
    folder.mkdir(parents=True, exist_ok=True)
    if folder == FOLDER and not (ignoring := folder.parent / ".gitignore").exists():
        ignoring.write_text("*\n")  # outputs may hold what does not belong into Git
    name = f"{notebook.stem}-{now:%Y%m%d-%H%M%S}"
    for number in range(1, 1000):
        run = Run(folder / (name if number == 1 else f"{name}-{number}"))
        try:
            run.record.touch(exist_ok=False)
        except FileExistsError:
            continue
        return run
    raise UserError("has a thousand runs of this second; remove some", where=str(folder))


def keep(run: Run, record: dict[str, Any]) -> None:
    write(run.record, json.dumps(record, ensure_ascii=False, indent=1) + "\n")


def recorded(run: Run) -> dict[str, Any]:
    try:
        found = json.loads(run.record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def failure(record: dict[str, Any]) -> str:
    """Why the run's outputs are not worth keeping; nothing where its cells went well, whatever was found in them."""
    results = record.get("results") or {}
    cells = {each.get("status") for each in results.get("cells") or () if each.get("cell_type") == "code"}
    is_good = results.get("status") in (None, "succeeded") or ("failed" not in cells and "succeeded" in cells)
    return "" if is_good else str(results.get("error") or "no reason was given")


def last(folder: Path, named: str) -> Run:
    """By the notebook's name, with or without its ending, or by a file of the run. Raises UserError."""
    given = Path(named)
    whole = Run(given.with_name(_without_ending(given.name)))
    if given.name != named and whole.executed.exists() and "results" in recorded(whole):
        return whole
    stem = _without_ending(given.name)
    runs = [Run(each.with_name(_without_ending(each.name))) for each in folder.glob(f"{glob.escape(stem)}-[0-9]*.json")]
    found = [run for run in runs if run.executed.exists()]
    if not found:
        raise UserError(f"has no run in {folder}; run it first: argosy notebook run {named}", where=named)
    return max(found, key=lambda run: (run.record.stat().st_mtime, run.start.name))


def _without_ending(name: str) -> str:
    for ending in (".ipynb", ".html", ".xml", ".json"):
        name = name.removesuffix(ending)
    return name
