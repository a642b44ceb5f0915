"""A complete site for browser tests: cluster, engine, repository, cluster view and live updates, on a socket.

In: a folder. Out: a World in its own thread, usable from a test that waits for a browser. Never: mocks a cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any

from argosy.features.serve.http_server import open_listener, serve_application
from argosy.features.serve.routes import build_route_table
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.cluster_view.cluster_view import open_cluster_view
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.web.live_updates.hub import LivePageHub
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from argosy.web.serve_options import ServeOptions
from argosy.web.server_audit_counters_and_limits import ServerState
from argosy.web.site_services import Site
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, Room, engine_room, shared_crew
from support.page_site import KnownPeople, anything, nothing


def may_read(resource: str, action: str, thing: str) -> bool:
    return action == "get"


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """One loop for all sites of this process, because render workers end with the thread that started them."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="sites", daemon=True).start()
    return loop


class World:
    """`do` runs a coroutine of the test in the loop of the site."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.room: Room
        self.site: Site
        self.port = 0
        self.people = KnownPeople({"ann": anything, "rita": may_read, "bob": nothing})
        self._ready: Future[None] = Future()
        self._end = asyncio.Event()
        self._life: Future[None]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, furnish: Callable[[Room], Awaitable[None]]) -> None:
        self._life = asyncio.run_coroutine_threadsafe(self._live(furnish), _loop())
        self._life.add_done_callback(self._ended)
        self._ready.result(HANG_SECONDS)

    def do(self, work: Callable[[Room], Awaitable[Any]]) -> Any:
        return asyncio.run_coroutine_threadsafe(_awaited(work, self.room), _loop()).result(HANG_SECONDS)

    def stop(self) -> None:
        _loop().call_soon_threadsafe(self._end.set)
        self._life.result(HANG_SECONDS)

    def cookies(self, who: str = "ann") -> list[dict[str, Any]]:
        return [{"name": "argosy", "value": who, "url": self.url}]

    def _ended(self, life: Future[None]) -> None:
        if not self._ready.done() and (error := life.exception()):
            self._ready.set_exception(error)

    async def _live(self, furnish: Callable[[Room], Awaitable[None]]) -> None:
        async with contextlib.AsyncExitStack() as stack:
            self.room = await stack.enter_async_context(engine_room(self.folder))
            await furnish(self.room)
            desk = ApplicationService(self.room.cluster, "a test", CONTROL, CONTROL)
            repositories = Repositories(self.folder / "page-mirrors", SourceSettings())
            stack.callback(repositories.close)
            lookout = await stack.enter_async_context(open_cluster_view(desk, repositories, shared_crew()))
            state = ServerState()
            table = build_route_table(state)
            hub = LivePageHub(lookout, table.live_pages)
            stack.push_async_callback(hub.close)
            self.site = Site(desk, lookout, self.people, hub, ServeOptions(version="1.2.3", is_simulated=True), state)
            entry = WebApplication(self.site, table.routes)
            self.port = await stack.enter_async_context(
                serve_application(entry, [open_listener("127.0.0.1", 0)], on_closing=entry.close)
            )
            self._ready.set_result(None)
            await self._end.wait()


async def _awaited(work: Callable[[Room], Awaitable[Any]], room: Room) -> Any:
    return await work(room)


@contextlib.contextmanager
def world(folder: Path, furnish: Callable[[Room], Awaitable[None]]) -> Iterator[World]:
    site_world = World(folder)
    site_world.start(furnish)
    try:
        yield site_world
    finally:
        site_world.stop()
