"""Cross-site attacks through a browser change nothing, at every route of the table.

Every mutating route × content types × origins with a cookie; every route with a foreign Host; all response headers.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import pytest

from argosy.web.auth.caller import Caller, RequestCredentials
from argosy.web.auth.login_codes import LoginCodes
from argosy.web.middleware import csrf_check as server_origin
from argosy.web.middleware import host_check
from argosy.web.middleware import response_headers as server_headers
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import Public, Route
from argosy.web.serve_options import ServeOptions
from support.page_site import a_request
from support.route_requests import FILL, ROWS_BY_ROUTE, address, sent
from support.route_table import ROUTE_TABLE, build_routes
from support.tenants import World, ask, guarded_world, stubbed

pytestmark = [pytest.mark.anyio, pytest.mark.tier("test", "prove")]
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
MEDIA = (JSON, FORM, "text/plain", "multipart/form-data; boundary=x", "")
OWN = "http://localhost"
ORIGINS = (OWN, "", "null", "https://evil.example.com", "http://sub.localhost", "https://localhost")
GOLDEN = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("browser")
    async with guarded_world(folder) as opened_world:
        token = await opened_world.site.authenticator.login_with_one_time_code(
            LoginCodes(folder / "page").create_code()
        )
        opened_world.callers["browser"] = opened_world.callers["admin"]._replace(
            headers={"Cookie": f"argosy-1={token}"}
        )
        yield opened_world


async def reached(request: RequestContext) -> JsonResponse:
    return JsonResponse({"reached": True})


async def of_session(world: World) -> str:
    cookie = world.callers["browser"].headers["Cookie"].partition("=")[2]
    caller = await world.site.authenticator.identify(RequestCredentials(cookies={"argosy-1": cookie}))
    assert caller
    return a_request(world.site, "GET", "/", caller=caller).csrf_token


def is_forged(route: Route, media: str, origin: str) -> bool:
    """True if another site's page could make a browser send this, or if our own pages never send it."""
    return media != (JSON if route.is_api else FORM) or origin != OWN


Cell = tuple[Route, str, str]  # and a content type, and an origin


def cells(table: Sequence[Route]) -> list[Cell]:
    routes = [route for route in table if route.is_mutating and "*" not in route.accepted_media_types]
    return [(route, media, origin) for route in routes for media in MEDIA for origin in ORIGINS]


async def find_forged(world: World, chosen: Sequence[Cell]) -> list[str]:
    entry, token = world.entry(stubbed(build_routes(world.site), reached)), await of_session(world)
    wrong = []
    for route, media, origin in chosen:
        case = FILL[ROWS_BY_ROUTE[route.method, route.path].about]("own")
        body, _ = sent(route, case, {})
        if not route.is_api:
            words = {name: value for name, value in (case.body or {}).items() if isinstance(value, str)}
            body = urlencode({**words, "csrf": token}).encode()
        headers = {**world.callers["browser"].headers, "Content-Type": media, "Origin": origin}
        got = await ask(entry, route.method, address(route, case), {k: v for k, v in headers.items() if v}, body)
        is_in = b'"reached"' in got.body
        has_object = ROWS_BY_ROUTE[route.method, route.path].about not in ("nothing", "set")
        if is_forged(route, media, origin) and is_in:
            wrong.append(f"{route.method} {route.path} as {media!r} from {origin!r} was let in")
        if not is_forged(route, media, origin) and has_object and not is_in:
            wrong.append(f"{route.method} {route.path} of our own page was kept out: {got.code} {got.body[:200]!r}")
    return wrong


async def test_cross_site_request_is_rejected_by_every_mutating_route(
    world: World, size: Callable[[int], int], rng: random.Random
) -> None:
    every = cells(ROUTE_TABLE)
    assert len(every) > 1500
    chosen = every if size(100) == 100 else rng.sample(every, size(len(every)) * 4)
    wrong = await find_forged(world, chosen)
    assert wrong == [], f"{len(wrong)} of {len(chosen)}:\n" + "\n".join(wrong[:30])


async def check_forms(world: World) -> None:
    entry = world.entry(stubbed(build_routes(world.site), reached))
    for route in ROUTE_TABLE:
        if not route.is_mutating or route.is_api or isinstance(route.access, Public):
            continue
        case = FILL[ROWS_BY_ROUTE[route.method, route.path].about]("own")
        for token in ("", "0" * 64):
            headers = {**world.callers["browser"].headers, "Content-Type": FORM, "Origin": OWN}
            body = urlencode({"csrf": token}).encode()
            got = await ask(entry, route.method, address(route, case), headers, body)
            assert b'"reached"' not in got.body, f"a form with the token {token!r} was let in: {route.path}"


