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

from argosy.features.notebooks.local_runs.cleanup import remove
from argosy.features.notebooks.run_backend import Outcome, RunKey, Standing
from argosy.features.notebooks.runner.events import Heard
from argosy.kube.names import ResourceKey

RUN, EVENTS, RESULTS, NOTEBOOK, OUTCOME = "run.json", "events.jsonl", "results.json", "output.ipynb", "outcome.json"
WORK, VOLUMES = "work", "volumes"  # of the run itself, while it runs
_KEPT: Final = ("started", "begun", "cell", "finished")  # events that have no file of their own


class Record:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def work(self) -> Path:
        return self.folder / WORK

    @property
    def volumes(self) -> Path:
        return self.folder / VOLUMES

    def begin(self, run: RunKey) -> None:
        remove(self.folder)
        self.folder.mkdir(parents=True, mode=0o700)
        self.folder.chmod(0o711)  # child processes can pass through, but not list names
        self.note(uid=run.uid, generation=run.generation, attempt=run.attempt)

    def note(self, **facts: Any) -> None:
        self._write(RUN, json.dumps({**self.facts(), **facts}))

    def facts(self) -> dict[str, Any]:
        return self._read(RUN)

    def hear(self, line: str) -> None:
        """Append an event line if its type is stored."""
        if any(line.startswith(f'{{"event": "{name}"') for name in _KEPT):
            with open(self.folder / EVENTS, "a", encoding="utf-8", opener=_private) as file:
                file.write(line + "\n")

    def finish(self, outcome: Outcome, notebook: str | None) -> None:
        self._write(RESULTS, json.dumps(outcome.results, ensure_ascii=False, indent=1) + "\n")
        if notebook:
            self._write(NOTEBOOK, notebook)
        told = {"passed": outcome.passed, "message": outcome.message, "category": outcome.category}
        self._write(OUTCOME, json.dumps({**told, "retriable": outcome.retriable, "artefacts": outcome.artefacts}))

    def standing(self, pod: str) -> Standing:
        """State of a run that no process of ours manages any more."""
        facts = self.facts()
        if not facts:
            return Standing("absent")
        heard = self.heard()
        revision = str(facts.get("revision") or "")
        told = self._read(OUTCOME)
        if not told:
            message = "argosy was stopped while the notebook ran"
            return Standing("lost", tuple(heard.cells), heard.total, pod, revision, message=message)
        artefacts = tuple(told.pop("artefacts", ()))
        outcome = Outcome(**told, results=self._read(RESULTS), artefacts=artefacts)
        return Standing("ended", tuple(heard.cells), heard.total, pod, revision, outcome, outcome.message)

    def heard(self) -> Heard:
        with contextlib.suppress(FileNotFoundError):
            return Heard().hear((self.folder / EVENTS).read_text(encoding="utf-8").splitlines())
        return Heard()

    def clear(self) -> None:
        """Remove the working files, and keep the record."""
        remove(self.work)
        remove(self.volumes)

    def _read(self, name: str) -> dict[str, Any]:
        try:
            found = json.loads((self.folder / name).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return dict(found) if isinstance(found, Mapping) else {}

    def _write(self, name: str, text: str) -> None:
        """Write atomically: a partial file is worse than none."""
        new = self.folder / f".{name}"
        with open(new, "w", encoding="utf-8", opener=_private) as file:
            file.write(text)
        new.replace(self.folder / name)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def folder_of(place: Path, job: ResourceKey, run: RunKey | None) -> Path:
    """Folder `runs/NAMESPACE/JOB/` of a cluster, and below it one folder per run."""
    parts = [job.namespace, job.name, *([f"{run.uid[:8]}-{run}"] if run else ())]
    if any(part in ("", ".", "..") or "/" in part for part in parts):
        raise ValueError(f"{job} cannot be used as a folder name")
    return place.joinpath("runs", *parts)
