"""Reads the sources of notebook cells from Git at the commit of a run.

In: a request for a job, and one of its runs. Out: cells without outputs, and a note that says where they come from or
why they are missing. Never: reads a repository that the project of the job's Application does not permit, because its
author could read other repositories with the installation's credentials; returns outputs saved with the notebook;
delays a page.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Final, NamedTuple

from argosy.errors import ArgosyError
from argosy.features.notebooks.job_views import RunView
from argosy.features.notebooks.sanitized_cells import DisplayCell, list_cells_without_outputs
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.policy.projects import permits_source
from argosy.gitops.source.git.refs import COMMIT_ID
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.web.objects_of_visible_applications import find_owning_application
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import read_project_name

PAGE_WAIT_SECONDS: Final = 2.0
RETRY_SECONDS: Final = 60.0  # before a failed repository is read again
MAX_NOTEBOOKS: Final = 64  # kept in memory
MAX_NOTEBOOK_BYTES: Final = 32 << 20
OUTPUTS_NOTE: Final = "Images and HTML are stored where the notebook ran."


class NotebookAddress(NamedTuple):
    url: str
    project: str
    commit: str
    path: str


@dataclass(frozen=True)
class SourceCells:
    cells: tuple[DisplayCell, ...] = ()
    note: str = ""
    retry_at: float = float("inf")  # monotonic seconds


class NotebookSources:
    """Cache of notebooks that pages requested. A commit never changes; failures are retried."""

    def __init__(self) -> None:
        self._cache: dict[NotebookAddress, SourceCells] = {}
        self._tasks: dict[NotebookAddress, asyncio.Task[SourceCells]] = {}

    async def find(self, repositories: Repositories, address: NotebookAddress) -> SourceCells:
        cached = self._cache.get(address)
        if cached is not None and cached.retry_at > time.monotonic():
            return cached
        task = self._tasks.get(address)
        if task is None:
            task = self._tasks[address] = asyncio.create_task(self._fetch(repositories, address))
        done, _ = await asyncio.wait([task], timeout=PAGE_WAIT_SECONDS)
        if not done:
            return SourceCells(note=f"Fetching the sources from {address.url}; reload the page in a moment.")
        return task.result()

    async def _fetch(self, repositories: Repositories, address: NotebookAddress) -> SourceCells:
        try:
            sources = await fetch_cells(repositories, address)
        except ArgosyError as error:
            sources = SourceCells(note=f"Cannot read the sources: {error}", retry_at=time.monotonic() + RETRY_SECONDS)
        finally:
            self._tasks.pop(address, None)
        while len(self._cache) >= MAX_NOTEBOOKS:
            del self._cache[next(iter(self._cache))]
        self._cache[address] = sources
        return sources


async def fetch_cells(repositories: Repositories, address: NotebookAddress) -> SourceCells:
    """Raises SourceError if the repository or the commit cannot be read."""
    mirror = repositories.mirror(address.url, project=address.project)
    checkout = await mirror.checkout(address.commit)
    return await asyncio.to_thread(_read_cells, checkout.tree, address)


def _read_cells(tree: FileTree, address: NotebookAddress) -> SourceCells:
    entry = tree.find_entry(address.path)
    if entry is None or entry.kind != "file":
        return SourceCells(note=f"Cannot read the sources: {address.path} is not a file at {address.commit[:7]}.")
    content = tree.read_file(address.path)
    try:
        notebook = json.loads(content) if len(content) <= MAX_NOTEBOOK_BYTES else None
    except (ValueError, RecursionError):
        notebook = None
    if not isinstance(notebook, dict):
        return SourceCells(note=f"Cannot read the sources: {address.path} is not a notebook, or is too large.")
    return SourceCells(
        list_cells_without_outputs(notebook), f"Sources from Git at {address.commit[:7]}. {OUTPUTS_NOTE}"
    )


async def load_run_sources(request: RequestContext, view: RunView, sources: NotebookSources) -> SourceCells:
    """The sources of the run that a page shows; `request.subject` is its job."""
    if view.attempt is None:
        return SourceCells()
    row, commit = view.row, view.attempt.commit
    if not (row.url and row.notebook and COMMIT_ID.fullmatch(commit)):
        return SourceCells(note="The commit of this run is unknown, so its sources cannot be read from Git.")
    app = find_owning_application(request, request.subject)
    if app is None:
        return SourceCells(note="This job belongs to no Application, so no project permits reading its repository.")
    settings, name = request.cluster_view.rules, read_project_name(app)
    project = settings.projects.get(name)
    if project is None or not permits_source(project, row.url):
        return SourceCells(note=f"Sources are hidden: repository {row.url} is not permitted in project {name}.")
    address = NotebookAddress(row.url, name, commit, row.notebook)
    return await sources.find(settings.repositories, address)
