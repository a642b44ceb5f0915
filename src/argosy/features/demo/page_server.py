"""Web UI of the demo: starts while the engine syncs, and runs until the demo stops.

In: the demo's cluster and folder. Out: its URL, once it is ready. Never: delays the end of the demo.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from argosy.cli.data_folder import DataFolder, Run
from argosy.kube.client import Cluster

FOLDER: Final = "page"


class Page:
    def __init__(self) -> None:
        self.url = ""
        self.is_over = asyncio.Event()
        self.work: asyncio.Task[None] | None = None
        self._is_ready = asyncio.Event()

    async def serve(self, cluster: Cluster, folder: DataFolder, port: int | None, repository: Path) -> None:
        from argosy.features.serve.process import PageOptions, serving

        options = PageOptions(
            port=port, folder=folder.root / FOLDER, is_simulated=True, repository=repository, runs=folder.root
        )
        async with serving(cluster, "the demo", options) as served:
            self.url = served.url
            self._is_ready.set()
            await self.is_over.wait()

    async def ready(self) -> None:
        """Wait until the server is ready. Raises its startup error."""
        assert self.work
        waiting = asyncio.create_task(self._is_ready.wait())
        await asyncio.wait({self.work, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self.work.done():
            self.work.result()


@contextlib.asynccontextmanager
async def beside(cluster: Cluster, folder: DataFolder, port: int | None, repository: Path) -> AsyncIterator[Page]:
    page = Page()
    page.work = asyncio.create_task(page.serve(cluster, folder, port, repository), name="page")
    try:
        yield page
    finally:
        page.is_over.set()
        if not page.url:
            page.work.cancel()
        await asyncio.gather(page.work, return_exceptions=True)


def page_folder(run: Run) -> Path:
    return Path(run.data_dir) / FOLDER


def entrance_of(run: Run) -> str:
    """URL with a one-time login code."""
    from argosy.features.serve.local_login import entrance

    return entrance(run.url, page_folder(run))
