"""Backend that runs notebooks as confined local processes next to the embedded cluster.

In: jobs. Out: the state of their runs. Never: leaves a process after `open_backend` or this process ends; gives
notebook code more access than its job has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from argosy.errors import TransientError
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.local_runs.checkout import Sources
from argosy.features.notebooks.local_runs.cleanup import remove
from argosy.features.notebooks.local_runs.records import Record, folder_of
from argosy.features.notebooks.local_runs.run import Life
from argosy.features.notebooks.local_runs.slots import Slots
from argosy.features.notebooks.run_backend import RunKey, Standing, pod_name
from argosy.kube.controller import Context
from argosy.kube.names import ResourceKey


class LocalRuns:
    """Implements RunBackend. `open_backend` must be active."""

    def __init__(self) -> None:
        self._place: Path | None = None
        self._sources: Sources | None = None
        self._slots = Slots()
        self._lives: dict[tuple[ResourceKey, RunKey], Life] = {}

    @property
    def is_open(self) -> bool:
        return self._place is not None

    @asynccontextmanager
    async def beside(self, folder: Path) -> AsyncIterator[None]:
        """Allow runs while the context is active; `folder` is the data folder of the cluster."""
        self._place, self._sources, self._slots = folder, Sources(folder / "mirrors"), Slots()
        await asyncio.to_thread(_clear, folder / "runs")
        try:
            yield
        finally:
            await asyncio.gather(*(life.end() for life in self._lives.values()))
            self._lives.clear()
            self._sources.close()
            self._place = None

    async def start(self, job: Job, run: RunKey, context: Context) -> None:
        place, sources = self._opened()
        if (job.key, run) in self._lives:
            return
        record = Record(folder_of(place, job.key, run))
        if record.standing("").state == "ended":
            return
        life = Life(job, run, record, place / "volumes", sources, self._slots)
        self._lives[job.key, run] = life
        life.begin(context.cluster)

    async def look(self, job: Job, run: RunKey, context: Context) -> Standing:
        place, _ = self._opened()
        life = self._lives.get((job.key, run))
        pod = pod_name(job.name)
        return life.standing(pod) if life else Record(folder_of(place, job.key, run)).standing(pod)

    async def end(self, job: ResourceKey, run: RunKey | None, context: Context) -> None:
        place, _ = self._opened()
        ending = [key for key in self._lives if key[0] == job and run in (None, key[1])]
        await asyncio.gather(*(self._lives.pop(key).end() for key in ending))
        await asyncio.to_thread(remove, folder_of(place, job, run))

    def _opened(self) -> tuple[Path, Sources]:
        if self._place is None or self._sources is None:
            raise TransientError("notebooks: the local backend has not started yet; try again")
        return self._place, self._sources


def _clear(runs: Path) -> None:
    """Remove files of runs that an earlier process could not remove; these runs are lost."""
    for folder in runs.glob("*/*/*/"):
        Record(folder).clear()
