"""Web UI of the demo: starts while the engine syncs, and runs until the demo stops.

In: the demo's cluster and folder. Out: its URL, once it is ready. Never: delays the end of the demo.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from argosy.cli.sandbox_data_folder_and_lock import DataFolder, RunningInstance
from argosy.kube.client import Cluster

PAGE_FOLDER: Final = "page"


class DemoWebServer:
    def __init__(self) -> None:
        self.url = ""
        self.stop_event = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._ready_event = asyncio.Event()

    async def serve(self, cluster: Cluster, folder: DataFolder, port: int | None, repository: Path) -> None:
        from argosy.features.serve.web_server_run import WebServerOptions, serve_web

        options = WebServerOptions(
            port=port,
            folder=folder.root / PAGE_FOLDER,
            is_simulated=True,
            repository=repository,
            notebook_runs=folder.root,
        )
        async with serve_web(cluster, "the demo", options) as running_server:
            self.url = running_server.url
            self._ready_event.set()
            await self.stop_event.wait()

    async def wait_until_ready(self) -> None:
        """Wait until the server is ready. Raises its startup error."""
        assert self.task
        ready_task = asyncio.create_task(self._ready_event.wait())
        await asyncio.wait({self.task, ready_task}, return_when=asyncio.FIRST_COMPLETED)
        ready_task.cancel()
        if self.task.done():
            self.task.result()


@contextlib.asynccontextmanager
async def run_web_server(
    cluster: Cluster, folder: DataFolder, port: int | None, repository: Path
) -> AsyncIterator[DemoWebServer]:
    web_server = DemoWebServer()
    web_server.task = asyncio.create_task(web_server.serve(cluster, folder, port, repository), name="page")
    try:
        yield web_server
    finally:
        web_server.stop_event.set()
        if not web_server.url:
            web_server.task.cancel()
        await asyncio.gather(web_server.task, return_exceptions=True)


def web_server_folder(run: RunningInstance) -> Path:
    return Path(run.data_dir) / PAGE_FOLDER


def create_login_url(run: RunningInstance) -> str:
    """URL with a one-time login code."""
    from argosy.features.serve.running_server_login_urls import create_login_url

    return create_login_url(run.url, web_server_folder(run))
