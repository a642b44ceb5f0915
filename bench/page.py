"""What the page costs: 5,000 Applications, a tree of 6,000 objects, and 200 pages that are open.

Limits: the first page of a list and any filter 150 ms of server time each, asked for the first time and again, for who
may everything and for who may a little; memory grows by less than 2 % over 500 requests; a tree of 6,000 objects is
painted within a second of being asked for; of 200 open pages with a change a second, 95 of 100 show it within 200 ms.
Figures are parts of these.

Run: python bench/page.py [applications] [objects] [open pages]
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import resource
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from argosy.features.serve.http_server import open_listener, serve_application
from argosy.features.serve.web_application import open_web_application, session_cookie_name
from argosy.kube.client import Cluster
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.web.serve_options import ServeOptions
from support.browser import chromium_here

CONTROL = "argocd"
PAGE_SECONDS, TREE_SECONDS, EVENT_SECONDS, GROWTH = 0.150, 1.0, 0.200, 0.02
TIMES, REQUESTS, CHANGES = 15, 500, 20
WHICH = ("first", "median")
PEOPLE = {
    "ann": "g, ann, role:admin", "ben": "g, ben, role:admin", "cid": "p, cid, applications, get, project-3/*, allow",
}  # fmt: skip
SYNC, HEALTH = ("Synced", "OutOfSync", "Unknown"), ("Healthy", "Degraded", "Progressing", "Missing", "Suspended")
ENVIRONMENTS = ("dev", "staging", "production")
FILTERS = (
    "/apps", "/apps?q=app-00&sort=-synced", "/apps?sync=OutOfSync&health=Degraded", "/apps?label=team%3Dteam-3",
    "/apps?view=tiles&page=3", "/apps?view=summary",
)  # fmt: skip
MARK = re.compile(rb"change-(\d+)!")
TREES = ("wide", "deep")  # thousands side by side; hundreds with dozens below each


@dataclass
class Figures:
    """What was measured, beside what it may be."""

    failed: list[str] = field(default_factory=list)

    def tell(self, title: str, value: float, limit: float, text: str) -> None:
        part = value / limit
        print(f"{title:<58} {text:>12}  {part:6.2f} of the limit{'' if part <= 1 else '  TOO MUCH'}", flush=True)
        if part > 1:
            self.failed.append(title)


def application(number: int) -> dict[str, Any]:
    sync, health = SYNC[number % 3], HEALTH[number % 5]
    objects = [
        {"version": "v1", "kind": "ConfigMap", "namespace": f"ns-{number % 50}", "name": f"c-{number}-{index}",
         "status": sync}
        for index in range(8)
    ]  # fmt: skip
    commit = f"{number:040x}"
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": f"app-{number:05}",
            "namespace": CONTROL,
            "labels": {"team": f"team-{number % 11}", "tier": f"tier-{number % 3}"},
        },
        "spec": {
            "project": f"project-{number % 7}",
            "source": {
                "repoURL": f"https://git.example.com/team-{number % 11}.git",
                "path": f"apps/{number}/overlays/{ENVIRONMENTS[number % 3]}",
                "targetRevision": "main",
            },
            "destination": {"server": "https://kubernetes.default.svc", "namespace": f"ns-{number % 50}"},
            "syncPolicy": {"automated": {"prune": True}} if number % 2 else {},
        },
        "status": {
            "sync": {"status": sync, "revision": commit},
            "health": {"status": health, "message": "" if health == "Healthy" else "2 of 3 replicas are not ready"},
            "resources": objects,
            "history": [{"id": 0, "revision": commit, "deployedAt": f"2026-01-{number % 28 + 1:02}T03:04:05Z"}],
        },
    }


def project(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": f"project-{number}", "namespace": CONTROL},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    }


def trees(objects: int) -> dict[str, tuple[int, int]]:
    """How many Deployments, and how many Pods of each; each has a ReplicaSet."""
    return {"wide": (objects // 3, 1), "deep": (objects // 30, 28)}


def large(name: str, count: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """One that manages very many Deployments."""
    deployments, rows = [], []
    for number in range(count):
        metadata = {"namespace": "large", "name": f"{name}-{number:04}"}
        status = "OutOfSync" if number % 40 == 0 else "Synced"
        rows.append({"group": "apps", "version": "v1", "kind": "Deployment", **metadata, "status": status})
        labels = {"app": metadata["name"]}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "example/a:1"}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        deployments.append({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    app = application(0)
    app["metadata"] |= {"name": name}
    app["status"] |= {"resources": rows}
    return app, deployments


def build_child(parent: dict[str, Any], kind: str, number: int = 0) -> dict[str, Any]:
    """What a controller would make of it."""
    metadata, spec = parent["metadata"], parent["spec"]
    owner = {"apiVersion": "apps/v1", "kind": parent["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    child_metadata = {"name": f"{metadata['name']}-{number}", "namespace": "large", "ownerReferences": [owner]}
    if kind == "ReplicaSet":
        replica_set_spec = {name: spec[name] for name in ("replicas", "selector", "template")}
        return {"apiVersion": "apps/v1", "kind": kind, "metadata": child_metadata, "spec": replica_set_spec}
    labels = spec["selector"]["matchLabels"]
    pod_spec = {"containers": spec["template"]["spec"]["containers"]}
    return {"apiVersion": "v1", "kind": kind, "metadata": {**child_metadata, "labels": labels}, "spec": pod_spec}


async def create_all(cluster: Cluster, manifests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    created: list[dict[str, Any]] = []
    for start in range(0, len(manifests), 200):
        created += await asyncio.gather(*(cluster.create(manifest) for manifest in manifests[start : start + 200]))
    return created


async def furnish(cluster: Cluster, applications: int, objects: int) -> None:
    for name in ("applications.argoproj.io", "appprojects.argoproj.io"):
        await cluster.create(load_definition(name))
    for namespace in (CONTROL, "large"):
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    policy = "\n".join(PEOPLE.values())
    accounts = {f"accounts.{name}": "apiKey, login" for name in PEOPLE}
    for name, data in (("argocd-cm", accounts), ("argocd-rbac-cm", {"policy.csv": policy})):
        metadata = {"name": name, "namespace": CONTROL}
        await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    await create_all(cluster, [project(number) for number in range(7)])
    await create_all(cluster, [application(number) for number in range(applications)])
    for name, (count, pods) in trees(objects).items():
        app, deployments = large(name, count)
        sets = [build_child(deployment, "ReplicaSet") for deployment in await create_all(cluster, deployments)]
        owners = await create_all(cluster, sets)
        await create_all(
            cluster, [build_child(replica_set, "Pod", number) for replica_set in owners for number in range(pods)]
        )
        await cluster.create(app)


@dataclass
class World:
    cluster: Cluster
    entry: Any
    port: int
    cookie: str
    tokens: dict[str, str]

    async def ask(self, path: str, who: str = "ann") -> tuple[int, bytes]:
        """Through the whole application, without a socket."""
        where, _, query = path.partition("?")
        headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {self.tokens[who]}".encode()),
                   (b"accept-encoding", b"gzip")]  # fmt: skip
        scope = {"type": "http", "method": "GET", "path": where, "raw_path": where.encode(), "headers": headers,
                 "query_string": query.encode(), "client": ("127.0.0.1", 1), "scheme": "http", "http_version": "1.1",
                 "asgi": {"spec_version": "2.3", "version": "3.0"}}  # fmt: skip
        messages: list[dict[str, Any]] = []

        async def send(message: dict[str, Any]) -> None:
            messages.append(message)

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        await self.entry(scope, receive, send)
        return messages[0]["status"], b"".join(chunk.get("body", b"") for chunk in messages[1:])


@asynccontextmanager
async def opened_world(folder: Path, applications: int, objects: int) -> AsyncIterator[World]:
    async with ControlPlane.open(in_memory=True) as plane:
        cluster = EmbeddedCluster(plane)
        await furnish(cluster, applications, objects)
        listener = open_listener("127.0.0.1", 0)
        port = listener.getsockname()[1]
        options = ServeOptions(version="bench", port=port)
        async with open_web_application(cluster, "a bench", options, folder, CONTROL) as entry:
            tokens = {name: await entry.site.authenticator.account_store.add_token(name) for name in PEOPLE}  # type: ignore[attr-defined]
            async with serve_application(entry, [listener], on_closing=entry.close):
                yield World(cluster, entry, port, session_cookie_name(options), tokens)


async def timed(world: World, path: str, who: str) -> tuple[float, float]:
    """Seconds of the first request, which fills caches, and of the median one."""
    durations = []
    for _ in range(TIMES):
        started = time.perf_counter()
        code, _ = await world.ask(path, who)
        durations.append(time.perf_counter() - started)
        assert code == 200, (path, who, code)
    return durations[0], statistics.median(durations)


async def pages(world: World, figures: Figures) -> None:
    for who in PEOPLE:
        for path in FILTERS:
            for statistic, seconds in zip(WHICH, await timed(world, path, who), strict=True):
                figures.tell(f"{path} for {who}, {statistic}", seconds, PAGE_SECONDS, f"{seconds * 1000:.1f} ms")


def rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def memory(world: World, figures: Figures) -> None:
    words = [f"/apps?q=app-{number:03}" for number in range(50)]
    for path in words * 2:  # what is kept is kept by now
        await world.ask(path, "ann")
    gc.collect()
    before = rss()
    for number in range(REQUESTS):
        await world.ask(words[number % len(words)], ("ann", "cid")[number % 2])
    gc.collect()
    growth = rss() / before - 1
    figures.tell(f"memory after {REQUESTS} requests", max(growth, 0.0), GROWTH, f"{growth * 100:+.2f} %")


# -- open pages ----------------------------------------------------------------------------------------------------


async def open_pages(world: World, figures: Figures, count: int) -> None:
    paths = ["/apps", "/apps?view=tiles", "/apps/argocd/app-00000", "/apps?project=project-0"]
    people = ("ben", "cid", "ann", "ben" if count < 300 else "cid")
    requests = [(paths[number % 4], world.tokens[people[number % 4]]) for number in range(count)]
    reader = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--read", str(world.port), stdin=-1, stdout=-1, limit=1 << 26
    )
    assert reader.stdin and reader.stdout
    reader.stdin.write(json.dumps(requests).encode() + b"\n")
    assert (await reader.stdout.readline()).strip() == b"open"
    key = ResourceKey("argoproj.io", "Application", CONTROL, "app-00000")
    changed_at: dict[int, float] = {}
    for number in range(CHANGES):
        changed_at[number] = time.monotonic()
        health = {"status": "Degraded", "message": f"change-{number}!"}
        await world.cluster.patch(key, {"status": {"health": health, "sync": {"status": "Synced"}}})
        await asyncio.sleep(1.0)
    reader.stdin.write(b"end\n")
    arrivals = json.loads(await reader.stdout.readline())
    await reader.wait()
    late = sorted(at - changed_at[number] for number, at in arrivals)
    expected = sum(token != world.tokens["cid"] for _, token in requests) * CHANGES
    p95 = late[int(len(late) * 0.95)] if late else 99.0
    figures.tell(f"{count} open pages, a change a second: p95", p95, EVENT_SECONDS, f"{p95 * 1000:.0f} ms")
    figures.tell("changes that were told", expected / max(len(late), 1), 1.0, f"{len(late)} of {expected}")


async def read(port: int) -> None:
    """Reads many streams at once, in a process of its own; tells when which change came."""
    requests = json.loads(sys.stdin.readline())
    arrivals: list[tuple[int, float]] = []
    writers = []
    for path, token in requests:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = [f"GET /live?at={quote(path, safe='')} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}"]
        writer.write("\r\n".join([*head, "", ""]).encode())
        status = await reader.readline()
        assert b" 200 " in status, (path, status)
        await reader.readuntil(b"event: ")
        writers.append((asyncio.create_task(_note(reader, arrivals)), writer))
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    print(json.dumps(arrivals), flush=True)
    for task, writer in writers:
        task.cancel()
        writer.close()


async def _note(reader: asyncio.StreamReader, arrivals: list[tuple[int, float]]) -> None:
    noted_marks: set[int] = set()
    while chunk := await reader.read(1 << 20):
        at = time.monotonic()
        for mark in MARK.findall(chunk):
            if int(mark) not in noted_marks:
                noted_marks.add(int(mark))
                arrivals.append((int(mark), at))


# -- a large tree --------------------------------------------------------------------------------------------------


async def large_trees(world: World, figures: Figures, objects: int) -> None:
    sizes = {name: count * (2 + pods) for name, (count, pods) in trees(objects).items()}
    for name, size in sizes.items():
        for statistic, seconds in zip(WHICH, await timed(world, f"/apps/argocd/{name}/tree", "ann"), strict=True):
            title = f"a {name} tree of {size}, on the server, {statistic}"
            figures.tell(title, seconds, TREE_SECONDS, f"{seconds * 1000:.0f} ms")
    try:
        from playwright.async_api import async_playwright
    except ImportError:
        print("no browser here: what is painted is not measured")
        return
    async with async_playwright() as player:
        browser = await player.chromium.launch(executable_path=chromium_here(), args=["--no-sandbox"])
        context = await browser.new_context()
        await context.set_extra_http_headers({"Authorization": f"Bearer {world.tokens['ann']}"})
        for name, size in sizes.items():
            painted = [await paint(world, context, name, size) for _ in range(4)]
            best = statistics.median(painted[1:])  # the first one starts the browser
            figures.tell(f"a {name} tree of {size}, painted", best, TREE_SECONDS, f"{best * 1000:.0f} ms")
        await browser.close()


async def paint(world: World, context: Any, name: str, size: int) -> float:
    """Seconds from the request until the page is drawn, all of it; something has changed since the last one."""
    key = ResourceKey("apps", "Deployment", "large", f"{name}-0000")
    await world.cluster.patch(key, {"metadata": {"annotations": {"seen": str(time.time())}}})
    page = await context.new_page()
    await page.goto(f"http://127.0.0.1:{world.port}/apps/argocd/{name}/tree", wait_until="load")
    moment = "new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0)))"
    seconds = float(await page.evaluate(moment)) / 1000
    count_text = await page.text_content("#tree-count b")
    assert count_text.replace(",", "").startswith(f"{size} "), count_text
    await page.close()
    return seconds


async def main(applications: int, objects: int, count: int) -> int:
    figures = Figures()
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        async with opened_world(Path(folder), applications, objects) as world:
            print(f"{applications} applications and 2 trees of {objects} in {time.perf_counter() - started:.0f} s")
            gc.set_threshold(10_000, 20, 20)  # as any command does, and `argosy serve` when it begins
            gc.collect()
            gc.freeze()
            await pages(world, figures)
            await large_trees(world, figures, objects)
            await open_pages(world, figures, count)
            await memory(world, figures)
            print(f"memory of all: {rss() >> 20} MiB")
    for figure in figures.failed:
        print(f"over its limit: {figure}")
    return 1 if figures.failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        asyncio.run(read(int(sys.argv[2])))
    else:
        sizes = [int(text) for text in sys.argv[1:4]]
        sys.exit(asyncio.run(main(*(sizes + [5000, 6000, 200][len(sizes) :]))))
