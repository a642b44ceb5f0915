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
from argosy.features.notebooks.local_runs.checkout import NotebookRepositories
from argosy.features.notebooks.local_runs.run import LocalRun
from argosy.features.notebooks.local_runs.run_folder_removal import remove_folder
from argosy.features.notebooks.local_runs.run_record_folder import RunRecord, get_run_folder
from argosy.features.notebooks.local_runs.slots import RunSlots
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.run_backend import NotebookRunState, RunKey, build_pod_name
from argosy.kube.controller import ControllerContext
from argosy.kube.resource_key import ResourceKey


class LocalRuns:
    """Implements RunBackend. `open_backend` must be active."""

    def __init__(self) -> None:
        self._data_folder: Path | None = None
        self._repositories: NotebookRepositories | None = None
        self._slots = RunSlots()
        self._runs: dict[tuple[ResourceKey, RunKey], LocalRun] = {}

    @property
    def is_open(self) -> bool:
        return self._data_folder is not None

    @asynccontextmanager
    async def open_backend(self, folder: Path) -> AsyncIterator[None]:
        """Allow runs while the context is active; `folder` is the data folder of the cluster."""
        self._data_folder, self._repositories, self._slots = (
            folder,
            NotebookRepositories(folder / "mirrors"),
            RunSlots(),
        )
        await asyncio.to_thread(_clear_working_files, folder / "runs")
        try:
            yield
        finally:
            await asyncio.gather(*(life.stop() for life in self._runs.values()))
            self._runs.clear()
            self._repositories.close()
            self._data_folder = None

    async def start(self, job: NotebookJob, run: RunKey, context: ControllerContext) -> None:
        data_folder, repositories = self._require_open_backend()
        if (job.key, run) in self._runs:
            return
        record = RunRecord(get_run_folder(data_folder, job.key, run))
        if record.load_run_state("").state == "ended":
            return
        local_run = LocalRun(job, run, record, data_folder / "volumes", repositories, self._slots)
        self._runs[job.key, run] = local_run
        local_run.start(context.cluster)

    async def observe(self, job: NotebookJob, run: RunKey, context: ControllerContext) -> NotebookRunState:
        data_folder, _ = self._require_open_backend()
        local_run = self._runs.get((job.key, run))
        pod = build_pod_name(job.name)
        return (
            local_run.get_run_state(pod)
            if local_run
            else RunRecord(get_run_folder(data_folder, job.key, run)).load_run_state(pod)
        )

    async def stop(self, job: ResourceKey, run: RunKey | None, context: ControllerContext) -> None:
        data_folder, _ = self._require_open_backend()
        keys = [key for key in self._runs if key[0] == job and run in (None, key[1])]
        await asyncio.gather(*(self._runs.pop(key).stop() for key in keys))
        await asyncio.to_thread(remove_folder, get_run_folder(data_folder, job, run))

    def _require_open_backend(self) -> tuple[Path, NotebookRepositories]:
        if self._data_folder is None or self._repositories is None:
            raise TransientError("notebooks: the local backend has not started yet; try again")
        return self._data_folder, self._repositories


def _clear_working_files(runs: Path) -> None:
    """Remove files of runs that an earlier process could not remove; these runs are lost."""
    for folder in runs.glob("*/*/*/"):
        RunRecord(folder).remove_working_files()
