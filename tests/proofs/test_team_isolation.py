"""Team isolation: no response of any GET route contains data of a team that the caller may not see.

Every object of the other team has a secret word in its name that no request contains. A response with it is a leak.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from argosy.web.request import RequestContext
from support.route_requests import FILL, ROWS_BY_ROUTE, VARIANTS, address
from support.route_table import ROUTE_TABLE
from support.tenants import CONTROL, MODEL, NOTEBOOK, World, application, ask, declared, guarded_world, owned, project

pytestmark = [pytest.mark.anyio, pytest.mark.tier("test", "prove")]
WORD = "hidden-3b9e21c0d7"
LIMITED = ["dev-a", pytest.param("nothing", marks=pytest.mark.tier("all", "prove"))]
LIMITED += [
    pytest.param(account, marks=pytest.mark.tier("prove"))
    for account in ("viewer-a", "syncer-a", "proj:team-a:deployer")
]
DEEP = ("/live?at=%2Fapps", "/live?at=%2Factivity", "/apps?search=h", f"/apps/{CONTROL}/app-a/r/-/Secret/team-b/x")


GREEDY = f"/apps/{CONTROL}/greedy"
DEEP += tuple(f"{GREEDY}/manifest?side={side}" for side in ("live", "last-applied"))
DEEP += (f"{GREEDY}/events", f"{GREEDY}/tree", f"{GREEDY}/r/-/ConfigMap/team-b/conf?tab=live", f"{GREEDY}/resources")
DEEP += (f"/live?at=%2Fapps%2F{CONTROL}%2Fgreedy%2Fevents",)


def greedy() -> list[dict[str, Any]]:
    """An Application of the caller's team whose Git names an object of the other team, so its status lists it."""
    app, reference = application("team-a"), {"kind": "ConfigMap", "namespace": "team-b", "name": "conf"}
    app["metadata"]["name"] = "greedy"
    app["status"]["resources"] = [{**reference, "version": "v1", "status": "Unknown"}]
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf", "namespace": "team-b"}}
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "heard", "namespace": "team-b"}, "message": WORD,
        "involvedObject": reference, "reason": "Told", "type": "Warning", "lastTimestamp": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return [app, {**config_map, "data": {"key": WORD}}, event]


def other_teams() -> list[dict[str, Any]]:
    app = application("team-b", annotations={"note": WORD})
    app["metadata"]["name"] = WORD
    for row in app["status"]["resources"]:
        row["name"] = WORD
    team_project = project("team-b", [])
    team_project["metadata"]["name"], team_project["spec"]["description"] = f"p-{WORD}", WORD
    manifests = [app, team_project]
    for kind in (MODEL, NOTEBOOK):
        thing = owned("team-b", *kind)
        group = kind[0].partition("/")[0]
        tracked = {"argocd.argoproj.io/tracking-id": f"{WORD}:{group}/{kind[1]}:team-b/{WORD}"}
        thing["metadata"] |= {"name": WORD, "annotations": tracked}
        manifests.append(thing)
    url = f"https://git.example.com/{WORD}"
    fields = {"url": url, "project": "team-b", "type": "git"}
    manifests += [
        declared(secret_type, f"{secret_type}-{WORD}", **fields)
        for secret_type in ("repository", "repo-creds", "repository-write")
    ]
    remote = {"server": f"https://{WORD}.example.com", "name": WORD, "project": "team-b", "config": "{}"}
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": WORD, "namespace": CONTROL}, "message": WORD,
        "involvedObject": {"kind": "Application", "namespace": CONTROL, "name": WORD}, "reason": "OperationStarted",
        "type": "Normal", "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return [*manifests, declared("cluster", f"cluster-{WORD}", **remote), event, *greedy()]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with guarded_world(tmp_path_factory.mktemp("teams"), other_teams()) as opened_world:
        yield opened_world


def paths() -> list[str]:
    all_paths = []
    for route in ROUTE_TABLE:
        if route.method == "GET":
            fill = FILL[ROWS_BY_ROUTE[route.method, route.path].about]
            all_paths += [address(route, fill(variant)) for variant in VARIANTS]
    return [*dict.fromkeys(all_paths), *DEEP]


async def find_leaks(world: World, caller: str, request_paths: Sequence[str]) -> list[str]:
    entry, headers = world.entry(), dict(world.callers[caller].headers)
    leaks = []
    for path in request_paths:
        got = await ask(entry, "GET", path, headers, reads_stream=True)
        assert got.code != 500, (path, got.body[:300])
        if WORD.encode() in got.body or WORD in str(got.headers):
            at = got.body.find(WORD.encode())
            leaks.append(f"{path}: {got.body[max(0, at - 200) : at + 60]!r}")
    return leaks


@pytest.mark.parametrize("caller", LIMITED)
async def test_no_get_route_reveals_objects_of_another_team(world: World, caller: str) -> None:
    assert await find_leaks(world, caller, paths()) == []


def ask_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break the permission check for a single object: everything may be read."""
    may = RequestContext.is_allowed
    monkeypatch.setattr(
        RequestContext, "is_allowed", lambda self, of, action, thing: action == "get" or may(self, of, action, thing)
    )


def decide_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break the permission check for lists."""
    monkeypatch.setattr(RequestContext, "permission_check", lambda self, of, action, thing: True)


@pytest.mark.parametrize(
    ("seed_bug", "path"),
    [
        (decide_for_nobody, "/api/v1/applications"),
        (decide_for_nobody, "/apps"),
        (ask_for_nobody, "/metrics"),
        (ask_for_nobody, "/settings/projects"),
        (ask_for_nobody, "/api/v1/repositories"),
        (ask_for_nobody, "/api/v1/clusters"),
    ],
)
async def test_proof_detects_a_list_without_permission_checks(
    world: World, monkeypatch: pytest.MonkeyPatch, seed_bug: Callable[..., None], path: str
) -> None:
    assert await find_leaks(world, "dev-a", [path]) == []
    seed_bug(monkeypatch)
    assert [leak.partition(":")[0] for leak in await find_leaks(world, "dev-a", [path])] == [path]


@pytest.mark.tier("all", "prove")
async def test_admin_sees_the_hidden_word_on_many_routes(world: World) -> None:
    """Otherwise the leak search would pass because there is nothing to find."""
    entry, headers, revealing_paths = world.entry(), dict(world.callers["admin"].headers), set()
    for path in paths():
        got = await ask(entry, "GET", path, headers, reads_stream=True)
        if WORD.encode() in got.body:
            revealing_paths.add(path.partition("?")[0])
    assert {"/api/v1/applications", "/api/v1/projects", "/api/v1/repositories", "/api/v1/clusters"} <= revealing_paths
    assert {
        "/apps",
        "/models",
        "/notebooks",
        "/metrics",
        "/settings/projects",
        "/settings/repositories",
    } <= revealing_paths
