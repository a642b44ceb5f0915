"""Every route × every caller × own, foreign and absent objects: who gets access, and the response to all others.

The expected outcome is computed here from the table of grants and the rows of `auth_rows.txt`, by a few lines that
share no code with the server. A route without a row fails.
"""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import pytest

from argosy.kube.objects import key_of
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import FilteredList, Public, RequiresPermission, Route, SignedIn
from support.route_requests import FILL, ROWS_BY_ROUTE, VARIANTS, Case, Row, address, sent
from support.route_table import ROUTE_TABLE, build_routes
from support.tenants import GRANTS, World, ask, guarded_world, stubbed
from support.tiers import IN_TEST_ALL_AND_PROVE

pytestmark = [pytest.mark.anyio, pytest.mark.tier("test", "prove")]
DENIED = b'{"error":"permission denied","code":7,"message":"permission denied"}'
NAMED_REFUSAL = re.compile(rb'\{"error":"permission denied: [a-z-]+, [^"]+, [^"]*","code":7,')
UNKNOWN = b'{"error":"no session information","code":16,"message":"no session information"}'
# Public routes; each addition must be a deliberate decision.
EVERYBODYS = {
    "GET /api/badge", "GET /api/v1/settings", "GET /api/version", "GET /auth/callback", "GET /auth/login",
    "POST /auth/logout",
    "GET /enter", "GET /healthz", "GET /login", "GET /readyz", "GET /static/{digest}/{name}", "POST /api/v1/session",
    "GET /api/v1/session/userinfo",
    "POST /api/webhook", "POST /login",
}  # fmt: skip
# Routes that create an object whose name is in the request.
NAMED_BY_REQUEST = {
    f"/api/v1/{name}"
    for name in ("applications", "clusters", "projects", "repositories", "repocreds", "write-repositories",
                 "write-repocreds", "repositories/{repo}/validate", "write-repositories/{repo}/validate")
}  # fmt: skip
# Mutating routes that read-only users may call: their writes are part of viewing.
LOOKING = {"/apps/{ns}/{name}/refresh", "/logout", "/api/v1/session", "/preferences", "/api/webhook", "/login"}


# -- expected outcome ------------------------------------------------------------------------------------------------


def may(who: str, resource: str, action: str, thing: str) -> bool:
    """True if at least one rule allows it and none denies it."""
    effects = [
        effect
        for kind, verb, pattern, effect in GRANTS.get(who, ())
        if kind in ("*", resource) and fnmatchcase(action, verb) and fnmatchcase(thing, pattern)
    ]
    return "allow" in effects and "deny" not in effects


def expected(row: Row, who: str, case: Case) -> str:
    if row.needs == "public":
        return "reached"
    if not who:
        return "unknown"
    if row.needs in ("signed", "list"):
        return "reached"
    if case.thing is None and may_learn_that_it_is_absent(row, who, case, row.action):
        return "absent"
    if case.thing is None or (case.also and not may(who, *case.also, case.thing)):
        return "refused"
    return "reached" if may(who, row.resource, row.action, case.thing) else "refused"


def is_refusal_named(row: Row, path: str, who: str, case: Case) -> bool:
    """A refusal names the permission if that repeats the request, or if the caller may see the object."""
    if path in NAMED_BY_REQUEST and row.action == "create":
        return True
    if case.thing is None:
        return may_learn_that_it_is_absent(row, who, case, "get")
    is_found = not case.also or may(who, *case.also, case.thing)
    return is_found and may(who, row.resource, "get", case.thing)


def may_learn_that_it_is_absent(row: Row, who: str, case: Case, action: str) -> bool:
    """argo: the permission for a project is about its name alone."""
    return row.about == "project" and may(who, row.resource, action, case.values["name"])


# -- actual outcome --------------------------------------------------------------------------------------------------


async def reached(request: RequestContext) -> JsonResponse:
    return JsonResponse({"reached": request.rbac_object})


def outcome(route: Route, got: Any) -> str:
    if got.code == 200 and b'"reached"' in got.body:
        return "reached"
    if route.is_api:
        if got.code == 404 and b'"code":5' in got.body:
            return "absent"
        if got.code == 403 and NAMED_REFUSAL.match(got.body):
            return "named"
        outcomes = {(401, UNKNOWN): "unknown", (403, DENIED): "refused"}
        return outcomes.get((got.code, got.body), f"{got.code} {got.body[:300]!r}")
    if got.code == 303 and got.headers["location"].startswith("/login"):
        return "unknown"
    if got.code == 401:
        return "unknown"
    return "refused" if got.code == 404 else f"{got.code} {got.body[:300]!r}"


def cells(routes: Any, callers: Any) -> Iterator[tuple[Route, str, str]]:
    for route in routes:
        for caller in callers:
            for variant in VARIANTS:
                yield route, caller, variant


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with guarded_world(tmp_path_factory.mktemp("world")) as opened_world:
        yield opened_world


def written(route: Route) -> str:
    match route.access:
        case Public():
            return "public"
        case SignedIn():
            return "signed"
        case FilteredList(resource, action):
            return f"list {resource} {action}"
        case RequiresPermission(resource, action):
            return f"may {resource} {action}"


