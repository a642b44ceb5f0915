"""Webhooks: which Applications a push refreshes, secret verification, and rate limits."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from argosy.features.applications.webhook_api import MAX_BURST_DELIVERIES, WebhookReceiver, build_routes
from argosy.gitops.application_client import rate_limited_refresh_queue
from argosy.kube.resource_key import ResourceKey
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from support.deadlines import HANG_SECONDS, wait_until_async
from support.loop_clock import LoopClock
from support.rest_api import World, rest_world
from support.webhooks import CLONE, GITHUB, PROVIDERS, SECRETS, delivery, post, signature

pytestmark = pytest.mark.anyio
REFRESH = "argocd.argoproj.io/refresh"
SENDERS = (f"198.51.100.{number}" for number in itertools.count(1))


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def served(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with rest_world(tmp_path_factory.mktemp("webhook")) as world:
        for name, url, ref in (
            ("on-main", CLONE, "main"),
            ("by-ssh", "git@git.example:ml/models", "HEAD"),
            ("on-other", CLONE, "other"),
            ("elsewhere", "https://git.example/ml/else", "main"),
        ):
            await world.application(name)
            spec = {"source": {"repoURL": url, "targetRevision": ref}}
            await world.cluster.patch(ResourceKey("argoproj.io", "Application", "argocd", name), {"spec": spec})
        await world.until(lambda: _source(world, "elsewhere").endswith("else"))
        yield world


@pytest.fixture
def receiver() -> WebhookReceiver:
    return WebhookReceiver()


@pytest.fixture
async def world(served: World, receiver: WebhookReceiver) -> World:
    """The same cluster without refreshes, and a server with a receiver of its own."""
    for name in ("on-main", "by-ssh", "on-other", "elsewhere"):
        key = ResourceKey("argoproj.io", "Application", "argocd", name)
        await served.cluster.patch(key, {"metadata": {"annotations": {REFRESH: None}}})
    return replace(served, entry=WebApplication(served.site, build_routes(receiver)))


def _source(world: World, name: str) -> str:
    application: Any = world.lookout.cache.get(ResourceKey("argoproj.io", "Application", "argocd", name)) or {}
    return str(application.get("spec", {}).get("source", {}).get("repoURL", ""))


async def refreshed(world: World, receiver: WebhookReceiver) -> set[str]:
    await receiver.refreshes.wait_until_empty()
    refreshed_names = set()
    for name in ("on-main", "by-ssh", "on-other", "elsewhere"):
        app = await world.cluster.get(ResourceKey("argoproj.io", "Application", "argocd", name))
        if app and REFRESH in (app["metadata"].get("annotations") or {}):
            refreshed_names.add(name)
    return refreshed_names


@pytest.mark.parametrize("name", PROVIDERS)
async def test_push_refreshes_the_matching_applications(world: World, name: str, receiver: WebhookReceiver) -> None:
    headers, body = delivery(name)
    assert await post(world.entry, body, headers, next(SENDERS)) == 200
    assert await refreshed(world, receiver) == {"on-main", "by-ssh"}


async def test_push_over_http_needs_no_login(world: World) -> None:
    headers, body = delivery("GitHub")
    got = await world.raw("POST", "/api/webhook", body, **{**headers, "content-type": "application/json"})
    assert (got.code, got.body) == (200, b"{}")


async def test_repeated_delivery_refreshes_nothing(world: World, receiver: WebhookReceiver) -> None:
    headers, body = delivery("GitHub")
    await post(world.entry, body, headers, next(SENDERS))
    assert await refreshed(world, receiver) == {"on-main", "by-ssh"}
    receiver.refreshes = rate_limited_refresh_queue.RefreshQueue()
    for name in ("on-main", "by-ssh"):
        key = ResourceKey("argoproj.io", "Application", "argocd", name)
        await world.cluster.patch(key, {"metadata": {"annotations": {REFRESH: None}}})
    assert await post(world.entry, body, headers, next(SENDERS)) == 200
    assert await refreshed(world, receiver) == set()


async def test_other_events_refresh_nothing(world: World, receiver: WebhookReceiver) -> None:
    headers, body = delivery("GitHub")
    assert await post(world.entry, body, {**headers, "x-github-event": "ping"}, next(SENDERS)) == 200
    assert await refreshed(world, receiver) == set()


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"{", b"\xff", b'{"ref": 5}', b"[" * 100_000])
async def test_invalid_payload_refreshes_nothing(world: World, body: bytes, receiver: WebhookReceiver) -> None:
    assert await post(world.entry, body, {"x-github-event": "push"}, next(SENDERS)) in (400, 200)
    assert await post(world.entry, body, {}, next(SENDERS)) == 400
    assert await refreshed(world, receiver) == set()


async def test_deliveries_are_rate_limited_per_sender(world: World) -> None:
    headers, body = delivery("GitHub")
    codes = [await post(world.entry, body, headers, "203.0.113.7") for _ in range(MAX_BURST_DELIVERIES + 300)]
    assert codes[:MAX_BURST_DELIVERIES] == [200] * MAX_BURST_DELIVERIES and 429 in codes[MAX_BURST_DELIVERIES:]
    assert await post(world.entry, body, headers, "203.0.113.8") == 200


def test_refresh_queue_limits_refreshes_per_application_and_drops_none() -> None:
    asyncio.run(refresh_in_a_while())


async def refresh_in_a_while() -> None:
    clock, written = LoopClock(), list[str]()

    class Counting:
        async def get(self, key: ResourceKey) -> Any:
            return {"metadata": {"resourceVersion": "1"}}

        async def patch(self, key: ResourceKey, patch: Any) -> None:
            written.append(key.name)

    few = rate_limited_refresh_queue.RefreshQueue(interval_seconds=9000.0)
    key = ResourceKey("argoproj.io", "Application", "argocd", "on-main")
    for _ in range(50):
        few.enqueue(Counting(), [key])  # type: ignore[arg-type]
        await asyncio.sleep(0)
    clock.leap(5000)
    few.enqueue(Counting(), [key._replace(name="another")])  # type: ignore[arg-type] - not delayed by the first key
    await wait_until_async(lambda: "another" in written)
    assert written == ["on-main", "another"]
    clock.leap(5000)
    await asyncio.wait_for(few.wait_until_empty(), HANG_SECONDS)
    assert written == ["on-main", "another", "on-main"]  # one more refresh for all requests after the first


async def test_configured_webhook_secret_is_required(world: World, receiver: WebhookReceiver) -> None:
    await world.make("Secret", "argocd-secret", stringData=SECRETS)
    await world.seen("", "Secret", "argocd-secret")
    try:
        for name in PROVIDERS:
            document = {**PROVIDERS[name][1], "unlike": name}
            headers, body = delivery(name, document)
            wrong = {**headers, "x-hook-uuid": "wrong"} if name == "Bitbucket" else headers
            assert await post(world.entry, body, wrong, next(SENDERS)) == 400, name
            assert await refreshed(world, receiver) == set(), name
        headers, body = delivery("GitHub", {**GITHUB, "good": True})
        other = signature("GitHub", json.dumps(GITHUB).encode())
        assert await post(world.entry, body, {**headers, **other}, next(SENDERS)) == 400
        assert await post(world.entry, body, {**headers, **signature("GitHub", body)}, next(SENDERS)) == 200
        assert await refreshed(world, receiver) == {"on-main", "by-ssh"}
    finally:
        await world.cluster.delete(ResourceKey("", "Secret", "argocd", "argocd-secret"))


async def test_push_of_many_refs_refreshes_all_applications_of_the_repository(
    world: World, receiver: WebhookReceiver
) -> None:
    change = {"fromHash": "1" * 40, "toHash": "2" * 40}
    changes = [{**change, "ref": {"id": f"refs/heads/b{number}"}} for number in range(20_000)]
    _, payload = PROVIDERS["Bitbucket Server"]
    headers, body = delivery("Bitbucket Server", {**payload, "changes": changes})
    assert await post(world.entry, body, headers, next(SENDERS)) == 200
    assert await refreshed(world, receiver) == {"on-main", "by-ssh", "on-other"}
