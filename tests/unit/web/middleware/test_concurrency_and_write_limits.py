"""Concurrency and write rate limits: slow senders and waiting callers do not take the slots of others."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

import pytest

from argosy.gitops.application import read_application
from argosy.web import request_limits
from argosy.web.error_details import describe_error
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import Public, RequiresPermission, ResolvedObject, Route, SignedIn
from support.deadlines import wait_until_async
from support.loop_clock import LoopClock
from support.page_site import KnownPeople, a_site, anything
from support.tenants import ask

pytestmark = pytest.mark.anyio
JSON = {"Content-Type": "application/json"}


async def echo_body(request: RequestContext) -> JsonResponse:
    return JsonResponse(await request.read_json())


ROUTES = (
    Route("POST", "/api/v1/session", Public("a test"), echo_body),
    Route("POST", "/api/v1/work", SignedIn(), echo_body),
)


@pytest.fixture
def entry() -> WebApplication:
    return WebApplication(a_site([], KnownPeople({"ann": anything})), ROUTES)


async def slowly(entry: WebApplication, peer: str) -> int:
    """Send less of the body than announced; return the response status."""
    sent: list[dict[str, Any]] = []
    parts = iter([{"type": "http.request", "body": b"{", "more_body": True}])

    async def receive() -> Any:
        for part in parts:
            return part
        return await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    path = "/api/v1/session"
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"1000")]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
             "headers": headers, "client": (peer, 1), "http_version": "1.1", "scheme": "http"}  # fmt: skip
    await entry(scope, receive, send)
    return int(sent[0]["status"])


async def test_slow_anonymous_senders_do_not_block_signed_in_requests(
    entry: WebApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = LoopClock()
    monkeypatch.setattr(request_limits, "ANONYMOUS_BODY_TIMEOUT_SECONDS", 9000.0)
    monkeypatch.setattr(request_limits, "REQUEST_TIMEOUT_SECONDS", 90_000.0)
    slow = [asyncio.create_task(slowly(entry, f"10.0.0.{number % 7}")) for number in range(500)]
    await wait_until_async(lambda: sum(task.done() for task in slow) == 350, "some hold all places, the others went")
    got = await ask(entry, "POST", "/api/v1/work", {"Authorization": "Bearer ann", **JSON}, b"{}")
    assert got.code == 200
    clock.leap(9001)
    codes = await asyncio.gather(*slow)
    assert {code: codes.count(code) for code in set(codes)} == {408: request_limits.MAX_ANONYMOUS, 429: 350}
    assert (await ask(entry, "POST", "/api/v1/session", JSON, b"{}")).code == 200  # the slots are free again


async def test_one_address_leaves_slots_to_other_anonymous_clients(
    entry: WebApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = LoopClock()
    monkeypatch.setattr(request_limits, "ANONYMOUS_BODY_TIMEOUT_SECONDS", 9000.0)
    monkeypatch.setattr(request_limits, "REQUEST_TIMEOUT_SECONDS", 90_000.0)
    slow = [asyncio.create_task(slowly(entry, "10.0.0.1")) for _ in range(400)]
    left = 400 - request_limits.MAX_ANONYMOUS_PER_ADDRESS
    await wait_until_async(lambda: sum(task.done() for task in slow) == left, "some hold its places, the others went")
    assert (await ask(entry, "POST", "/api/v1/session", JSON, b"{}")).code == 200
    clock.leap(9001)
    assert (await asyncio.gather(*slow)).count(408) == request_limits.MAX_ANONYMOUS_PER_ADDRESS


def test_waiting_requests_are_limited_per_caller() -> None:
    turnstile = request_limits.ConcurrencyLimits()
    with ExitStack() as held:
        for _ in range(request_limits.MAX_WAITING_PER_CALLER):
            held.enter_context(turnstile.limit_waiting("ann"))
        with pytest.raises(request_limits.RequestLimitExceeded), turnstile.limit_waiting("ann"):
            pass
        with turnstile.limit_waiting("bob"):
            pass
    with turnstile.limit_waiting("ann"):
        pass


def test_large_messages_are_limited_per_caller() -> None:
    limits = request_limits.ConcurrencyLimits()
    with ExitStack() as decoding:
        for _ in range(request_limits.MAX_DECODING_PER_CALLER):
            decoding.enter_context(limits.limit_decoding("ann"))
        with pytest.raises(request_limits.RequestLimitExceeded, match="large messages"), limits.limit_decoding("ann"):
            pass
        with limits.limit_decoding("bob"):
            pass
    with limits.limit_decoding("ann"):
        pass


def test_writes_are_rate_limited_per_account_and_project() -> None:
    now = [0.0]
    rate = request_limits.WriteRateLimiter(max_writes=3, clock=lambda: now[0])
    for _ in range(3):
        rate.count_write("ann", "ml")
    now[0] = 60.0
    message = "ann wrote 3 times into project 'ml' within 5 minutes; try again in 240 s"
    with pytest.raises(request_limits.RequestLimitExceeded, match=message) as refused:
        rate.count_write("ann", "ml")
    assert describe_error(refused.value).headers == (("retry-after", "240"),)
    rate.count_write("ann", "other")
    rate.count_write("bob", "ml")
    now[0] = request_limits.WRITES_WINDOW_SECONDS
    rate.count_write("ann", "ml")


@pytest.mark.parametrize(
    ("action", "codes"), [("update", [200, 200, 429]), ("sync", [200, 200, 429]), ("get", [200, 200, 200])]
)
async def test_application_writes_are_rate_limited_and_reads_are_not(action: str, codes: list[int]) -> None:
    async def found(request: RequestContext) -> ResolvedObject:
        return ResolvedObject(None, "ml/web")

    route = Route("POST", "/api/v1/applications/web", RequiresPermission("applications", action, found), echo_body)
    entry = WebApplication(a_site([], KnownPeople({"ann": anything})), [route])
    entry.write_rate = request_limits.WriteRateLimiter(max_writes=2)
    headers = {**JSON, "Authorization": "Bearer ann"}
    got = [await ask(entry, "POST", "/api/v1/applications/web", headers, b"{}") for _ in range(3)]
    assert [response.code for response in got] == codes


@pytest.mark.parametrize(
    ("query", "codes"),
    [
        ("", [200, 200, 200]),
        ("?revision=main", [200, 200, 200]),
        (f"?revision={'1' * 40}", [200, 200, 200]),
        (f"?revision={'2' * 40}", [200, 200, 200]),
        ("?revision=%20", [200, 200, 200]),
        ("?revision=guesses", [200, 200, 429]),
        ("?revision=main&revision=guesses", [200, 200, 429]),
        ("?revisions=main&revisions=guesses", [200, 200, 429]),
    ],
)
async def test_previews_of_other_revisions_are_rate_limited(query: str, codes: list[int]) -> None:
    """Anyone who can push a branch could write guesses there and see what is masked."""
    source = {"repoURL": "https://git.example.com/r", "path": "app", "targetRevision": "main"}
    status = {"sync": {"revision": "1" * 40}, "history": [{"id": 1, "revision": "2" * 40}]}
    manifest = {"metadata": {"name": "web", "namespace": "argocd"}, "spec": {"source": source}, "status": status}

    async def found(request: RequestContext) -> ResolvedObject:
        return ResolvedObject(read_application(manifest), "ml/web")

    names = ("revision", "revisions")
    routes = [
        Route(
            "GET", "/api/v1/applications/web", RequiresPermission("applications", "get", found), echo_body, query=names
        )
    ]
    routes.append(Route("GET", "/api/v1/other", SignedIn(), echo_body, query=names))
    entry = WebApplication(a_site([], KnownPeople({"ann": anything})), routes)
    entry.write_rate = request_limits.WriteRateLimiter(max_writes=2)
    headers = {"Authorization": "Bearer ann"}
    got = [await ask(entry, "GET", f"/api/v1/applications/web{query}", headers) for _ in range(3)]
    assert [answer.code for answer in got] == codes
    assert (await ask(entry, "GET", f"/api/v1/other{query}", headers)).code == 200


async def test_reads_of_commits_that_were_never_compared_are_rate_limited() -> None:
    async def found(request: RequestContext) -> ResolvedObject:
        return ResolvedObject(None, "ml/web")

    route = Route(
        "GET", "/api/v1/applications/web/{revision}", RequiresPermission("applications", "get", found), echo_body
    )
    entry = WebApplication(a_site([], KnownPeople({"ann": anything})), [route])
    entry.write_rate = request_limits.WriteRateLimiter(max_writes=2)
    headers = {"Authorization": "Bearer ann"}
    got = [await ask(entry, "GET", f"/api/v1/applications/web/{number}234567", headers) for number in range(3)]
    assert [answer.code for answer in got] == [200, 200, 429]
