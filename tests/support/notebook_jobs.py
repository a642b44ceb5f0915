"""Notebooks in a small repository, and jobs that run them next to an embedded cluster.

In: cells. Out: a Desk to start, inspect and await jobs. Never: sleeps for a fixed time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from argosy.features.notebooks.local_runs import LocalRuns
from argosy.features.notebooks.notebook_validation_job_parser import API_VERSION, NotebookJob, read_job
from argosy.features.notebooks.run_backend import NotebookRunState, RunKey, RunOutcome
from argosy.kube.client import Cluster
from argosy.kube.controller import ControllerContext, InformerCache
from argosy.kube.controller.clock import SystemClock
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS

NAMESPACE, URL = "ml", "https://git.example.com/notebooks.git"


def notebook(*cells: str | tuple[str, Sequence[str]]) -> str:
    """Return the JSON of a notebook with these code cells; a cell can have tags."""
    code_cells = []
    for number, cell in enumerate(cells):
        source, tags = (cell, ()) if isinstance(cell, str) else cell
        code_cells.append(
            {
                "cell_type": "code", "id": f"cell-{number}", "metadata": {"tags": list(tags)} if tags else {},
                "execution_count": None, "outputs": [], "source": source,
            }
        )  # fmt: skip
    return json.dumps({"cells": code_cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._git("init", "-q", "-b", "main")

    def commit(self, files: Mapping[str, str]) -> str:
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
        self._git("add", "-A")
        self._git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "notebooks")
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=self.folder, check=True, capture_output=True, text=True).stdout


class Desk:
    def __init__(self, cluster: Cluster, runs: LocalRuns, folder: Path, repository: Repository) -> None:
        self.cluster, self.runs, self.folder, self.repository = cluster, runs, folder, repository
        self.context = ControllerContext(cluster, InformerCache(), SystemClock())
        self._attempts: dict[str, int] = {}

    def job(self, path: str = "a.ipynb", name: str = "job", **spec: Any) -> NotebookJob:
        git = {"url": URL, "ref": "main"}
        metadata: Manifest = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "generation": 1}
        metadata["annotations"] = spec.pop("annotations", {})
        spec = {"notebook": {"git": git, "path": path}, "timeout": "60s", **spec}
        return read_job(
            {"apiVersion": API_VERSION, "kind": "NotebookValidationJob", "metadata": metadata, "spec": spec}
        )

    async def begin(self, job: NotebookJob) -> RunKey:
        self._attempts[job.name] = self._attempts.get(job.name, 0) + 1
        run = RunKey(job.uid, 1, self._attempts[job.name])
        await self.runs.start(job, run, self.context)
        return run

    async def becomes(
        self, job: NotebookJob, run: RunKey, is_so: Callable[[NotebookRunState], bool]
    ) -> NotebookRunState:
        async with asyncio.timeout(HANG_SECONDS):
            while not is_so(state := await self.runs.observe(job, run, self.context)):
                assert state.outcome is None, f"it ended: {state.message}"
                await asyncio.sleep(0.02)
        return state

    async def outcome(self, job: NotebookJob) -> RunOutcome:
        run = await self.begin(job)
        state = await self.becomes(job, run, lambda standing: standing.outcome is not None)
        assert state.outcome is not None
        return state.outcome

    async def end(self, job: NotebookJob, run: RunKey | None = None) -> None:
        await self.runs.stop(job.key, run, self.context)


@contextlib.asynccontextmanager
async def desk(folder: Path, files: Mapping[str, str], **settings: str) -> AsyncIterator[Desk]:
    """Open an empty cluster, and local runs that read these files from the repository URL."""
    repository = Repository(folder / "git")
    repository.commit(files)
    data = {"source.mirrors": f"{URL} file://{repository.folder}\n"}
    data |= {f"notebooks.{name}": value for name, value in settings.items()}
    async with EmbeddedCluster.open() as cluster:
        for name in ("argocd", NAMESPACE):
            await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        metadata = {"name": "argosy-cm", "namespace": "argocd"}
        await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        runs = LocalRuns()
        data_folder = folder / "data"
        data_folder.mkdir()
        async with runs.open_backend(data_folder):
            yield Desk(cluster, runs, data_folder, repository)


def marked(word: str) -> list[int]:
    """Return the pids of processes with this argument in their command line."""
    pids = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                pids.append(int(pid))
    return pids
