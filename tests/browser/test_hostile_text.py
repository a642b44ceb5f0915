"""Cross-site scripting: hostile text in every field that a page shows is escaped and never runs.

The browser ignores the content security policy, so the pages must be harmless by themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import pytest
from minijinja import safe

from argosy.features.serve.http_server import open_listener, serve_application
from argosy.kube.resource_key import ResourceKey
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from argosy.web.request import RequestContext
from argosy.web.responses import PageResponse
from argosy.web.route import Route, SignedIn
from support.deadlines import HANG_SECONDS
from support.full_site import _loop
from support.hostile_installation import APP, EVERYBODY, PLANTED, SETTINGS, WORDS, hostile, objects
from support.hostile_models import be_hostile, connections, environments, host
from support.route_requests import FILL, ROWS_BY_ROUTE, address
from support.route_table import ROUTE_TABLE, build_routes
from support.tenants import CONTROL, World, guarded_world

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
OBJECT = f"/apps/{CONTROL}/{APP}/r/-/ConfigMap/team-a/conf"
TABS = ("live", "desired", "diff", "last-applied", "events", "fields", "health", "summary")
MORE = (
    "/settings/projects/team-x", "/environments/staging/promote", "/environments/production/promote",
    "/apps?view=tiles", "/apps?view=summary", f"/apps/{CONTROL}/{APP}/rollback?id=2",
    f"/apps/{CONTROL}/{APP}/diff?format=yaml", "/models/team-b/thing-b",
)  # fmt: skip
APPLICATION_KEY = ResourceKey("argoproj.io", "Application", CONTROL, APP)
NO_PAGES = re.compile("/(static|live|enter|auth|stream|output|text)")
IS_ALIKE = re.compile(r"/app-h/|\?tab=(?!live&)")  # another Application, another tab of an object
# Lists what an unescaped payload adds to a page: event handlers, script URLs and inline scripts.
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


# Query parameters that pages show again.
WORDS_SHOWN = {f"word-{name}" for name in ("q", "sort", "health", "label", "project", "revision", "tab", "pod", "with")}
# Texts that are not planted in objects: they arrive with requests or from other servers.
HEARD = {"audited", "hold-of-environment", "log", "git-message", "cluster-version", "cluster-message"}
# Planted texts that no page shows, so that they can do no harm.
UNSHOWN = {
    "history-path", "history-repository",  # pages show only the commit and the target revision of a deployment
    "health-script",  # pages show only the errors of the script
    "info", "link", "link-title", "operation-info", "operation-info-value",  # Argo CD's page lists them, ours does not
    "operation-revision",  # pages show the synced revision, not the requested one
    "resource-health",  # pages compute health from the live object
    "role",  # pages show only the groups and rules of a role
}  # fmt: skip


class Served(NamedTuple):
    url: str
    token: str
    cluster: Any
    planted: frozenset[str]

    def do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, _loop()).result(HANG_SECONDS)

    def read(self, path: str) -> bytes:
        headers = {} if path.startswith("/login") else {"Authorization": self.token}
        request = urllib.request.Request(self.url + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=HANG_SECONDS) as response:
                return bytes(response.read())
        except urllib.error.HTTPError as refused:  # an error page is checked, too
            return refused.read()

    def post(self, path: str, **form: str) -> int:
        headers = {"Authorization": self.token, "Origin": self.url}
        request = urllib.request.Request(self.url + path, urlencode(form).encode(), headers)
        with (
            contextlib.suppress(urllib.error.HTTPError),
            urllib.request.urlopen(request, timeout=HANG_SECONDS) as response,
        ):
            return int(response.status)
        return 0


async def careless(request: RequestContext) -> PageResponse:
    return PageResponse("error.html", {"code": 400, "title": "x", "message": safe(hostile("careless")), "next": ""})


class Printing:
    """Fake container log: one hostile line, then the lines that a test adds."""

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
    with host() as url:
        async with guarded_world(folder, [*objects(folder), *connections(url)]) as world:
            await world.cluster.patch(ResourceKey("", "ConfigMap", CONTROL, "argocd-cm"), {"data": SETTINGS})
            await world.cluster.patch(ResourceKey("", "ConfigMap", CONTROL, "argocd-rbac-cm"), {"data": EVERYBODY})
            await be_hostile(world.cluster, url)
            async with _entered(world, environments(folder / "web")) as server:
                yield server


@contextlib.asynccontextmanager
async def _entered(world: World, repository: Path) -> AsyncIterator[Served]:
    """Serve the pages to an SSO user with a hostile name, group and email address."""
    world.cluster.plane.subresources.pod_logs = PRINTING  # type: ignore[attr-defined]
    await world.cluster.create(_pod(await world.cluster.get(ResourceKey("", "ConfigMap", "team-a", "conf"))))
    identities = world.site.authenticator
    await identities.account_store.add_token("admin", token_id=hostile("token"))
    await identities.state.refresh(world.cluster)
    token = identities.create_sso_session(
        "a-session", hostile("person"), (hostile("person-group"),), hostile("person-email")
    )
    site = replace(world.site, options=replace(world.site.options, repository=repository))
    entry = WebApplication(site, (*build_routes(site), Route("GET", "/careless", SignedIn(), careless)))
    async with serve_application(entry, [open_listener("127.0.0.1", 0)], on_closing=entry.close) as port:
        yield Served(f"http://127.0.0.1:{port}", f"Bearer {token}", world.cluster, frozenset(PLANTED))


def _pod(owner: Any) -> dict[str, Any]:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "conf", "uid": owner["metadata"]["uid"]}
    metadata = {"name": "talks", "namespace": "team-a", "ownerReferences": [reference]}
    spec = {"containers": [{"name": "main", "image": "x"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server_context = _served(tmp_path_factory.mktemp("hostile"))
    server = asyncio.run_coroutine_threadsafe(server_context.__aenter__(), _loop()).result(HANG_SECONDS)
    try:
        assert server.post("/environments/production/hold", reason=hostile("hold-of-environment")) == 200
        server.post(f"/apps/{quote(hostile('audited'), safe='')}/x/refresh")
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server_context.__aexit__(None, None, None), _loop()).result(HANG_SECONDS)


class Trap:
    """A browser page that records dialogs, requests for /ran and window.ran, which payloads would cause."""

    def __init__(self, chromium: Any, served: Served) -> None:
        headers = {"Authorization": served.token}
        self.context = chromium.new_context(base_url=served.url, bypass_csp=True, extra_http_headers=headers)
        self.context.set_default_timeout(HANG_SECONDS * 1000)
        self.page = self.context.new_page()
        self.caught: list[str] = []
        self.page.on("dialog", lambda dialog: (self.caught.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: "/ran" in request.url and self.caught.append(request.url))

    def ran(self) -> list[str]:
        flag = self.page.evaluate("window.ran")
        return [*self.caught, *([f"window.ran={flag}"] if flag else [])]


@pytest.fixture
def trap(chromium: Any, served: Served) -> Iterator[Trap]:
    new_trap = Trap(chromium, served)
    yield new_trap
    new_trap.context.close()


def plain_pages() -> list[str]:
    """List every page once, with addresses of the hostile objects."""
    paths = []
    for route in ROUTE_TABLE:
        if route.method != "GET" or route.is_api or NO_PAGES.search(route.path):
            continue
        case = FILL[ROWS_BY_ROUTE[route.method, route.path].about]("own")
        names = {"name": APP, "ns": CONTROL, "group": "-", "kind": "ConfigMap", "rns": "team-a", "rname": "conf"}
        values = {
            name: names.get(name, value) if "/apps" in route.path else value for name, value in case.values.items()
        }
        paths.append(address(route, case._replace(values=values, query={})))
    paths += [f"{OBJECT}?tab={tab}" for tab in TABS]
    paths += [path.replace(APP, "app-h") for path in paths if f"{APP}/" in path and "/r/" not in path]
    return [*dict.fromkeys(paths), *MORE]


def asked_pages() -> list[str]:
    """List the same pages with hostile query parameters."""
    words = {name: f"{name}={quote(hostile('word-' + name))}" for name in WORDS}
    paths = []
    for path in plain_pages():
        # pages of an Application answer 404 if the project or the deployment id is wrong
        query_words = [word for name, word in words.items() if "/apps/" not in path or name not in ("project", "id")]
        paths.append(f"{path}{'&' if '?' in path else '?'}{'&'.join(query_words)}")
    return paths


@pytest.mark.tier("all")
def test_unescaped_page_is_detected(trap: Trap) -> None:
    trap.page.goto("/careless")
    until(lambda: bool(trap.ran()), trap)
    assert trap.page.evaluate(HARM, trap.page.content())


def test_pages_escape_all_hostile_text(trap: Trap, served: Served) -> None:
    trap.page.goto("/apps")
    harm, visible_words = {}, set()
    paths_with_words = [page_path for page_path in asked_pages() if not IS_ALIKE.search(page_path)]
    for path in [*plain_pages(), *paths_with_words]:
        text = served.read(path).decode()
        visible_words |= set(re.findall(r"([\w-]+)~(?:&#x27;|&lt;)", text))
        if harmful_parts := trap.page.evaluate(HARM, text):
            harm[path] = harmful_parts
    assert harm == {}
    assert trap.ran() == []
    assert visible_words >= WORDS_SHOWN, WORDS_SHOWN - visible_words
    assert (served.planted | HEARD) - visible_words == UNSHOWN


@pytest.mark.tier("all")
def test_similar_pages_escape_hostile_query_parameters(trap: Trap, served: Served) -> None:
    trap.page.goto("/apps")
    paths_with_words = [path for path in asked_pages() if IS_ALIKE.search(path)]
    assert len(paths_with_words) > 10
    assert [path for path in paths_with_words if trap.page.evaluate(HARM, served.read(path).decode())] == []
    assert trap.ran() == []


@pytest.mark.tier("all")
def test_opened_pages_run_no_payload(trap: Trap) -> None:
    for path in [page_path for page_path in plain_pages() if "app-h" not in page_path]:
        trap.page.goto(path, wait_until="domcontentloaded")
        assert trap.ran() == [], path


@pytest.mark.tier("all")
def test_model_answers_and_search_results_run_no_payload(trap: Trap, served: Served) -> None:
    for question, expected_text in (("[[1]]", "model-answer~"), ('{"instances": ["refuse"]}', "model-refusal~")):
        trap.page.goto("/models/team-a/thing-a")
        trap.page.get_by_label("Input").fill(question)
        trap.page.get_by_role("button", name="Send", exact=True).click()
        expect(trap.page.locator("#answer")).to_contain_text(expected_text)
        assert trap.page.evaluate(HARM, trap.page.content()) == []
    trap.page.keyboard.press("Control+k")
    trap.page.fill("#palette-q", "app-h")
    until(lambda: "health-word~" in trap.page.inner_text("#palette-list"), trap)
    assert trap.page.evaluate(HARM, trap.page.content()) == [] == trap.ran()


def until(holds: Callable[[], bool], trap: Trap) -> None:
    ends = time.monotonic() + HANG_SECONDS
    while not holds():
        assert time.monotonic() < ends, "it did not come"
        trap.page.wait_for_timeout(50)


@pytest.mark.tier("all")
def test_live_updates_run_no_payload(trap: Trap, served: Served) -> None:
    before = served.do(served.cluster.get(APPLICATION_KEY))["status"]
    trap.page.goto(f"/apps/{CONTROL}/{APP}")
    changed = {"status": {"health": {"status": "Missing", "message": hostile("came-later")}}}
    changed["status"]["conditions"] = [{"type": "SyncError", "message": hostile("condition-came-later")}]
    served.do(served.cluster.patch(APPLICATION_KEY, changed))
    until(lambda: "came-later~" in trap.page.inner_text("body"), trap)
    assert trap.ran() == []
    old_status = {"health": before["health"], "conditions": before["conditions"]}
    served.do(served.cluster.patch(APPLICATION_KEY, {"status": old_status}))
    until(lambda: "came-later~" not in trap.page.inner_text("body"), trap)


@pytest.mark.tier("all")
def test_log_lines_run_no_payload(trap: Trap, served: Served) -> None:
    trap.page.goto(f"/apps/{CONTROL}/{APP}/logs?follow=1")
    assert "log~" in (trap.page.text_content("#log") or "")  # elements below the fold have no inner text
    _loop().call_soon_threadsafe(PRINTING.more.put_nowait, hostile("line-came-later"))
    until(lambda: "line-came-later~" in (trap.page.text_content("#log") or ""), trap)
    assert trap.ran() == []