def test_every_route_has_a_row_with_its_access_requirement() -> None:
    actual_needs = {(route.method, route.path): written(route) for route in ROUTE_TABLE}
    recorded_needs = {key: " ".join(filter(None, row[:3])) for key, row in ROWS_BY_ROUTE.items()}
    wrong = [
        f"{method} {path} {needs}"
        for (method, path), needs in actual_needs.items()
        if recorded_needs.get((method, path)) != needs
    ]
    assert wrong == [], "write these into auth_rows.txt, once they are right:\n" + "\n".join(sorted(wrong))
    assert set(recorded_needs) - set(actual_needs) == set(), "rows without a route"


def test_public_routes_are_exactly_the_listed_ones() -> None:
    assert {f"{method} {path}" for (method, path), row in ROWS_BY_ROUTE.items() if row.needs == "public"} == EVERYBODYS


async def test_every_route_enforces_its_access(world: World, size: Callable[[int], int], rng: random.Random) -> None:
    everything = list(cells(ROUTE_TABLE, world.callers))
    assert len(everything) >= 5000
    callers = list(world.callers)
    once = [(route, callers[number % len(callers)], VARIANTS[number % 3]) for number, route in enumerate(ROUTE_TABLE)]
    chosen = everything if size(100) == 100 else [*once, *rng.sample(everything, size(len(everything)))]
    wrong = await holes(world, build_routes(world.site), chosen)
    one_each = {line.partition(" as ")[0]: line for line in reversed(wrong)}
    assert wrong == [], f"{len(wrong)} of {len(chosen)}, such as:\n" + "\n".join(one_each.values())


async def holes(world: World, table: Any, chosen: Any) -> list[str]:
    entry, wrong = world.entry(stubbed(table, reached)), []
    for route, caller, variant in chosen:
        row = ROWS_BY_ROUTE[route.method, route.path]
        case = FILL[row.about](variant)
        headers, body = dict(world.callers[caller].headers), b""
        if route.is_mutating or route.method == "POST":  # a POST may send what it asks about
            body, headers = sent(route, case, headers)
        got = await ask(entry, route.method, address(route, case), headers, body)
        expected_outcome, actual_outcome = expected(row, world.callers[caller].name, case), outcome(route, got)
        if expected_outcome == "absent" and not route.is_api:
            expected_outcome = "refused"  # a page says the same of both
        name = world.callers[caller].name
        if expected_outcome == "refused" and route.is_api and is_refusal_named(row, route.path, name, case):
            expected_outcome = "named"
        if actual_outcome != expected_outcome:
            wrong.append(
                f"{route.method} {route.path} as {caller} of {variant}: {actual_outcome}, not {expected_outcome}"
            )
    return wrong


BUGS: dict[str, Callable[[Route], Route]] = {
    "a route that asks for a session alone": lambda route: replace(route, access=SignedIn()),
    "a route for everybody": lambda route: replace(route, access=Public("a bug")),
    "another action": lambda route: replace(
        route, access=RequiresPermission("applications", "get", route.access.resolver)
    ),  # type: ignore
    "another resource": lambda route: replace(route, access=RequiresPermission("logs", "sync", route.access.resolver)),  # type: ignore
}


@pytest.mark.parametrize("bug", BUGS)
async def test_proof_detects_a_route_with_weaker_access(world: World, bug: str) -> None:
    path = "/api/v1/applications/{name}/sync"
    table = [BUGS[bug](route) if route.path == path else route for route in build_routes(world.site)]
    assert await holes(world, table, cells([route for route in table if route.path == path], world.callers))


async def state(world: World) -> dict[str, str]:
    """The resourceVersion of every object except Events, Leases, CRDs and the counter of failed logins."""
    versions = {}
    for kind in await world.cluster.kinds():
        if kind.kind not in ("Event", "Lease", "CustomResourceDefinition"):
            for manifest in (await world.cluster.list(kind)).items:
                if manifest["metadata"]["name"] != "argosy-login-attempts":
                    versions[str(key_of(manifest))] = manifest["metadata"]["resourceVersion"]
    return versions


async def find_changed(world: World, caller: str, table: Sequence[Route]) -> list[str]:
    """The objects that this caller changes through the given routes; real handlers run, not stubs."""
    entry, before = world.entry(table), await state(world)
    for route in table:
        if not route.is_mutating or route.path in LOOKING:
            continue
        case = FILL[ROWS_BY_ROUTE[route.method, route.path].about]("own")
        body, headers = sent(route, case, dict(world.callers[caller].headers))
        got = await ask(entry, route.method, address(route, case), headers, body)
        assert got.code < 500, (route.path, got.body)
    after = await state(world)
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


@pytest.mark.parametrize(
    "caller",
    ["viewer-a", *(pytest.param(name, marks=IN_TEST_ALL_AND_PROVE) for name in ("reader", "nothing", "logs-b"))],
)
async def test_read_only_user_changes_nothing_through_any_route(world: World, caller: str) -> None:
    """Covers additional checks inside a route, besides its permission."""
    assert await find_changed(world, caller, build_routes(world.site)) == []


async def test_proof_detects_a_route_that_lets_a_viewer_write(world: World) -> None:
    """A sync route that requires only the get permission."""
    path = "/api/v1/applications/{name}/sync"
    table = [route for route in build_routes(world.site) if route.path == path]
    assert await find_changed(world, "viewer-a", table) == []
    broken = [
        replace(route, access=RequiresPermission("applications", "get", route.access.resolver)) for route in table
    ]  # type: ignore
    assert [key for key in await find_changed(world, "viewer-a", broken) if "Application" in key]
