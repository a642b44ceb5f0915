"""Audit lines of changes, request timeouts and broken streams."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.errors import PolicyError, TransientError
from argosy.web import request_limits
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import JsonResponse, StreamResponse
from argosy.web.route import Public, RequiresPermission, Route, SignedIn
from support.page_site import CONTROL, KnownPeople, a_site, anything, nothing
from support.tenants import ask

pytestmark = pytest.mark.anyio
APP = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Application",
    "metadata": {"name": "a", "namespace": CONTROL, "uid": "a", "resourceVersion": "1"},
    "spec": {"project": "team", "source": {"repoURL": "https://x", "path": "p"}, "destination": {"namespace": "n"}},
}


async def echo_body(request: RequestContext) -> JsonResponse:
    return JsonResponse(await request.read_json())


def failing(error: Exception) -> Any:
    async def fail(request: RequestContext) -> JsonResponse:
        raise error

    return fail


async def slow(request: RequestContext) -> JsonResponse:
    await asyncio.sleep(30)
    return JsonResponse()


async def breaking(request: RequestContext) -> StreamResponse:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"one\n"
        raise TransientError("the cluster is away")

    return StreamResponse(chunks(), "text/plain")


ROUTES = (
    Route(
        "POST",
        "/api/v1/applications/{name}/sync",
        RequiresPermission("applications", "sync", resolve_application),
        echo_body,
    ),
    Route("DELETE", "/api/v1/held", SignedIn(), failing(PolicyError("held by ann; release it first"))),
    Route("GET", "/api/v1/slow", Public("a test"), slow),
    Route("GET", "/api/v1/breaking", SignedIn(), breaking),
)


@pytest.fixture
def entry() -> WebApplication:
    return WebApplication(a_site([APP], KnownPeople({"ann": anything, "bob": nothing})), ROUTES)


def bearer(who: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {who}", "Content-Type": "application/json"}


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [json.loads(record.getMessage()) for record in caplog.records if record.name == "argosy.audit"]


async def test_each_change_writes_an_audit_line_with_user_object_and_result(
    entry: WebApplication, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "argosy.audit")
    path = "/api/v1/applications/a/sync"
    await ask(entry, "POST", path, bearer("ann"), b'{"revision":"s3cr3t-branch"}')
    await ask(entry, "POST", path, bearer("bob"), b"{}")
    await ask(entry, "POST", path, {"Content-Type": "application/json"}, b"{}")
    await ask(entry, "DELETE", "/api/v1/held", bearer("ann"))
    await ask(entry, "GET", "/api/v1/nowhere", bearer("ann"))
    records = [(line["who"], line["what"], line["object"], line["result"], line["code"]) for line in lines(caplog)]
    assert records == [
        ("ann", f"POST {path}", "team/a", "done", 200),
        ("bob", f"POST {path}", "", "refused", 403),
        ("nobody", f"POST {path}", "", "refused", 401),
        ("ann", "DELETE /api/v1/held", "", "refused", 403),
    ]
    assert "s3cr3t-branch" not in caplog.text


async def test_request_path_cannot_inject_audit_lines(entry: WebApplication, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "argosy.audit")
    await ask(entry, "POST", '/api/v1/applications/a%0A{"who":"ann"}/sync', bearer("ann"), b"{}")
    assert [line["who"] for line in lines(caplog)] == ["ann"]
    assert all("\n" not in record.getMessage() for record in caplog.records if record.name == "argosy.audit")


async def test_slow_response_times_out_with_503(entry: WebApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_limits, "REQUEST_TIMEOUT_SECONDS", 0.05)
    got = await ask(entry, "GET", "/api/v1/slow")
    assert (got.code, got.json()["code"]) == (503, 14)


async def test_broken_stream_ends_and_is_logged(entry: WebApplication, caplog: pytest.LogCaptureFixture) -> None:
    got = await ask(entry, "GET", "/api/v1/breaking", bearer("ann"), reads_stream=True)
    assert (got.code, got.body) == (200, b"one\n")
    assert "stream failed: the cluster is away" in caplog.text
