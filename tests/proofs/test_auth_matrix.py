"""Every route × every caller × own, foreign and absent objects: who is let through, and what the others are told.

What is expected is worked out here, from the table of grants and the rows of `auth_rows.txt`, by a few lines that share
nothing with the server. A route without a row fails.
"""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import pytest
from guarded_world import CONTROL, GRANTS, REPOSITORIES, SERVERS, World, ask, guarded_world, stubbed

from argosy.model.manifest import key_of
from argosy.server.answers import Json
from argosy.server.asked import Asked
from argosy.server.routes import Filtered, May, Public, Route, SignedIn
from argosy.server.table import TABLE

pytestmark = [pytest.mark.anyio, pytest.mark.prove]
ROWS = Path(__file__).with_name("auth_rows.txt")
VARIANTS = ("own", "foreign", "absent")
TEAM = {"own": "team-a", "foreign": "team-b"}
DENIED = b'{"error":"permission denied","code":7,"message":"permission denied"}'
UNKNOWN = b'{"error":"no session information","code":16,"message":"no session information"}'
# Routes that are for everybody: one more of them is a decision.
EVERYBODYS = {
    "GET /api/badge", "GET /api/v1/settings", "GET /api/version", "GET /auth/callback", "GET /auth/login",
    "GET /enter", "GET /healthz", "GET /login", "GET /readyz", "GET /static/{digest}/{name}", "POST /api/v1/session",
    "POST /api/webhook", "POST /login",
}  # fmt: skip
# Of those who may only look: what these write is what looking writes.
LOOKING = {"/apps/{ns}/{name}/refresh", "/logout", "/api/v1/session", "/preferences", "/api/webhook", "/login"}


class Row(NamedTuple):
    needs: str  # public, signed, list, or may
    resource: str = ""
    action: str = ""
    about: str = ""  # which kind of object


def rows() -> dict[tuple[str, str], Row]:
    found = {}
    for line in ROWS.read_text().splitlines():
        if line and not line.startswith("#"):
            method, path, *rest = line.split()
            found[method, path] = Row(*rest)
    return found


ROWS_BY_ROUTE = rows()


# -- what is expected ------------------------------------------------------------------------------------------------


def may(who: str, resource: str, action: str, thing: str) -> bool:
    """Who is allowed by one rule and denied by none."""
    told = [
        effect
        for kind, verb, pattern, effect in GRANTS.get(who, ())
        if kind in ("*", resource) and fnmatchcase(action, verb) and fnmatchcase(thing, pattern)
    ]
    return "allow" in told and "deny" not in told


class Case(NamedTuple):
    values: dict[str, str]
    thing: str | None  # None: there is no such object
    query: dict[str, str]
    body: Any
    also: str = ""  # an action that is asked for besides, before it counts as there


def spec_of(team: str) -> dict[str, Any]:
    source = {"repoURL": "https://git.example.com/x", "path": "app"}
    return {"project": team, "source": source, "destination": {"server": "https://x", "namespace": "n"}}


def of_application(variant: str) -> Case:
    team = TEAM.get(variant)
    name = f"app-{team[-1]}" if team else "app-zz"
    values = {"name": name, "ns": CONTROL, "podName": "pod", "revision": "abc", "group": "apps", "kind": "Deployment"}
    values |= {"rns": team or "team-a", "rname": "web", "id": "1", "applicationName": name}
    resource = {"group": "apps", "kind": "Deployment", "version": "v1", "resourceName": "web"}
    query = {**resource, "namespace": team or "team-a", "action": "restart"}
    body = {**query, "name": name, "metadata": {"name": name, "namespace": CONTROL}, "spec": spec_of(team or "zz")}
    return Case(values, f"{team}/{name}" if team else None, query, body)


def of_new_application(variant: str) -> Case:
    team = TEAM.get(variant, "zz")
    body = {"metadata": {"name": "new", "namespace": CONTROL}, "spec": spec_of(team)}
    return Case({}, f"{team}/new", {}, body)


def of_project(variant: str) -> Case:
    name = TEAM.get(variant, "zz")
    body = {"project": {"metadata": {"name": name}, "spec": {}}}
    values = {"name": name, "project": name, "role": "deployer", "iat": "1"}
    return Case(values, name if variant in TEAM else None, {}, body)


def of_new_project(variant: str) -> Case:
    name = {"own": "team-a", "foreign": "team-b", "absent": "team-c"}[variant]
    return Case({}, name, {}, {"project": {"metadata": {"name": name}, "spec": {}}})


