"""Requests through all middleware, on a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pytest

from argosy.errors import Conflict, UserError
from argosy.features.serve.web_application import open_web_application
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.web import requested_application_lookup
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse, PageResponse, StreamResponse
from argosy.web.route import FilteredList, Public, QueryParameter, RequiresPermission, Route, SignedIn
from argosy.web.serve_options import ServeOptions
from support.deadlines import HANG_SECONDS
from support.engine import furnish
from support.page_site import CONTROL, Client, KnownPeople, a_site, anything, nothing, on_a_socket
from support.route_table import ROUTE_TABLE, build_routes

pytestmark = pytest.mark.anyio
DENIED = b'{"error":"permission denied","code":7,"message":"permission denied"}'
UNKNOWN = b'{"error":"no session information","code":16,"message":"no session information"}'


async def tell(request: RequestContext) -> JsonResponse:
    return JsonResponse({"thing": request.rbac_object, "who": request.caller.name, "sent": await request.read_json()})


async def page(request: RequestContext) -> PageResponse:
    return PageResponse("error.html", {"title": "<b>", "message": "", "next": ""})


def failing(error: Exception) -> Any:
    async def fail(request: RequestContext) -> JsonResponse:
        raise error

    return fail


async def ticking(request: RequestContext) -> StreamResponse:
    async def ticks() -> AsyncIterator[bytes]:
        while True:
            yield b"data: s3cr3t-value tick\n\n"
            await asyncio.sleep(0.05)

    return StreamResponse(ticks(), last_chunk=b"event: bye\n\n")


async def read(request: RequestContext) -> JsonResponse:
    return JsonResponse({**SAID, **dict(request.query)})


async def write(request: RequestContext) -> JsonResponse:
    return JsonResponse(await request.read_json())


OF_APP = RequiresPermission("applications", "get", requested_application_lookup.resolve_application)
ROUTES = (
    Route("GET", "/api/v1/applications", FilteredList("applications", "get"), tell),
    Route("GET", "/api/v1/applications/{name}", OF_APP, tell, query=(QueryParameter("project"),)),
    Route(
        "POST",
        "/api/v1/applications/{name}/sync",
        RequiresPermission("applications", "sync", requested_application_lookup.resolve_application),
        tell,
    ),
    Route(
        "POST",
        "/api/v1/applications/{name}/write",
        RequiresPermission("applications", "update", requested_application_lookup.resolve_application),
        write,
    ),
    Route("GET", "/api/v1/applications/{name}/logs", SignedIn(), ticking),
    Route("GET", "/api/v1/applications/{name}/read", OF_APP, read),
    Route("GET", "/apps/{ns}/{name}", OF_APP, page),
    Route(
        "POST",
        "/apps/{ns}/{name}/sync",
        RequiresPermission("applications", "sync", requested_application_lookup.resolve_application),
        tell,
    ),
    Route("GET", "/api/bad/user", Public("a test"), failing(UserError("wrong; write it right", where="field"))),
    Route("GET", "/api/bad/conflict", Public("a test"), failing(Conflict("somebody else was first"))),
    Route("GET", "/api/bad/bug", Public("a test"), failing(ValueError("hunter2 is the password"))),
)


def app(name: str, project: str = "default", namespace: str = CONTROL) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "resourceVersion": "1", "uid": name}
    spec = {"project": project, "source": {"repoURL": "https://x/y", "path": "p"}, "destination": {"namespace": "n"}}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}


SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s", "namespace": CONTROL},
    "data": {"password": "czNjcjN0LXZhbHVl"},  # s3cr3t-value
}
OF_APPLICATION = {**SECRET, "metadata": {"name": "s", "namespace": "n"}}
TAKES_FROM_OTHER = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "AppProject",
    "metadata": {"name": "default", "namespace": CONTROL},
    "spec": {"sourceNamespaces": ["oth*"], "destinations": [{"server": "*", "name": "*", "namespace": "*"}]},
}
PEOPLE = {
    "ann": anything,
    "bob": nothing,
    "cid": lambda resource, action, thing: thing.startswith("mine/"),
}

OURS = {route.path for route in ROUTES}


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    elsewhere = [app("o", "default", "other"), app("s", "mine", "other")]
    things = [app("a"), app("m", "mine"), *elsewhere, SECRET, OF_APPLICATION, TAKES_FROM_OTHER]
    site = a_site(things, KnownPeople(dict(PEOPLE)))
    async with on_a_socket(site, (*ROUTES, *(route for route in build_routes(site) if route.path not in OURS))) as (
        client,
        _,
    ):
        yield client


async def ask(client: Client, *words: Any, **more: Any) -> Any:
    return await asyncio.to_thread(client.ask, *words, **more)


async def bearer(client: Client, *words: Any) -> Any:
    return await asyncio.to_thread(client.bearer, *words)


async def test_missing_and_invalid_credentials_get_the_same_401(client: Client) -> None:
    for headers in ({}, {"Authorization": "Bearer nobody"}, {"Authorization": "Bearer"}):
        got = await ask(client, "GET", "/api/v1/applications/a", headers=headers)
        assert (got.code, got.body) == (401, UNKNOWN)


async def test_missing_and_forbidden_applications_get_the_same_403(client: Client) -> None:
    absent, forbidden = [await bearer(client, "cid", "GET", f"/api/v1/applications/{name}") for name in ("zz", "a")]
    assert (absent.code, absent.body) == (forbidden.code, forbidden.body) == (403, DENIED)
    assert (await bearer(client, "cid", "GET", "/api/v1/applications/m")).json()["thing"] == "mine/m"


async def test_missing_and_forbidden_pages_are_the_same_404(client: Client) -> None:
    cookie = {"Cookie": "argosy=cid"}
    pages = [await ask(client, "GET", f"/apps/argocd/{name}", headers=cookie) for name in ("zz", "a")]
    assert pages[0].code == pages[1].code == 404
    assert pages[0].body.replace(b"/zz", b"/a") == pages[1].body
    assert (await ask(client, "GET", "/apps/argocd/m", headers=cookie)).code == 200


async def test_application_in_another_namespace_is_checked_with_its_namespace(client: Client) -> None:
    got = await bearer(client, "ann", "GET", "/api/v1/applications/o?appNamespace=other")
    assert got.json()["thing"] == "default/other/o"


async def test_application_outside_source_namespaces_is_denied(client: Client) -> None:
    for who in ("ann", "cid"):
        assert (await bearer(client, who, "GET", "/api/v1/applications/s?appNamespace=other")).body == DENIED


async def test_missing_application_in_a_visible_project_is_404(client: Client) -> None:
    assert (await bearer(client, "cid", "GET", "/api/v1/applications/zz?project=mine")).code == 404
    assert (await bearer(client, "cid", "GET", "/api/v1/applications/a?project=mine")).code == 404
    assert (await bearer(client, "cid", "GET", "/api/v1/applications/a?project=default")).body == DENIED


async def test_page_without_a_session_redirects_to_login(client: Client) -> None:
    got = await ask(client, "GET", "/apps/argocd/a?tab=diff")
    assert (got.code, got.headers["location"]) == (303, "/login?next=%2Fapps%2Fargocd%2Fa%3Ftab%3Ddiff")


async def test_method_not_allowed_lists_allowed_methods(client: Client) -> None:
    got = await bearer(client, "ann", "DELETE", "/api/v1/applications/a")
    assert (got.code, got.headers["allow"]) == (405, "GET, HEAD")
    got = await ask(client, "OPTIONS", "/api/v1/applications/a", headers={"Origin": "https://evil"})
    assert got.code == 405
    assert not [name for name in got.headers if name.startswith("access-control")]


async def test_head_is_get_without_a_body(client: Client) -> None:
    got = await bearer(client, "ann", "HEAD", "/api/v1/applications/a")
    assert (got.code, got.body) == (200, b"")
    assert int(got.headers["content-length"]) > 0


async def test_errors_have_the_format_of_argo_cd(client: Client) -> None:
    assert (await ask(client, "GET", "/api/bad/user")).json() == {
        "error": "field: wrong; write it right", "code": 3, "message": "field: wrong; write it right",
    }  # fmt: skip
    assert (await ask(client, "GET", "/api/bad/conflict")).code == 409


async def test_unexpected_error_shows_only_a_reference_number(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    got = await ask(client, "GET", "/api/bad/bug")
    assert got.code == 500
    assert b"hunter2" not in got.body
    number = got.json()["message"].rpartition(" ")[2]
    assert number in caplog.text


async def test_request_body_is_read_within_limits(client: Client) -> None:
    sync = "/api/v1/applications/a/sync"
    assert (await bearer(client, "ann", "POST", sync, {"a": 1})).json()["sent"] == {"a": 1}
    headers = {"Authorization": "Bearer ann", "Content-Type": "application/json"}
    assert (await ask(client, "POST", sync, "[" * 200 + "]" * 200, headers)).code == 400
    assert (await ask(client, "POST", sync, "{", headers)).code == 400
    assert (await ask(client, "POST", sync, None, {**headers, "Content-Length": "9999999"})).code == 413


SAID = {"say": "it is s3cr3t-value", "b": "czNjcjN0LXZhbHVl"}


async def test_known_secret_is_redacted_in_every_field(client: Client) -> None:
    got = await bearer(client, "ann", "GET", "/api/v1/applications/a/read")
    assert got.json() == {"say": "it is ++++++++", "b": "++++++++"}


async def test_sent_value_is_echoed_unredacted_only_in_its_own_field(client: Client) -> None:
    got = await bearer(client, "ann", "POST", "/api/v1/applications/a/write", SAID)
    assert got.json() == SAID
    got = await bearer(client, "ann", "POST", "/api/v1/applications/a/sync", SAID)
    assert got.json()["sent"] == {"say": "it is ++++++++", "b": "++++++++"}, "it may have been read"


async def test_sent_value_is_echoed_unredacted_beside_the_redacted_stored_value(client: Client) -> None:
    for guess in ("s3cr3t-value", "w0r9nt-guess", "%73%33cr3t-value", "a+s3cr3t-value+czNjcjN0LXZhbHVl"):
        got = await bearer(client, "ann", "GET", f"/api/v1/applications/a/read?q={guess}")
        assert got.json() == {"say": "it is ++++++++", "b": "++++++++", "q": unquote_plus(guess)}


LOGS = b"GET /api/v1/applications/a/logs HTTP/1.1\r\nHost: [::1]:8484\r\nAuthorization: Bearer cid\r\n\r\n"


async def test_stream_ends_when_the_session_of_its_caller_ends() -> None:
    people = KnownPeople(dict(PEOPLE))
    async with on_a_socket(a_site([SECRET], people), ROUTES) as (client, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        writer.write(LOGS)
        await reader.readuntil(b"tick")
        people.gone.add("cid")
        async with asyncio.timeout(HANG_SECONDS):
            rest = await reader.readuntil(b"event: bye")
        assert b"s3cr3t" not in rest
        writer.close()


async def test_server_stops_at_once_with_an_open_stream() -> None:
    async with asyncio.timeout(HANG_SECONDS):
        async with on_a_socket(a_site([], KnownPeople(dict(PEOPLE))), ROUTES) as (client, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
            writer.write(LOGS)
            await reader.readuntil(b"tick")
        writer.close()


async def test_application_is_served_with_the_whole_route_table(tmp_path: Path) -> None:
    async with EmbeddedCluster.open() as cluster:
        await furnish(cluster, CONTROL)
        async with open_web_application(cluster, "a test", ServeOptions(), tmp_path, CONTROL) as application:
            served = [(route.method, route.path) for route in application.routes]
    assert served == [(route.method, route.path) for route in ROUTE_TABLE]
