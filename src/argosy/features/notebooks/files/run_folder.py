"""Folder of run records: the executed notebook, a report, and the results.

In: a folder, the path of a notebook. Out: paths of a new run, or of the last run. Never: overwrites another run.
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
    """Files of one run, which share a name prefix."""

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
    """Create a run with an unused name."""
    folder.mkdir(parents=True, exist_ok=True)
    if folder == FOLDER and not (ignoring := folder.parent / ".gitignore").exists():
        ignoring.write_text("*\n")  # outputs may contain data that does not belong in Git
    name = f"{notebook.stem}-{now:%Y%m%d-%H%M%S}"
    for number in range(1, 1000):
        run = Run(folder / (name if number == 1 else f"{name}-{number}"))
        try:
            run.record.touch(exist_ok=False)
        except FileExistsError:
            continue
        return run
    raise UserError("has 1000 runs of this second; remove some", where=str(folder))


def keep(run: Run, record: dict[str, Any]) -> None:
    write(run.record, json.dumps(record, ensure_ascii=False, indent=1) + "\n")


def recorded(run: Run) -> dict[str, Any]:
    try:
        found = json.loads(run.record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def failure(record: dict[str, Any]) -> str:
    """Why the outputs of the run should not be accepted; "" if its cells succeeded, whatever the findings."""
    results = record.get("results") or {}
    cells = {each.get("status") for each in results.get("cells") or () if each.get("cell_type") == "code"}
    is_good = results.get("status") in (None, "succeeded") or ("failed" not in cells and "succeeded" in cells)
    return "" if is_good else str(results.get("error") or "no reason was given")


def last(folder: Path, named: str) -> Run:
    """Find the last run by notebook name, with or without suffix, or by a file of the run. Raises UserError."""
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
