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
from argosy.features.notebooks.files.notebook_file import write_atomically

DEFAULT_FOLDER: Final = Path(".argosy") / "runs"


@dataclass(frozen=True)
class RunFiles:
    """Files of one run, which share a name prefix."""

    path_prefix: Path

    @property
    def executed(self) -> Path:
        return self._with_suffix(".ipynb")

    @property
    def report(self) -> Path:
        return self._with_suffix(".html")

    @property
    def junit(self) -> Path:
        return self._with_suffix(".xml")

    @property
    def record(self) -> Path:
        return self._with_suffix(".json")

    def _with_suffix(self, suffix: str) -> Path:
        return self.path_prefix.with_name(self.path_prefix.name + suffix)


def create_run(folder: Path, notebook: Path, now: datetime) -> RunFiles:
    """Create a run with an unused name."""
    folder.mkdir(parents=True, exist_ok=True)
    if folder == DEFAULT_FOLDER and not (gitignore := folder.parent / ".gitignore").exists():
        gitignore.write_text("*\n")  # outputs may contain data that does not belong in Git
    name = f"{notebook.stem}-{now:%Y%m%d-%H%M%S}"
    for number in range(1, 1000):
        run = RunFiles(folder / (name if number == 1 else f"{name}-{number}"))
        try:
            run.record.touch(exist_ok=False)
        except FileExistsError:
            continue
        return run
    raise UserError("has 1000 runs of this second; remove some", where=str(folder))


def save_record(run: RunFiles, record: dict[str, Any]) -> None:
    write_atomically(run.record, json.dumps(record, ensure_ascii=False, indent=1) + "\n")


def load_record(run: RunFiles) -> dict[str, Any]:
    try:
        record = json.loads(run.record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def find_reason_not_to_accept(record: dict[str, Any]) -> str:
    """Why the outputs of the run should not be accepted; "" if its cells succeeded, whatever the findings."""
    results = record.get("results") or {}
    cell_statuses = {cell.get("status") for cell in results.get("cells") or () if cell.get("cell_type") == "code"}
    is_acceptable = results.get("status") in (None, "succeeded") or (
        "failed" not in cell_statuses and "succeeded" in cell_statuses
    )
    return "" if is_acceptable else str(results.get("error") or "no reason was given")


def find_last_run(folder: Path, name: str) -> RunFiles:
    """Find the last run by notebook name, with or without suffix, or by a file of the run. Raises UserError."""
    path = Path(name)
    named_run = RunFiles(path.with_name(_strip_suffix(path.name)))
    if path.name != name and named_run.executed.exists() and "results" in load_record(named_run):
        return named_run
    stem = _strip_suffix(path.name)
    runs = [
        RunFiles(record_path.with_name(_strip_suffix(record_path.name)))
        for record_path in folder.glob(f"{glob.escape(stem)}-[0-9]*.json")
    ]
    complete_runs = [run for run in runs if run.executed.exists()]
    if not complete_runs:
        raise UserError(f"has no run in {folder}; run it first: argosy notebook run {name}", where=name)
    return max(complete_runs, key=lambda run: (run.record.stat().st_mtime, run.path_prefix.name))


def _strip_suffix(name: str) -> str:
    for suffix in (".ipynb", ".html", ".xml", ".json"):
        name = name.removesuffix(suffix)
    return name
