"""Record of a run: a small folder that outlives the process that created it.

In: events, results, the executed notebook, the outcome. Out: the same, read again. Never: writable for the notebook.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from argosy.features.notebooks.local_runs.run_folder_removal import remove_folder
from argosy.features.notebooks.run_backend import NotebookRunState, RunKey, RunOutcome
from argosy.features.notebooks.runner.event_stream import RunProgress
from argosy.kube.resource_key import ResourceKey

RUN_FILE, EVENTS_FILE, RESULTS_FILE, NOTEBOOK_FILE, OUTCOME_FILE = (
    "run.json",
    "events.jsonl",
    "results.json",
    "output.ipynb",
    "outcome.json",
)
WORK_FOLDER, VOLUMES_FOLDER = "work", "volumes"  # of the run itself, while it runs
_STORED_EVENTS: Final = ("started", "begun", "cell", "finished")  # events that have no file of their own


class RunRecord:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def work(self) -> Path:
        return self.folder / WORK_FOLDER

    @property
    def volumes(self) -> Path:
        return self.folder / VOLUMES_FOLDER

    def create(self, run: RunKey) -> None:
        remove_folder(self.folder)
        self.folder.mkdir(parents=True, mode=0o700)
        self.folder.chmod(0o711)  # child processes can pass through, but not list names
        self.save_facts(uid=run.uid, generation=run.generation, attempt=run.attempt)

    def save_facts(self, **facts: Any) -> None:
        self._write_atomically(RUN_FILE, json.dumps({**self.load_facts(), **facts}))

    def load_facts(self) -> dict[str, Any]:
        return self._load_json(RUN_FILE)

    def append_event(self, line: str) -> None:
        """Append an event line if its type is stored."""
        if any(line.startswith(f'{{"event": "{name}"') for name in _STORED_EVENTS):
            with open(self.folder / EVENTS_FILE, "a", encoding="utf-8", opener=_open_private) as file:
                file.write(line + "\n")

    def finish(self, outcome: RunOutcome, notebook: str | None) -> None:
        self._write_atomically(RESULTS_FILE, json.dumps(outcome.results, ensure_ascii=False, indent=1) + "\n")
        if notebook:
            self._write_atomically(NOTEBOOK_FILE, notebook)
        outcome_fields = {"passed": outcome.passed, "message": outcome.message, "category": outcome.category}
        self._write_atomically(
            OUTCOME_FILE, json.dumps({**outcome_fields, "retriable": outcome.retriable, "artefacts": outcome.artefacts})
        )

    def load_run_state(self, pod: str) -> NotebookRunState:
        """State of a run that no process of ours manages any more."""
        facts = self.load_facts()
        if not facts:
            return NotebookRunState("absent")
        progress = self.load_progress()
        revision = str(facts.get("revision") or "")
        outcome_fields = self._load_json(OUTCOME_FILE)
        if not outcome_fields:
            message = "argosy was stopped while the notebook ran"
            return NotebookRunState(
                "lost", tuple(progress.cell_events), progress.cell_count, pod, revision, message=message
            )
        artefacts = tuple(outcome_fields.pop("artefacts", ()))
        outcome = RunOutcome(**outcome_fields, results=self._load_json(RESULTS_FILE), artefacts=artefacts)
        return NotebookRunState(
            "ended", tuple(progress.cell_events), progress.cell_count, pod, revision, outcome, outcome.message
        )

    def load_progress(self) -> RunProgress:
        with contextlib.suppress(FileNotFoundError):
            return RunProgress().add_lines((self.folder / EVENTS_FILE).read_text(encoding="utf-8").splitlines())
        return RunProgress()

    def remove_working_files(self) -> None:
        """Remove the working files, and keep the record."""
        remove_folder(self.work)
        remove_folder(self.volumes)

    def _load_json(self, name: str) -> dict[str, Any]:
        try:
            data = json.loads((self.folder / name).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return dict(data) if isinstance(data, Mapping) else {}

    def _write_atomically(self, name: str, text: str) -> None:
        """Write atomically: a partial file is worse than none."""
        temp_file = self.folder / f".{name}"
        with open(temp_file, "w", encoding="utf-8", opener=_open_private) as file:
            file.write(text)
        temp_file.replace(self.folder / name)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def get_run_folder(data_folder: Path, job: ResourceKey, run: RunKey | None) -> Path:
    """Folder `runs/NAMESPACE/JOB/` of a cluster, and below it one folder per run."""
    parts = [job.namespace, job.name, *([f"{run.uid[:8]}-{run}"] if run else ())]
    if any(part in ("", ".", "..") or "/" in part for part in parts):
        raise ValueError(f"{job} cannot be used as a folder name")
    return data_folder.joinpath("runs", *parts)