def of_repository(variant: str) -> Case:
    team = TEAM.get(variant)
    url = REPOSITORIES[team] if team else "https://git.example.com/zz"
    body = {"repo": url, "url": url, "project": team or ""}
    return Case({"repo": url, "url": url}, f"{team}/{url}" if team else None, {}, body)


def of_new_repository(variant: str) -> Case:
    team = TEAM.get(variant, "zz")
    url = f"https://git.example.com/new-{team}"
    return Case({}, f"{team}/{url}", {}, {"repo": url, "url": url, "project": team})


def of_cluster(variant: str) -> Case:
    team = TEAM.get(variant)
    server = SERVERS[team] if team else "https://zz.example.com"
    body = {"server": server, "name": team or "zz", "project": team or "", "config": {}}
    return Case({"id": server}, f"{team}/{server}" if team else None, {}, body)


def of_new_cluster(variant: str) -> Case:
    team = TEAM.get(variant, "zz")
    server = f"https://new-{team}.example.com"
    return Case({}, f"{team}/{server}", {}, {"server": server, "name": f"new-{team}", "project": team, "config": {}})


def of_validated(variant: str) -> Case:
    """It need not be there: it may be made."""
    case = of_repository(variant)
    return case if case.thing else case._replace(thing=case.values["repo"])


def of_readable(variant: str) -> Case:
    """What is not declared counts as there for who may declare it."""
    case = of_repository(variant)
    return case if case.thing else case._replace(thing=case.values["repo"], also="create")


def of_owned(variant: str) -> Case:
    """A model or a notebook of the Application."""
    team = TEAM.get(variant)
    values = {"ns": team or "team-a", "name": f"thing-{team[-1]}" if team else "zz"}
    values |= {"id": "1", "cell": "0", "output": "0"}
    return Case(values, f"{team}/app-{team[-1]}" if team else None, {}, {})


def of_nothing(variant: str) -> Case:
    """There is none of it here."""
    return Case({"keyID": "ABCD", "env": "dev", "deed": "promote"}, None, {}, {})


def of_set(variant: str) -> Case:
    """An ApplicationSet: there is none; argo: a new one is named by the project of what it makes."""
    return Case({"name": "zz"}, None, {}, {})


def of_new_set(variant: str) -> Case:
    team = TEAM.get(variant, "zz")
    template = {"metadata": {"name": "x"}, "spec": spec_of(team)}
    spec = {"generators": [], "template": template}
    made = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "new"}, "spec": spec}
    return Case({}, f"{team}/new", {}, {**made, "applicationSet": made})


def of_account(variant: str) -> Case:
    name = {"own": "viewer-a", "foreign": "dev-a", "absent": "zz"}[variant]
    return Case({"name": name, "id": "1"}, name, {}, {})


def of_everything(variant: str) -> Case:
    values = {"keyID": "ABCD", "digest": "0", "name": "argosy.css", "ns": "n", "id": "1", "rest": "x"}
    values |= {"resource": "applications", "action": "get", "subresource": "x"}
    return Case(values, "", {"url": "https://x"}, {})


FILL: dict[str, Callable[[str], Case]] = {
    "": of_everything, "account": of_account, "all": of_everything, "application": of_application,
    "cluster": of_cluster, "new-application": of_new_application, "new-cluster": of_new_cluster,
    "new-project": of_new_project, "new-repository": of_new_repository, "nothing": of_nothing, "owned": of_owned,
    "project": of_project, "readable": of_readable, "repository": of_repository, "set": of_set,
    "new-set": of_new_set, "validated": of_validated,
}  # fmt: skip


def expected(row: Row, who: str, case: Case) -> str:
    if row.needs == "public":
        return "reached"
    if not who:
        return "unknown"
    if row.needs in ("signed", "list"):
        return "reached"
    if case.thing is None or (case.also and not may(who, row.resource, case.also, case.thing)):
        return "refused"
    return "reached" if may(who, row.resource, row.action, case.thing) else "refused"


# -- what is found ---------------------------------------------------------------------------------------------------


async def reached(asked: Asked) -> Json:
    return Json({"reached": asked.thing})


def outcome(route: Route, got: Any) -> str:
    if got.code == 200 and b'"reached"' in got.body:
        return "reached"
    if route.is_api:
        told = {(401, UNKNOWN): "unknown", (403, DENIED): "refused"}
        return told.get((got.code, got.body), f"{got.code} {got.body[:300]!r}")
    if got.code == 303 and got.headers["location"].startswith("/login"):
        return "unknown"
    if got.code == 401:
        return "unknown"
    return "refused" if got.code == 404 else f"{got.code} {got.body[:300]!r}"


