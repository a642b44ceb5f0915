"""Login and logout over HTTP, for browsers and API clients."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from argosy.gitops.application_client.application_service import ApplicationService
from argosy.kube.objects import dump_yaml
from argosy.web.serve_options import ServeOptions
from argosy.web.site_services import Site
from support.deadlines import HANG_SECONDS
from support.identities import NAMESPACE, Room, identity_room
from support.oidc_provider import CLIENT, CLIENT_SECRET, IdentityProvider, identity_provider
from support.page_site import Answered, Client, on_a_socket

pytestmark = pytest.mark.anyio
PASSWORD = "correct horse"
KEPT = r"([\w-]+)=([^;]*); Path=/; Max-Age=(\d+)"
JSON = {"Content-Type": "application/json"}
FORM = "application/x-www-form-urlencoded"


@dataclass
class Browser:
    """Keeps cookies and sends an Origin header with forms, as browsers do."""

    client: Client

    def __post_init__(self) -> None:
        self.cookies: dict[str, str] = {}

    async def get(self, path: str, **headers: str) -> Answered:
        return await self._ask("GET", path, None, headers)

    async def post(self, path: str, origin: str = "", **fields: str) -> Answered:
        own = f"http://127.0.0.1:{self.client.port}"
        return await self._ask("POST", path, urlencode(fields), {"Origin": origin or own, "Content-Type": FORM})

    async def _ask(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> Answered:
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        got = await asyncio.to_thread(self._sent, method, path, body, headers)
        for name, value, age in re.findall(KEPT, got.headers.get("set-cookie", "")):
            self.cookies[name] = value
            if age == "0":
                del self.cookies[name]
        return got

    def _sent(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> Answered:
        connection = http.client.HTTPConnection("127.0.0.1", self.client.port, timeout=HANG_SECONDS)
        connection.request(method, path, body, headers)
        got = connection.getresponse()
        response_headers = {name.lower(): ", ".join(got.headers.get_all(name, [])) for name in got.headers}
        answered = Answered(got.status, response_headers, got.read())
        connection.close()
        return answered

    async def is_in(self) -> bool:
        return bool((await self.get("/api/v1/session/userinfo")).json().get("loggedIn"))


@dataclass
class World:
    room: Room
    client: Client
    provider: IdentityProvider

    def browser(self) -> Browser:
        return Browser(self.client)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder: Path = tmp_path_factory.mktemp("sign-in")
    with identity_provider(folder / "tls") as provider:
        async with identity_room(folder / "room") as room:
            await room.account("ann", PASSWORD)
            await room.secrets(oidc__clientSecret=CLIENT_SECRET)
            site = Site(
                ApplicationService(room.cluster, "a test", NAMESPACE, NAMESPACE),
                room.glance,
                room.identities,
                None,
                ServeOptions(),
            )
            async with on_a_socket(site) as (client, _):
                yield World(room, client, provider)


@pytest.fixture(autouse=True)
async def later(world: World) -> None:
    """Advance the clock, so that the login rate limit forgets failures of the previous test."""
    world.room.clock.leap(301)
    world.provider.clock_ahead = world.room.clock._ahead
    world.room.identities.state._parsed.clear()


async def test_password_login_opens_a_session_until_logout(world: World) -> None:
    browser = world.browser()
    page = await browser.get("/login")
    assert page.code == 200
    assert b'type="password"' in page.body
    got = await browser.post("/login", username="ann", password=PASSWORD, next="/settings")
    assert (got.code, got.headers["location"]) == (303, "/settings")
    cookie = got.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert await browser.is_in()
    assert (await browser.get("/login?next=/settings")).headers["location"] == "/settings"
    cookies = dict(browser.cookies)
    csrf = re.search(rb'data-csrf="([0-9a-f]+)"', (await browser.get("/api/docs")).body)
    assert csrf is not None
    assert (await browser.post("/logout", csrf="x" * 64)).code == 403
    assert (await browser.post("/logout", origin="https://evil.example", csrf=csrf[1].decode())).code == 403
    assert (await browser.post("/logout", csrf=csrf[1].decode())).headers["location"] == "/login?said=left"
    assert browser.cookies == {}
    browser.cookies = cookies
    assert not await browser.is_in()


async def test_failed_logins_all_get_the_same_error_page(world: World) -> None:
    browser = world.browser()
    answers = [
        await browser.post("/login", username=name, password=password)
        for name, password in (("ann", "wrong"), ("nobody", PASSWORD), ("", ""), ("ann", "x" * 200))
    ]
    assert {(answer.code, answer.headers["location"]) for answer in answers} == {(303, "/login?error=refused")}
    page = (await browser.get("/login?error=refused")).body
    assert b"Invalid username or password" in page
    for text in ("<script>alert(1)</script>", "refused2", "code;x"):
        error_page = (await browser.get(f"/login?{urlencode({'error': text, 'said': text})}")).body
        assert text.encode() not in error_page
        assert b"Invalid username" not in error_page


async def test_login_from_another_origin_is_refused(world: World) -> None:
    got = await world.browser().post("/login", origin="https://evil.example", username="ann", password=PASSWORD)
    assert got.code == 403
    assert "set-cookie" not in got.headers


async def test_login_code_works_once(world: World) -> None:
    browser, other = world.browser(), world.browser()
    code = world.room.codes.create_code()
    got = await browser.get(f"/enter?code={code}")
    assert got.code == 200
    assert got.headers["refresh"] == "0; url=/apps"
    assert await browser.is_in()
    again = await other.get(f"/enter?code={code}")
    assert (again.code, again.headers["location"]) == (303, "/login?error=code")
    assert not await other.is_in()
    assert b"argosy open" in (await other.get("/login?error=code")).body


async def test_session_api_returns_a_token_and_one_error_for_bad_credentials(world: World) -> None:
    async def session(**document: Any) -> Answered:
        return await asyncio.to_thread(world.client.ask, "POST", "/api/v1/session", json.dumps(document), JSON)

    wrong = [await session(username="ann", password="no"), await session(username="nobody", password="no")]
    assert {(answer.code, answer.body) for answer in wrong} == {
        (401, b'{"error":"Invalid username or password","code":16,"message":"Invalid username or password"}')
    }
    assert (await session(username="ann")).code == 400
    assert (await session(username=["ann"], password="x")).code == 400
    token = (await session(username="ann", password=PASSWORD)).json()["token"]
    response = await asyncio.to_thread(world.client.bearer, token, "GET", "/api/v1/session/userinfo")
    assert response.json() == {"loggedIn": True, "username": "ann", "iss": "argocd"}
    assert (await asyncio.to_thread(world.client.bearer, token, "DELETE", "/api/v1/session")).json() == {}
    assert (await asyncio.to_thread(world.client.bearer, token, "GET", "/api/v1/session/userinfo")).json() == {}


async def test_invalid_authorization_header_gets_401_despite_anonymous_access(world: World) -> None:
    await world.room.settings(users__anonymous__enabled="true")
    for authorization in ("Basic YWRtaW46eA==", "Bearer", "Bearer x", "x"):
        got = await asyncio.to_thread(
            world.client.ask, "GET", "/api/v1/applications", None, {"Authorization": authorization}
        )
        assert got.code == 401
    got = await asyncio.to_thread(world.client.ask, "GET", "/api/v1/session/userinfo")
    assert got.json() == {"loggedIn": False, "username": "anonymous", "iss": ""}
    await world.room.settings(users__anonymous__enabled=None)


async def test_session_cookie_of_an_active_browser_is_renewed(world: World) -> None:
    browser = world.browser()
    await browser.get(f"/enter?code={world.room.codes.create_code()}")
    first = dict(browser.cookies)
    await browser.is_in()
    assert browser.cookies == first
    world.room.clock.leap(400)
    await browser.is_in()
    assert browser.cookies != first
    world.room.clock.leap(3300)
    assert await browser.is_in()
    browser.cookies = first
    assert not await browser.is_in()


async def test_oidc_login_works_once_and_only_in_the_browser_that_started_it(world: World) -> None:
    await world.room.settings(oidc__config=dump_yaml({
        "name": "Sea Passes", "issuer": world.provider.url, "clientID": CLIENT, "clientSecret": "$oidc.clientSecret",
        "rootCA": world.provider.authority,
    }))  # fmt: skip
    browser = world.browser()
    assert b"Sign in with Sea Passes" in (await browser.get("/login?next=/settings")).body
    away = await browser.get("/auth/login?next=/settings")
    assert away.headers["location"].startswith(f"{world.provider.url}/authorize?")
    assert "SameSite=Lax" in away.headers["set-cookie"]
    parameters = dict(pair.split("=", 1) for pair in urlsplit(away.headers["location"]).query.split("&"))
    parameters["redirect_uri"] = f"http://127.0.0.1:{world.client.port}/auth/callback"
    back = urlsplit(world.provider.authorize(parameters))
    path = f"{back.path}?{back.query}"
    stranger = await world.browser().get(path)
    assert stranger.headers["location"] == "/login?error=provider"
    arrived = await browser.get(path)
    assert arrived.headers["refresh"] == "0; url=/settings"
    assert (await browser.get("/api/v1/session/userinfo")).json() == {
        "loggedIn": True, "username": "ann@x", "iss": world.provider.url, "groups": ["devs"]
    }  # fmt: skip
    assert (await browser.get(path)).headers["location"] == "/login?error=provider"
    await world.room.settings(oidc__config=None)
    assert (await browser.get("/auth/login")).headers["location"] == "/login?error=provider"


async def test_account_api_follows_rbac_for_accounts_tokens_and_passwords(world: World) -> None:
    room = world.room
    await room.account("cleo", PASSWORD)  # no other test uses this account, because its password changes
    await room.settings(accounts__bob="apiKey, login")
    rules = "p, cleo, accounts, get, bob, allow\np, cleo, logs, get, ml/*, allow"
    await room.settings("argocd-rbac-cm", policy__csv=rules)

    async def ask(method: str, path: str, document: Any = None) -> Answered:
        return await asyncio.to_thread(world.client.bearer, token, method, f"/api/v1/account{path}", document)

    token = await room.identities.login("cleo", PASSWORD)
    assert [account["name"] for account in (await ask("GET", "")).json()["items"]] == ["bob", "cleo"]
    assert (await ask("GET", "/cleo")).json() == {"name": "cleo", "enabled": True, "capabilities": ["apiKey", "login"]}
    refused = [await ask("GET", "/admin"), await ask("GET", "/nobody"), await ask("POST", "/bob/token", {})]
    assert {(answer.code, answer.body) for answer in refused} == {(403, refused[0].body)}
    new_token = (await ask("POST", "/cleo/token", {"id": "ci", "expiresIn": "3600"})).json()["token"]
    response = await asyncio.to_thread(world.client.bearer, new_token, "GET", "/api/v1/session/userinfo")
    assert response.json()["username"] == "cleo"
    assert [token_entry["id"] for token_entry in (await ask("GET", "/cleo")).json()["tokens"]] == ["ci"]
    assert (await ask("POST", "/cleo/token", {"id": "ci"})).code == 400
    assert (await ask("POST", "/cleo/token", {"expiresIn": -1})).code == 400
    assert (await ask("DELETE", "/cleo/token/ci")).json() == {}
    await room.glance.look()
    assert (await asyncio.to_thread(world.client.bearer, new_token, "GET", "/api/v1/session/userinfo")).json() == {}
    assert (await ask("GET", "/can-i/logs/get/ml/a")).json() == {"value": "yes"}
    assert (await ask("GET", "/can-i/applications/delete/ml/a")).json() == {"value": "no"}
    change = {"newPassword": "another horse"}
    assert (await ask("PUT", "/password", {**change, "currentPassword": "wrong"})).code == 400
    assert (await ask("PUT", "/password", {**change, "name": "bob", "currentPassword": PASSWORD})).code == 403
    assert (await ask("PUT", "/password", {"newPassword": "short", "currentPassword": PASSWORD})).code == 400
    assert (await ask("PUT", "/password", {**change, "currentPassword": PASSWORD})).json() == {}
    await room.glance.look()
    assert (await ask("GET", "/cleo")).code == 401


async def test_project_role_tokens_are_created_used_and_deleted(world: World) -> None:
    room = world.room
    role = {"name": "ci", "policies": ["p, proj:sea:ci, applications, sync, sea/*, allow"]}
    metadata = {"name": "sea", "namespace": NAMESPACE}
    await room.cluster.create(
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": {"roles": [role]}}
    )
    await room.glance.look()
    admin = (
        await room.identities.login_with_one_time_code(room.codes.create_code()),
        "/api/v1/projects/sea/roles/ci/token",
    )

    async def ask(token: str, method: str, path: str, document: Any = None) -> Answered:
        return await asyncio.to_thread(world.client.bearer, token, method, path, document)

    tokens = [(await ask(admin[0], "POST", admin[1], {"id": name})).json()["token"] for name in ("one", "two")]
    for token in tokens:
        assert (await ask(token, "GET", "/api/v1/session/userinfo")).json()["username"] == "proj:sea:ci"
        assert (await ask(token, "GET", "/api/v1/account/can-i/applications/sync/sea/a")).json() == {"value": "yes"}
        assert (await ask(token, "GET", "/api/v1/account/can-i/applications/sync/ml/a")).json() == {"value": "no"}
        assert (await ask(token, "POST", admin[1], {})).code == 403
    assert (await ask(admin[0], "POST", admin[1], {"id": "one"})).code == 400
    assert (await ask(admin[0], "POST", "/api/v1/projects/sea/roles/none/token", {})).code == 400
    assert (await ask(admin[0], "DELETE", f"{admin[1]}/0?id=one")).json() == {}
    await room.glance.look()
    assert (await ask(tokens[0], "GET", "/api/v1/session/userinfo")).json() == {}
    assert (await ask(tokens[1], "GET", "/api/v1/session/userinfo")).code == 200
    assert (await ask(admin[0], "DELETE", f"{admin[1]}/soon")).code == 400


async def test_login_page_reports_unusable_sso_without_its_settings(world: World) -> None:
    browser = world.browser()
    assert b"SSO" not in (await browser.get("/login")).body
    await world.room.settings(oidc__config="issuer: https://login.example.com\n")
    page = (await browser.get("/login")).body
    assert b"Single sign-on (SSO) is not usable" in page
    assert b"login.example.com" not in page  # the setting is not revealed to anonymous users
    assert b'type="password"' in page
    await world.room.settings(oidc__config=None)
    assert b"SSO" not in (await browser.get("/login")).body
