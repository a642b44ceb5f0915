"""Builds a request for every route of the route table, for proofs of authorization.

In: a row of `proofs/auth_rows.txt`, a route, and whether its object is own, foreign or absent. Out: a Case: path
parameters, a body, and the RBAC object. Never: uses the resolvers of the server.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from argosy.web.route import Route
from support.paths import TESTS
from support.tenants import CONTROL, REPOSITORIES, SERVERS

ROWS = TESTS / "proofs" / "auth_rows.txt"
VARIANTS = ("own", "foreign", "absent")
TEAM = {"own": "team-a", "foreign": "team-b"}


class Row(NamedTuple):
    needs: str  # public, signed, list, or may
    resource: str = ""
    action: str = ""
    about: str = ""  # the kind of object


def rows() -> dict[tuple[str, str], Row]:
    rows_by_route = {}
    for line in ROWS.read_text().splitlines():
        if line and not line.startswith("#"):
            method, path, *columns = line.split()
            rows_by_route[method, path] = Row(*columns)
    return rows_by_route


ROWS_BY_ROUTE = rows()


class Case(NamedTuple):
    values: dict[str, str]
    thing: str | None  # the RBAC object; None: the object does not exist
    query: dict[str, str]
    body: Any
    also: tuple[str, str] | None = None  # a second permission that is required: resource and action


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


def of_logged(variant: str) -> Case:
    """Logs of an Application also require applications, get."""
    return of_application(variant)._replace(also=("applications", "get"))


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
    """The object need not exist, because it may be created."""
    case = of_repository(variant)
    return case if case.thing else case._replace(thing=case.values["repo"])


def of_readable(variant: str) -> Case:
    """A repository that is not declared counts as existing for users with the permission to create it."""
    case = of_repository(variant)
    return case if case.thing else case._replace(thing=case.values["repo"], also=("repositories", "create"))


def of_owned(variant: str) -> Case:
    """A model or a notebook that belongs to an Application."""
    team = TEAM.get(variant)
    values = {"ns": team or "team-a", "name": f"thing-{team[-1]}" if team else "zz"}
    values |= {"id": "1", "cell": "0", "output": "0"}
    return Case(values, f"{team}/app-{team[-1]}" if team else None, {}, {})


def of_nothing(variant: str) -> Case:
    """No object of this kind exists."""
    return Case({"keyID": "ABCD", "env": "dev", "deed": "promote"}, None, {}, {})


def of_set(variant: str) -> Case:
    """No ApplicationSet exists. argo: the RBAC object of a new one has the project of its Applications."""
    return Case({"name": "zz"}, None, {}, {})


def of_new_set(variant: str) -> Case:
    team = TEAM.get(variant, "zz")
    template = {"metadata": {"name": "x"}, "spec": spec_of(team)}
    spec = {"generators": [], "template": template}
    manifest = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": "new"},
        "spec": spec,
    }
    return Case({}, f"{team}/new", {}, {**manifest, "applicationSet": manifest})


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
    "logged": of_logged, "project": of_project, "readable": of_readable, "repository": of_repository, "set": of_set,
    "new-set": of_new_set, "validated": of_validated,
}  # fmt: skip


def address(route: Route, case: Case) -> str:
    parts = [
        quote(case.values[part[1:-1].rstrip("*")], safe="") if part.startswith("{") else part
        for part in route.path.split("/")
    ]
    return "/".join(parts) + (f"?{urlencode(case.query)}" if case.query else "")


def sent(route: Route, case: Case, headers: dict[str, str]) -> tuple[bytes, dict[str, str]]:
    if route.is_api:
        body = "restart" if route.path.endswith("/resource/actions") else case.body
        if route.path.endswith("/manifestsWithFiles"):  # the first message of a stream
            body = {"query": {"name": case.body["name"], "checksum": "0"}}
        return json.dumps(body).encode(), headers
    form = {"csrf": "", **{name: value for name, value in (case.body or {}).items() if isinstance(value, str)}}
    form_headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "http://localhost"}
    return urlencode(form).encode(), {**headers, **form_headers}
