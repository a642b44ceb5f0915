"""The audit trail: one line for every change, with its caller, for API and pages."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from argosy.features.applications.read import api
from argosy.web.recent_audit_lines import MAX_ANONYMOUS_LINES
from argosy.web.server_audit_counters_and_limits import ServerState
from support.tenants import CONTROL, World, ask, guarded_world

pytestmark = pytest.mark.anyio
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "http://localhost"}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def at_home(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with guarded_world(tmp_path_factory.mktemp("audit")) as opened_world:
        yield opened_world


@pytest.fixture
def world(at_home: World) -> World:
    """The same cluster with an empty audit trail."""
    return replace(at_home, site=replace(at_home.site, state=ServerState()))


def lines(world: World) -> list[tuple[Any, ...]]:
    audit_lines = world.site.state.audit_trail.lines
    return [(line["who"], line["what"], line["object"], line["result"], line["code"]) for line in audit_lines]


async def test_get_with_refresh_is_audited_and_plain_get_is_not(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "REFRESH_TIMEOUT_SECONDS", 0.1)
    path = "/api/v1/applications/app-a"
    for query in ("", "?refresh=hard"):
        await ask(world.entry(), "GET", path + query, dict(world.callers["viewer-a"].headers))
    assert [line[:3] for line in lines(world)] == [("viewer-a", f"GET {path}", "team-a/app-a")]


async def test_logins_are_audited_with_account_and_result(world: World) -> None:
    entry, password = world.entry(), await world.site.authenticator.account_store.load_initial_password()
    for name, word in (("admin", "wrong"), ("hunter22-in-the-wrong-field", "x"), ("admin", password)):
        await ask(entry, "POST", "/api/v1/session", JSON, json.dumps({"username": name, "password": word}).encode())
    for name, word in (("admin", "wrong"), ("admin", password)):
        await ask(entry, "POST", "/login", FORM, urlencode({"username": name, "password": word}).encode())
    await ask(entry, "GET", "/enter?code=wrong")
    await ask(entry, "GET", "/auth/callback?state=x&code=y")
    assert lines(world) == [
        ("nobody", "POST /api/v1/session", "admin", "refused", 401),
        ("nobody", "POST /api/v1/session", "_unknown", "refused", 401),
        ("nobody", "POST /api/v1/session", "admin", "done", 200),
        ("nobody", "POST /login", "admin", "refused", 401),
        ("nobody", "POST /login", "admin", "done", 303),
        ("nobody", "GET /enter", "", "refused", 401),
        ("nobody", "GET /auth/callback", "", "refused", 401),
    ]


async def test_change_of_several_applications_has_one_line_each(world: World) -> None:
    form = [("do", "refresh"), *(("app", f"{CONTROL}/{name}") for name in ("app-a", "app-b", "app-zz"))]
    headers = {**world.callers["admin"].headers, **FORM}
    got = await ask(world.entry(), "POST", "/apps/plan", headers, urlencode(form).encode())
    assert got.code == 303, got
    expected = [("admin", "POST /apps/plan", f"team-{letter}/app-{letter}", "done", 303) for letter in "ab"]
    assert lines(world) == expected


async def test_anonymous_requests_are_limited_and_repeats_are_counted_in_one_line(world: World) -> None:
    entry = world.entry()
    await ask(entry, "POST", f"/apps/{CONTROL}/app-a/refresh", {**world.callers["admin"].headers, **FORM})
    for number in range(300):
        path = "/api/v1/session" if number < 150 else f"/api/v1/applications/x-{number}/sync"
        await ask(entry, "POST", path, {"Content-Type": "text/x"}, b"x")
    audit_lines = lines(world)
    assert ("admin", f"POST /apps/{CONTROL}/app-a/refresh", "team-a/app-a", "done", 303) in audit_lines
    assert len(audit_lines) == 1 + MAX_ANONYMOUS_LINES
    for _ in range(7):
        await ask(entry, "POST", "/api/v1/session", {"Content-Type": "text/x"}, b"x")
    assert [line["count"] for line in world.site.state.audit_trail.lines if line["what"] == "POST /api/v1/session"] == [
        7
    ]


async def test_audit_contains_no_password_of_a_url(world: World) -> None:
    path = "/api/v1/repositories/https%3A%2F%2Fu%3Apw-of-u%40git.example.com%2Fx"
    await ask(world.entry(), "DELETE", path, dict(world.callers["admin"].headers))
    assert len(lines(world)) == 1 and "pw-of-u" not in str(lines(world))