async def test_form_without_its_session_csrf_token_is_rejected(world: World) -> None:
    await check_forms(world)


HOSTS = ("evil.example.com", "localhost.evil.example.com", "127.0.0.1.nip.io", "localhost@evil.example.com", "")


async def check_hosts(world: World) -> None:
    entry = world.entry(stubbed(build_routes(world.site), reached))
    for number, route in enumerate(ROUTE_TABLE):
        case = FILL[ROWS_BY_ROUTE[route.method, route.path].about]("own")
        headers = {**world.callers["admin"].headers, "Host": HOSTS[number % len(HOSTS)]}
        got = await ask(entry, route.method, address(route, case), headers)
        if route.path not in ("/healthz", "/readyz"):
            is_refused = (got.code, b'"reached"' in got.body) == (421, False)
            assert is_refused, f"answered as {headers['Host']!r}: {route.path}"


async def test_no_route_answers_to_an_unknown_host(world: World) -> None:
    await check_hosts(world)


async def check_headers(world: World) -> None:
    entry = world.entry(stubbed(build_routes(world.site), reached))
    for route in ROUTE_TABLE:
        case = FILL[ROWS_BY_ROUTE[route.method, route.path].about]("own")
        for method, headers in asking(route, world):
            body = sent(route, case, {})[0] if method == route.method and route.is_mutating else b""
            got = await ask(entry, method, address(route, case), headers, body)
            response_headers = {name: got.headers.get(name) for name in GOLDEN}
            assert response_headers == GOLDEN, f"other headers of {method} {route.path}, {got.code}: {response_headers}"
            assert not [name for name in got.headers if name.startswith("access-control") or name == "server"]


async def test_every_response_has_the_security_headers(world: World) -> None:
    await check_headers(world)


def asking(route: Route, world: World) -> list[tuple[str, dict[str, Any]]]:
    """As a signed-in user, anonymously, and with a method that the route does not allow."""
    return [
        (route.method, dict(world.callers["admin"].headers)),
        (route.method, {}),
        ("OPTIONS", {"Origin": "https://x"}),
    ]


async def test_websocket_is_closed(world: World) -> None:
    messages: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    await world.entry()({"type": "websocket", "path": "/", "headers": []}, receive, send)  # type: ignore[arg-type]
    assert messages == [{"type": "websocket.close", "code": 1008}]


def take_a_subdomain_for_us(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_origin, "_is_own_origin", lambda options, origin, headers: "localhost" in origin)


def take_no_origin_for_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    check = server_origin.check_origin

    def trusting(options: ServeOptions, route: Route, headers: Mapping[str, str], caller: Caller) -> None:
        check(options, route, {"sec-fetch-site": "same-origin", **headers}, caller)

    monkeypatch.setattr(server_origin, "check_origin", trusting)


def take_any_content_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_origin, "_check_content_type", lambda *_: None)


@pytest.mark.parametrize(
    ("seed_bug", "finding"),
    [
        (take_a_subdomain_for_us, "from 'http://sub.localhost' was let in"),
        (take_no_origin_for_ours, "from '' was let in"),
        (take_any_content_type, "as 'text/plain' from 'http://localhost' was let in"),
    ],
)
async def test_proof_detects_an_accepted_forged_request(
    world: World, monkeypatch: pytest.MonkeyPatch, seed_bug: Callable[..., None], finding: str
) -> None:
    chosen = cells([route for route in ROUTE_TABLE if route.path == "/api/v1/applications/{name}/sync"])
    assert await find_forged(world, chosen) == []
    seed_bug(monkeypatch)
    assert [line for line in await find_forged(world, chosen) if finding in line]


def forget_form_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object) -> None:
        pass

    monkeypatch.setattr(server_origin, "check_csrf_token", nothing)


def answer_to_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_check, "is_known_host", lambda *_, **__: True)


def leave_a_header_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_headers, "COMMON_HEADERS", server_headers.COMMON_HEADERS[1:])


@pytest.mark.parametrize(
    ("seed_bug", "check", "finding"),
    [
        (forget_form_tokens, check_forms, "a form with the token '' was let in"),
        (answer_to_any_name, check_hosts, "answered as 'evil.example.com'"),
        (leave_a_header_out, check_headers, "'x-content-type-options': None"),
    ],
)
async def test_proof_detects_a_missing_browser_protection(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    seed_bug: Callable[..., None],
    check: Callable[[World], Awaitable[None]],
    finding: str,
) -> None:
    seed_bug(monkeypatch)
    with pytest.raises(AssertionError, match=finding):
        await check(world)
