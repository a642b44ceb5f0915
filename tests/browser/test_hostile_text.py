"""Texts that try to become part of a page, in every field that one shows: opened in a browser, none of them runs.

The browser is told to ignore the content security policy: what is shown must be harmless by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from guarded_routes import FILL, ROWS_BY_ROUTE, address
from guarded_world import CONTROL, guarded_world
from hostile_world import APP, SETTINGS, WORDS, hostile, objects
from minijinja import safe
from pages_world import _loop

from argosy.app.listening import bind, listening
from argosy.model.names import ResourceKey
from argosy.server.answers import Page
from argosy.server.asked import Asked
from argosy.server.routes import Route, SignedIn
from argosy.server.table import TABLE

PATIENCE = 60.0
OBJECT = f"/apps/{CONTROL}/{APP}/r/-/ConfigMap/team-a/conf"
TABS = ("live", "desired", "diff", "last-applied", "events", "fields", "health", "summary")
APPLICATION_KEY = ResourceKey("argoproj.io", "Application", CONTROL, APP)
NO_PAGES = re.compile("/(static|live|enter|auth|stream|output|text)")
# What a payload would make of a page, had it become a part of it.
HARM = """html => {
  const found = [], page = new DOMParser().parseFromString(html, 'text/html');
  for (const each of page.querySelectorAll('*')) {
    for (const {name, value} of each.attributes) {
      if (name.startsWith('on')) found.push(each.tagName + ' ' + name);
      const leads = /^(href|src|action|formaction|xlink:href|srcdoc)$/.test(name);
      if (leads && /^\\s*(javascript|data:text)|^\\/ran/i.test(value))
        found.push(each.tagName + ' ' + name + ' ' + value);
    }
    if (each.tagName === 'SCRIPT' && !each.src) found.push('SCRIPT');
  }
  return found;
}"""


SHOWN = {
    "address", "allowed-group", "allowed-kind", "cluster-name", "commit", "condition", "desired-annotation",
    "desired-value", "destination-name", "destination-namespace", "event-message", "event-reason",
    "event-source", "health-message", "history-by", "history-revision", "history-target", "hook-message",
    "image", "live-annotation", "live-value", "log", "operation-by", "operation-message", "parameter",
    "parameter-value", "project", "provider", "release", "repository-name", "repository-url", "result-message",
    "role-group", "source-repository", "sync-option", "sync-revision", "target", "window",
    *(f"word-{name}" for name in ("q", "sort", "health", "label", "project", "revision", "tab", "pod", "match")),
}  # fmt: skip


class Served(NamedTuple):
    url: str
    token: str
    cluster: Any
    hub: Any

    def do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, _loop()).result(PATIENCE)

    def read(self, path: str) -> bytes:
        headers = {} if path.startswith("/login") else {"Authorization": self.token}
        asked = urllib.request.Request(self.url + path, headers=headers)
        with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(asked, timeout=20) as found:
            return bytes(found.read())
        return b""


async def careless(asked: Asked) -> Page:
    return Page("error.html", {"code": 400, "title": "x", "message": safe(hostile("careless")), "next": ""})


class Printing:
    """Of a container: whatever comes."""

    def __init__(self) -> None:
        self.more: asyncio.Queue[str] = asyncio.Queue()

    async def lines(self, pod: Any, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]:
        if tail != 0:
            yield hostile("log")
        while follow:
            yield await self.more.get()


PRINTING = Printing()


@contextlib.asynccontextmanager
async def _served(folder: Path) -> AsyncIterator[Served]:
    async with guarded_world(folder, objects(folder)) as world:
        await world.cluster.patch(ResourceKey("", "ConfigMap", CONTROL, "argocd-cm"), {"data": SETTINGS})
        world.cluster.plane.actions.pod_logs = PRINTING  # type: ignore[attr-defined]
        await world.cluster.create(_pod(await world.cluster.get(ResourceKey("", "ConfigMap", "team-a", "conf"))))
        entry = world.entry([*TABLE, Route("GET", "/careless", SignedIn(), careless)])
        async with listening(entry, [bind("127.0.0.1", 0)], closing=entry.close) as port:
            token = world.callers["admin"].headers["Authorization"]
            yield Served(f"http://127.0.0.1:{port}", token, world.cluster, world.site.hub)


def _pod(owner: Any) -> dict[str, Any]:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "conf", "uid": owner["metadata"]["uid"]}
    metadata = {"name": "talks", "namespace": "team-a", "ownerReferences": [reference]}
    spec = {"containers": [{"name": "main", "image": "x"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = _served(tmp_path_factory.mktemp("hostile"))
    found = asyncio.run_coroutine_threadsafe(made.__aenter__(), _loop()).result(PATIENCE)
    try:
        yield found
    finally:
        asyncio.run_coroutine_threadsafe(made.__aexit__(None, None, None), _loop()).result(PATIENCE)


class Trap:
    """A page of a browser, and whatever ran in it."""

    def __init__(self, chromium: Any, served: Served) -> None:
        headers = {"Authorization": served.token}
        self.context = chromium.new_context(base_url=served.url, bypass_csp=True, extra_http_headers=headers)
        self.context.set_default_timeout(10_000)
        self.page = self.context.new_page()
        self.caught: list[str] = []
        self.page.on("dialog", lambda dialog: (self.caught.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda asked: "/ran" in asked.url and self.caught.append(asked.url))

    def ran(self) -> list[str]:
        found = self.page.evaluate("window.ran")
        return [*self.caught, *([f"window.ran={found}"] if found else [])]


@pytest.fixture
def trap(chromium: Any, served: Served) -> Iterator[Trap]:
    made = Trap(chromium, served)
    yield made
    made.context.close()


def plain_pages() -> list[str]:
    """Each page once, of what is hostile."""
    found = []
    for route in TABLE:
        if route.method != "GET" or route.is_api or NO_PAGES.search(route.path):
            continue
        case = FILL[ROWS_BY_ROUTE[route.method, route.path].about]("own")
        names = {"name": APP, "ns": CONTROL, "group": "-", "kind": "ConfigMap", "rns": "team-a", "rname": "conf"}
        given = {name: names.get(name, each) if "/apps" in route.path else each for name, each in case.values.items()}
        found.append(address(route, case._replace(values=given, query={})))
    found += [f"{OBJECT}?tab={tab}" for tab in TABS]
    found += [each.replace(APP, "app-h") for each in found if f"{APP}/" in each and "/r/" not in each]
    return [*dict.fromkeys(found), "/settings/projects/team-x"]


def asked_pages() -> list[str]:
    """The same, with hostile words in the address."""
    words = "&".join(f"{name}={quote(hostile('word-' + name))}" for name in WORDS)
    return [f"{each}{'&' if '?' in each else '?'}{words}" for each in plain_pages()]


def test_a_careless_page_is_caught(trap: Trap) -> None:
    trap.page.goto("/careless")
    trap.page.wait_for_timeout(100)
    assert trap.ran()
    assert trap.page.evaluate(HARM, trap.page.content())


def test_nothing_that_is_shown_becomes_part_of_a_page(trap: Trap, served: Served) -> None:
    trap.page.goto("/apps")
    harm, shown = {}, set()
    for path in [*plain_pages(), *asked_pages()]:
        text = served.read(path).decode()
        shown |= set(re.findall(r"([\w-]+)~(?:&#x27;|&lt;)", text))
        if found := trap.page.evaluate(HARM, text):
            harm[path] = found
    assert harm == {}
    assert trap.ran() == []
    assert shown >= SHOWN, SHOWN - shown


def test_pages_that_are_open_run_nothing_of_what_they_show(trap: Trap) -> None:
    for path in [each for each in plain_pages() if "app-h" not in each]:
        trap.page.goto(path, wait_until="domcontentloaded")
        assert trap.ran() == [], path


def until(holds: Callable[[], bool], trap: Trap) -> None:
    for _ in range(100):
        if holds():
            return
        trap.page.wait_for_timeout(50)
    raise AssertionError("it did not come")


def test_what_comes_later_runs_as_little(trap: Trap, served: Served) -> None:
    trap.page.goto(f"/apps/{CONTROL}/{APP}")
    changed = {"status": {"health": {"status": "Missing", "message": hostile("came-later")}}}
    changed["status"]["conditions"] = [{"type": "SyncError", "message": hostile("condition-came-later")}]
    served.do(served.cluster.patch(APPLICATION_KEY, changed))
    until(lambda: "came-later~" in trap.page.inner_text("body"), trap)
    assert trap.ran() == []


def test_lines_of_logs_run_as_little(trap: Trap, served: Served) -> None:
    trap.page.goto(f"/apps/{CONTROL}/{APP}/logs?follow=1")
    assert "log~" in trap.page.inner_text("#log")
    _loop().call_soon_threadsafe(PRINTING.more.put_nowait, hostile("line-came-later"))
    until(lambda: "line-came-later~" in trap.page.inner_text("#log"), trap)
    assert trap.ran() == []
