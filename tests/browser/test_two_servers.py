"""Two `argosy serve` on one cluster: an open page survives a restart of its server and misses no change."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.app_commands import write_kubeconfig
from support.clusters import environment, served
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL
from support.failure_report import record_log
from support.forked_commands import start

OpenPage = Callable[..., Any]
KEY = ResourceKey("argoproj.io", "Application", CONTROL, "models")
APP: dict[str, Any] = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Application",
    "metadata": {"name": "models", "namespace": CONTROL},
    "spec": {
        "project": "default",
        "source": {"repoURL": "https://git.invalid/models", "path": "app"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
    },
    "status": {"sync": {"status": "OutOfSync"}, "health": {"status": "Progressing"}},
}
AWAY = ["Failed to load resource", "ERR_"]


class Plane:
    """A cluster with one Application, in its own event loop."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._stack = contextlib.AsyncExitStack()
        self.cluster: EmbeddedCluster
        self.run(self._open())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(HANG_SECONDS)

    async def _open(self) -> None:
        served_plane = await self._stack.enter_async_context(served(self.folder / "plane"))
        self.cluster = EmbeddedCluster(served_plane.plane)
        for name in ("applications.argoproj.io", "appprojects.argoproj.io"):
            await self.cluster.create(load_definition(name))
        await self.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CONTROL}})
        await self.cluster.create(APP)
        write_kubeconfig(self.folder / "kubeconfig", served_plane)

    def say(self, sync: str) -> None:
        self.run(self.cluster.patch(KEY, {"status": {"sync": {"status": sync}}}))

    def close(self) -> None:
        self.run(self._stack.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    new_plane = Plane(tmp_path)
    yield new_plane
    new_plane.close()


@contextlib.contextmanager
def serving(plane: Plane, port: int = 0) -> Iterator[str]:
    """Run `argosy serve` and yield the printed login URL."""
    words = ["serve", "--kubeconfig", str(plane.folder / "kubeconfig"), "--port", str(port), "--no-browser"]
    with record_log(plane.folder / "log").open("a") as log:
        process = start([*words, "-n", CONTROL], env=environment(plane.folder), stderr=log.fileno())
    try:
        printed = ""
        while "Ctrl-C" not in printed:
            line = process.stdout.readline()
            assert line, printed
            printed += line
        (entrance,) = re.findall(r"page +(http\S+)", printed)
        yield str(entrance)
    finally:
        process.kill()  # SIGKILL: no orderly shutdown
        process.wait()
        process.stdout.close()


def _enter(page: Any, entrance: str) -> None:
    page.goto(entrance)
    page.wait_for_url("**/apps")  # otherwise the redirect would abort the next navigation


@pytest.mark.tier("all")
def test_page_survives_a_server_restart_and_catches_up(plane: Plane, open_page: OpenPage) -> None:
    page, other = open_page(), open_page()
    for window in (page, other):
        window.expected += AWAY
    head = "#app-head:has-text('{}')"
    with serving(plane) as second:
        _enter(other, second)
        with serving(plane) as first:
            _enter(page, first)
            page.goto(f"{first.partition('/enter')[0]}/apps/{CONTROL}/models")
            other.goto(f"{second.partition('/enter')[0]}/apps/{CONTROL}/models")
            for window in (page, other):
                window.wait_for_selector("#pulse[data-state=live]")
            plane.say("Unknown")
            for window in (page, other):
                window.wait_for_selector(head.format("Unknown"))
        plane.say("Synced")  # the server of the first page is down
        other.wait_for_selector(head.format("Synced"))
        page.wait_for_selector("html.is-stale")
        assert "Unknown" in page.inner_text("#app-head")
        port = int(first.partition("/enter")[0].rpartition(":")[2])
        with serving(plane, port):
            page.wait_for_selector(head.format("Synced"))
            page.wait_for_selector("#pulse[data-state=live]")
            plane.say("OutOfSync")
            for window in (page, other):
                window.wait_for_selector(head.format("OutOfSync"))
