"""Host check, CSRF check, request limits, response headers, and route matching."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import pytest

from argosy.web import request_limits
from argosy.web.auth.caller import Caller
from argosy.web.middleware.csrf_check import check_origin
from argosy.web.middleware.host_check import is_known_host, parse_hostname
from argosy.web.middleware.response_headers import CONTENT_SECURITY_POLICY, get_safe_location
from argosy.web.request import RequestContext, RequestRejected
from argosy.web.request_limits import ConcurrencyLimits, RequestLimitExceeded
from argosy.web.responses import JsonResponse, RedirectResponse, TextResponse
from argosy.web.route import Public, Route, RouteTree, SignedIn
from support.page_site import Client, KnownPeople, a_request, a_site, anything, on_a_socket

pytestmark = pytest.mark.anyio
HOSTS = ("localhost", "127.0.0.1", "[::1]", "argosy.example.com")
GIVEN = [
    ("localhost", True), ("localhost:8484", True), ("LOCALHOST:1", True), ("localhost.", True), ("127.0.0.1:80", True),
    ("[::1]", True), ("[::1]:8484", True), ("argosy.example.com", True),
    ("", False), ("evil.example.com", False), ("127.0.0.1.evil.com", False), ("localhost@evil.com", False),
    ("localhost:80:80", False), ("localhost:x", False), ("[::1", False), ("evil.com:8484", False), ("10.0.0.1", False),
    ("localhost evil.com", False), ("localhost/evil", False), ("argosy.example.com.evil.org", False),
]  # fmt: skip


@pytest.mark.parametrize(("host", "expected"), GIVEN)
def test_host_check_accepts_only_known_hosts(host: str, expected: bool) -> None:
    assert is_known_host([host], HOSTS) is expected


def test_host_check_rejects_duplicate_and_missing_hosts() -> None:
    assert not is_known_host(["localhost", "localhost"], HOSTS)
    assert not is_known_host([], HOSTS)


def test_ip_address_hosts_are_accepted_if_not_loopback_only() -> None:
    assert is_known_host(["10.1.2.3:443"], HOSTS, is_loopback=False)
    assert is_known_host(["[fd00::1]:443"], HOSTS, is_loopback=False)
    assert not is_known_host(["evil.com"], HOSTS, is_loopback=False)
    assert parse_hostname("[fd00::1]:443") == "[fd00::1]"


WHERE = [
    ("/apps?x=1", "/apps?x=1"), ("//evil.com", "/"), ("https://evil.com", "/"), ("/\\evil.com", "/"), ("", "/"),
    ("javascript:alert(1)", "/"), ("/a\r\nSet-Cookie: x", "/"), ("/a b", "/"),
]  # fmt: skip


@pytest.mark.parametrize(("where", "expected"), WHERE)
def test_redirect_stays_on_this_site(where: str, expected: str) -> None:
    assert get_safe_location(RedirectResponse(where)) == expected


def test_external_redirect_is_allowed_only_if_declared_and_safe() -> None:
    assert get_safe_location(RedirectResponse("https://issuer/auth", is_external=True)) == "https://issuer/auth"
    assert get_safe_location(RedirectResponse("javascript:x", is_external=True)) == "/"


async def return_caller_name(request: RequestContext) -> JsonResponse:
    return JsonResponse({"who": request.caller.name})


async def plain(request: RequestContext) -> TextResponse:
    return TextResponse("x" * 5000)


ROUTES = (
    Route("GET", "/api/v1/things", SignedIn(), return_caller_name),
    Route("POST", "/api/v1/things", SignedIn(), return_caller_name),
    Route("DELETE", "/api/v1/things/{name}", SignedIn(), return_caller_name),
    Route("POST", "/api/v1/session", Public("login"), return_caller_name),
    Route(
        "POST",
        "/api/webhook",
        Public("hosts of Git call it"),
        return_caller_name,
        accepted_media_types=("*",),
        max_body_bytes=5 << 20,
    ),
    Route("POST", "/things", SignedIn(), return_caller_name),
    Route("POST", "/login", Public("login"), return_caller_name),
    Route("GET", "/text", Public("a test"), plain),
)
PEOPLE = KnownPeople({"ann": anything})
SITE = a_site([], PEOPLE)
TOKEN = a_request(SITE, "GET", "/", caller=Caller("ann", (), "cookie", "id-of-ann")).csrf_token
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
MEDIA = [JSON, FORM, "text/plain", "multipart/form-data; boundary=x", ""]
ORIGINS = ["own", "", "https://evil.example.com", "null", "http://sub.localhost", "https://localhost"]


@pytest.fixture(scope="module")
async def client(anyio_backend: str) -> AsyncIterator[Client]:
    async with on_a_socket(SITE, ROUTES) as (client, _):
        yield client


async def code(client: Client, method: str, path: str, body: str = "", **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items() if value}
    if named.get("Origin") == "own":
        named["Origin"] = f"http://127.0.0.1:{client.port}"
    return (await asyncio.to_thread(client.ask, method, path, body, named)).code


@pytest.mark.parametrize("path", ["/api/v1/things", "/api/v1/things/a"])
async def test_cookie_request_changes_something_only_with_json_from_our_origin(client: Client, path: str) -> None:
    method = "DELETE" if path.endswith("/a") else "POST"
    for media in MEDIA:
        for origin in ORIGINS:
            got = await code(client, method, path, "{}", Cookie="argosy=ann", Content_Type=media, Origin=origin)
            assert (got == 200) is (media == JSON and origin == "own"), (media, origin, got)
    assert await code(
        client, method, path, "{}", Cookie="argosy=ann", Content_Type=JSON, Sec_Fetch_Site="same-origin"
    ) == 200  # fmt: skip
    for site in ("cross-site", "same-site", "none"):
        got = await code(client, method, path, "{}", Cookie="argosy=ann", Content_Type=JSON, Sec_Fetch_Site=site)
        assert got == 403


async def test_program_changes_something_with_a_token_in_the_cookie_of_argocd(client: Client) -> None:
    def ask(path: str, **headers: str) -> Any:
        return code(client, "POST", path, "{}", Cookie="argocd.token=ann", **headers)

    assert await ask("/api/v1/things", Content_Type=JSON) == 200
    assert await ask("/api/v1/things", Content_Type="text/plain") == 415
    assert await ask("/api/v1/things", Content_Type=JSON, Origin="https://evil.example.com") != 200
    assert await ask("/api/v1/things", Content_Type=JSON, Sec_Fetch_Site="same-site") != 200
    assert await ask("/things", Content_Type=FORM) != 200


def test_https_origin_behind_a_tls_proxy_must_match_the_host() -> None:
    route = Route("POST", "/api/v1/things", SignedIn(), return_caller_name)
    site = a_site([], PEOPLE, hosts=HOSTS)
    caller = Caller("ann", (), "cookie", "x")
    for host, origin, is_own in (
        ("argosy.example.com", "https://argosy.example.com", True),
        ("argosy.example.com", "https://argosy.example.com:8443", False),
        ("argosy.example.com", "https://evil.example.com", False),
        ("localhost", "https://localhost", False),
    ):
        headers = {"host": host, "origin": origin, "content-type": JSON}
        if is_own:
            check_origin(site.options, route, headers, caller)
        else:
            with pytest.raises(RequestRejected):
                check_origin(site.options, route, headers, caller)


async def test_bearer_token_needs_no_origin_but_a_foreign_one_is_refused(client: Client) -> None:
    for origin in ORIGINS:
        token = {"Authorization": "Bearer ann", "Content_Type": JSON}
        got = await code(client, "POST", "/api/v1/things", "{}", **token, Origin=origin)
        assert (got == 200) is (origin in ("own", "")), origin
    assert await code(client, "DELETE", "/api/v1/things/a", Authorization="Bearer ann") == 200
    odd = {"Authorization": "Bearer ann", "Content_Type": "text/plain"}
    assert await code(client, "POST", "/api/v1/things", "{}", **odd) == 415


async def test_form_needs_the_csrf_token_of_its_session_and_our_origin(client: Client) -> None:
    other = a_request(SITE, "GET", "/", caller=Caller("ann", (), "cookie", "another session")).csrf_token
    for token in (TOKEN, other, "", "x", TOKEN[:-1]):
        for origin in ORIGINS:
            body = urlencode({"csrf": token})
            got = await code(client, "POST", "/things", body, Cookie="argosy=ann", Content_Type=FORM, Origin=origin)
            assert (got == 200) is (token == TOKEN and origin == "own"), (token, origin, got)


async def test_login_from_a_foreign_origin_is_refused(client: Client) -> None:
    for path, media in (("/api/v1/session", JSON), ("/login", FORM)):
        for origin in ORIGINS[2:]:
            assert await code(client, "POST", path, "{}", Content_Type=media, Origin=origin) == 403
        assert await code(client, "POST", path, "{}", Content_Type=media, Origin="own") == 200
    assert await code(client, "POST", "/api/v1/session", "{}", Content_Type=JSON) == 200  # argocd login
    assert await code(client, "POST", "/api/v1/session", "{}", Content_Type=JSON, Sec_Fetch_Site="cross-site") == 403
    assert await code(client, "POST", "/login", "", Content_Type=FORM) == 403


async def test_webhook_accepts_any_media_type_up_to_its_size_limit(client: Client) -> None:
    for media in MEDIA:
        assert await code(client, "POST", "/api/webhook", "x", Content_Type=media) == 200
    assert await code(client, "POST", "/api/webhook", Content_Length=str(6 << 20)) == 413


async def test_cross_site_read_with_a_cookie_is_refused(client: Client) -> None:
    for site, expected in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200), ("", 200)):
        assert await code(client, "GET", "/api/v1/things", Cookie="argosy=ann", Sec_Fetch_Site=site) == expected
    assert await code(client, "GET", "/api/v1/things", Cookie="argosy=ann", Origin="https://evil") == 403


@pytest.mark.parametrize("word", ["X-HTTP-Method-Override", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL"])
async def test_method_override_headers_are_ignored(client: Client, word: str) -> None:
    got = await asyncio.to_thread(client.ask, "GET", "/text", None, {word: "DELETE", "X-Forwarded-Host": "evil"})
    assert got.code == 200


async def test_unknown_host_gets_421(client: Client) -> None:
    got = await asyncio.to_thread(client.ask, "GET", "/text", None, {"Host": "evil.example.com"})
    assert (got.code, b"xxxx" in got.body) == (421, False)


async def test_oversized_url_and_headers_are_refused(client: Client) -> None:
    assert await code(client, "GET", "/text?" + "x" * 9000) == 414
    many = {f"X-{number}": "1" for number in range(120)}
    assert (await asyncio.to_thread(client.ask, "GET", "/text", None, many)).code == 431
    assert (await asyncio.to_thread(client.ask, "GET", "/text", None, {"X-Long": "x" * 40000})).code == 431


async def test_responses_are_gzipped_if_accepted(client: Client) -> None:
    import gzip

    got = await asyncio.to_thread(client.ask, "GET", "/text", None, {"Accept-Encoding": "gzip, br"})
    assert got.headers["content-encoding"] == "gzip"
    assert gzip.decompress(got.body) == b"x" * 5000
    plain = await asyncio.to_thread(client.ask, "GET", "/text", None, {"Accept-Encoding": "gzip;q=0"})
    assert "content-encoding" not in plain.headers


GOLDEN = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [("GET", "/text", 200), ("GET", "/nowhere", 404), ("GET", "/api/nowhere", 404), ("PUT", "/text", 405),
     ("OPTIONS", "/text", 405), ("GET", "/api/v1/things", 401), ("POST", "/login", 415), ("GET", "/%ff", 404),
     ("GET", "/things?%ff=%ff", 405), ("GET", "/text?a=%ff", 400), ("GET", "/api/v1/things?a=%ff", 400),
     ("GET", "/../etc/passwd", 404), ("GET", "/%2e%2e/etc", 404), ("TRACE", "/text", 405)],
)  # fmt: skip
async def test_every_response_has_the_security_headers(client: Client, method: str, path: str, expected: int) -> None:
    got = await asyncio.to_thread(client.ask, method, path)
    assert got.code == expected
    assert {name: got.headers.get(name) for name in GOLDEN} == GOLDEN
    assert "server" not in got.headers
    assert not [name for name in got.headers if name.startswith("access-control")]


def test_concurrency_limits_are_enforced() -> None:
    gate = ConcurrencyLimits()
    import contextlib

    with contextlib.ExitStack() as stack:
        for _ in range(request_limits.MAX_MUTATING_IN_FLIGHT):
            stack.enter_context(gate.limit_request(is_change=True))
        with pytest.raises(RequestLimitExceeded), gate.limit_request(is_change=True):
            pass
        for _ in range(request_limits.MAX_REQUESTS_IN_FLIGHT - request_limits.MAX_MUTATING_IN_FLIGHT):
            stack.enter_context(gate.limit_request(is_change=False))
        with pytest.raises(RequestLimitExceeded), gate.limit_request(is_change=False):
            pass
        for _ in range(request_limits.MAX_STREAMS_PER_CALLER):
            stack.enter_context(gate.limit_stream("ann"))
        with pytest.raises(RequestLimitExceeded):
            gate.check_stream_limit("ann")
        gate.check_stream_limit("bob")
    assert (gate.in_flight, gate.mutating, gate.streams) == (0, 0, 0)


async def nothing(request: RequestContext) -> JsonResponse:
    return JsonResponse()


def test_encoded_slash_is_part_of_a_path_parameter() -> None:
    tree = RouteTree([Route("GET", "/api/repositories/{repo}/refs", SignedIn(), nothing)])
    route_match = tree.find("GET", "/api/repositories/https%3A%2F%2Fx%2Fy/refs")
    assert route_match
    assert route_match.values == {"repo": "https://x/y"}
    assert tree.find("GET", "/api/repositories/https://x/y/refs") is None
    assert tree.find("GET", "/api/repositories//refs") is None


def test_literal_segment_wins_over_a_path_parameter() -> None:
    expected = {"/a/b": "/a/b", "/a/z": "/a/{x}", "/a/b/c": "/a/{x}/c", "/f/x/y": "/f/{rest*}"}
    tree = RouteTree([Route("GET", path, SignedIn(), nothing) for path in expected.values()])
    matches = {path: tree.find("GET", path) for path in expected}
    assert {
        path: route_match.route.path for path, route_match in matches.items() if route_match and route_match.route
    } == expected


def test_literal_segment_of_one_method_does_not_hide_parameters_of_another() -> None:
    tree = RouteTree(
        [Route("GET", "/e/{x}/plan", SignedIn(), nothing), Route("POST", "/e/{x}/{deed}", SignedIn(), nothing)]
    )
    route_match = tree.find("POST", "/e/dev/plan")
    assert route_match
    assert route_match.values == {"x": "dev", "deed": "plan"}
    other = tree.find("PUT", "/e/dev/plan")
    assert other
    assert (other.route, other.allowed_methods) == (None, ("GET", "HEAD", "POST"))


@pytest.mark.parametrize("needs", [None, "admin", 1])
def test_route_without_a_requirement_is_a_type_error(needs: Any) -> None:
    with pytest.raises(TypeError):
        Route("GET", "/x", needs, nothing)


def test_get_route_that_changes_something_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        Route("GET", "/x", SignedIn(), nothing, is_change=True)


def test_ambiguous_routes_are_a_type_error() -> None:
    with pytest.raises(TypeError):
        RouteTree([Route("GET", "/x/{a}", SignedIn(), nothing), Route("GET", "/x/{b}", SignedIn(), nothing)])