def address(route: Route, case: Case) -> str:
    parts = [
        quote(case.values[part[1:-1].rstrip("*")], safe="") if part.startswith("{") else part
        for part in route.path.split("/")
    ]
    return "/".join(parts) + (f"?{urlencode(case.query)}" if case.query else "")


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
    async with guarded_world(tmp_path_factory.mktemp("world")) as made:
        yield made


def written(route: Route) -> str:
    match route.needs:
        case Public():
            return "public"
        case SignedIn():
            return "signed"
        case Filtered(resource, action):
            return f"list {resource} {action}"
        case May(resource, action):
            return f"may {resource} {action}"


def test_every_route_has_a_row_and_needs_what_it_says() -> None:
    found = {(route.method, route.path): written(route) for route in TABLE}
    said = {key: " ".join(filter(None, row[:3])) for key, row in ROWS_BY_ROUTE.items()}
    wrong = [f"{method} {path} {needs}" for (method, path), needs in found.items() if said.get((method, path)) != needs]
    assert wrong == [], "write these into auth_rows.txt, once they are right:\n" + "\n".join(sorted(wrong))
    assert set(said) - set(found) == set(), "rows without a route"


def test_few_routes_are_for_everybody() -> None:
    assert {f"{method} {path}" for (method, path), row in ROWS_BY_ROUTE.items() if row.needs == "public"} == EVERYBODYS


async def test_no_cell_of_the_matrix_is_a_hole(world: World, size: Callable[[int], int], rng: random.Random) -> None:
    entry = world.entry(stubbed(TABLE, reached))
    everything = list(cells(TABLE, world.callers))
    assert len(everything) >= 5000
    each = list(world.callers)
    once = [(route, each[number % len(each)], VARIANTS[number % 3]) for number, route in enumerate(TABLE)]
    chosen = everything if size(100) == 100 else [*once, *rng.sample(everything, size(len(everything)))]
    wrong = []
    for route, caller, variant in chosen:
        row = ROWS_BY_ROUTE[route.method, route.path]
        case = FILL[row.about](variant)
        headers, body = dict(world.callers[caller].headers), b""
        if route.changes:
            body, headers = sent(route, case, headers)
        got = await ask(entry, route.method, address(route, case), headers, body)
        wanted, found = expected(row, world.callers[caller].name, case), outcome(route, got)
        if found != wanted:
            wrong.append(f"{route.method} {route.path} as {caller} of {variant}: {found}, not {wanted}")
    one_each = {line.partition(" as ")[0]: line for line in reversed(wrong)}
    assert wrong == [], f"{len(wrong)} of {len(chosen)}, such as:\n" + "\n".join(one_each.values())


def sent(route: Route, case: Case, headers: dict[str, str]) -> tuple[bytes, dict[str, str]]:
    if route.is_api:
        body = "restart" if route.path.endswith("/resource/actions") else case.body
        return json.dumps(body).encode(), headers
    form = {"csrf": "", **{name: value for name, value in (case.body or {}).items() if isinstance(value, str)}}
    own = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "http://localhost"}
    return urlencode(form).encode(), {**headers, **own}


async def state(world: World) -> dict[str, str]:
    """The version of everything but Events and what counts guesses."""
    found = {}
    for kind in await world.cluster.kinds():
        if kind.kind not in ("Event", "Lease", "CustomResourceDefinition"):
            for each in (await world.cluster.list(kind)).items:
                if each["metadata"]["name"] != "argosy-login-attempts":
                    found[str(key_of(each))] = each["metadata"]["resourceVersion"]
    return found


@pytest.mark.parametrize("caller", ["reader", "viewer-a", "nothing", "logs-b"])
async def test_who_may_only_look_changes_nothing_by_any_route(world: World, caller: str) -> None:
    """With the answers as they are: what a route asks for besides its permission is asked here, too."""
    entry, before = world.entry(TABLE), await state(world)
    for route in TABLE:
        if not route.changes or route.path in LOOKING:
            continue
        case = FILL[ROWS_BY_ROUTE[route.method, route.path].about]("own")
        body, headers = sent(route, case, dict(world.callers[caller].headers))
        got = await ask(entry, route.method, address(route, case), headers, body)
        assert got.code < 500, (route.path, got.body)
    assert await state(world) == before
