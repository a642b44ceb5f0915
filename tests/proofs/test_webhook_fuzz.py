"""Fuzz the webhook endpoint: no internal error, no crashed task, and memory stays within its limit.

Once secrets are set, no delivery is accepted whose signature is missing or belongs to another body.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qs

import pytest

from argosy.annotations import REFRESH
from argosy.features.applications import webhook_api
from argosy.features.applications.webhook_api import WebhookReceiver
from argosy.gitops.application_client import rate_limited_refresh_queue
from argosy.gitops.application_client.rate_limited_refresh_queue import RefreshQueue
from argosy.gitops.source import webhook_verification
from argosy.kube.client import Cluster
from argosy.kube.objects import key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import APPLICATION
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from support.deadlines import HANG_SECONDS, wait_until_async
from support.engine import CONTROL
from support.fuzzer import disturbed, mutated
from support.rest_api import World, rest_world
from support.tiers import IN_TEST_ALL_AND_PROVE
from support.webhooks import CLONE, PROVIDERS, SECRETS, delivery, post, signature

pytestmark = [pytest.mark.anyio, pytest.mark.tier("test", "prove")]
PAYLOADS = 100_000
MOST_MEMORY = 96 << 20  # one body at a time; parsing JSON takes twelve times its size
ODD: list[Any] = [
    "",
    "ref",
    "refs/heads/main",
    "a" * 5000,
    "\u0000",
    "https://u:p@h/x",
    "ssh://-x",
    "/",
    [{}] * 50,
    10**400,
]


@pytest.fixture
def receiver() -> WebhookReceiver:
    """Each matching delivery refreshes the Applications at once."""
    receiver = WebhookReceiver()
    receiver.refreshes = RefreshQueue(interval_seconds=0.0)
    return receiver


@pytest.fixture
async def world(tmp_path: Path, receiver: WebhookReceiver) -> AsyncIterator[World]:
    async with rest_world(tmp_path) as world:
        for number in range(5):
            app = await world.application(f"app-{number}")
            await world.cluster.patch(key_of(app), {"spec": {"source": {"repoURL": CLONE}}})
        await wait_until_async(lambda: sources(world) == {CLONE}, "the server knows all of them")
        yield replace(world, entry=WebApplication(world.site, webhook_api.build_routes(receiver)))


def sources(world: World) -> set[str]:
    apps = world.lookout.cache.list(GroupKind(*APPLICATION))
    return {app["spec"]["source"]["repoURL"] for app in apps} if len(apps) == 5 else set()


def payload(rng: Random, name: str, others: list[bytes]) -> bytes:
    """Return a payload with either changed values or changed bytes."""
    _, good = delivery(name)
    if rng.random() < 0.5:
        content = disturbed(rng, json.loads(good), 0.15)
        if isinstance(content, dict) and rng.random() < 0.3:
            content[rng.choice([*content, "ref", "repository", "changes"])] = rng.choice(ODD)
        return json.dumps(content).encode("utf-8", "surrogatepass")
    return mutated(rng, good, others)


async def fuzz(world: World, receiver: WebhookReceiver, rng: Random, count: int, *, is_signed: bool) -> Counter[int]:
    codes = Counter[int]()
    others = [delivery(name)[1] for name in PROVIDERS]
    broken: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: broken.append(context))
    for number in range(count):
        name = rng.choice(list(PROVIDERS))
        headers, _ = delivery(name)
        body = payload(rng, name, others)
        if rng.random() < 0.05:
            headers["content-type"] = "application/x-www-form-urlencoded"
            body = b"payload=" + body
        is_forged = False
        if is_signed:
            signed = body if rng.random() < 0.8 else body + b" " if rng.random() < 0.5 else None
            proof = {} if signed is None else signature(name, signed)
            is_forged = proof != signature(name, body)
            headers |= proof
        code = await post(world.entry, body, headers, f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}")
        codes[code] += 1
        assert 200 <= code < 500, f"{number}: {name} is answered with {code}: {body[:2000]!r}"
        assert not (is_forged and code < 300), f"{number}: a forged delivery of {name} is accepted: {headers}"
        if number % 50 == 0:
            await asyncio.sleep(0)
    await receiver.refreshes.wait_until_empty()
    receiver.refreshes = RefreshQueue(interval_seconds=0.0)
    gc.collect()  # asyncio reports a crashed task when it is garbage-collected
    asyncio.get_running_loop().set_exception_handler(None)
    assert broken == [], f"a task died: {broken}"
    return codes


async def set_secrets(world: World) -> None:
    await world.make("Secret", "argocd-secret", stringData=SECRETS)
    await world.seen("", "Secret", "argocd-secret")


async def test_malformed_payloads_cause_no_server_error(
    world: World, size: Callable[..., int], rng: Random, receiver: WebhookReceiver
) -> None:
    count = size(PAYLOADS) // 2
    codes = await fuzz(world, receiver, rng, count, is_signed=False)
    assert codes[200] > count / 50 and codes[400] > count / 50
    await set_secrets(world)
    codes = await fuzz(world, receiver, rng, count, is_signed=True)
    assert codes[200] > count / 50
    app = await world.cluster.get(ResourceKey(*APPLICATION, CONTROL, "app-0"))
    assert app is not None and REFRESH in app["metadata"]["annotations"], "no delivery refreshed anything"


def skip_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_verification, "_verify_sender", lambda *_: None)


def accept_any_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        webhook_verification, "_has_valid_signature", lambda body, sent_signature, secret, **_: bool(sent_signature)
    )


def trust_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    def unwrapped(body: bytes, headers: Mapping[str, str]) -> bytes:
        is_form = headers.get("content-type") == "application/x-www-form-urlencoded"
        return parse_qs(body)[b"payload"][0] if is_form else body

    monkeypatch.setattr(webhook_verification, "_unwrap_form", unwrapped)


def die_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refresh(cluster: Cluster, key: ResourceKey) -> None:
        raise KeyError(key.name)

    monkeypatch.setattr(rate_limited_refresh_queue, "_try_refresh", refresh)


@pytest.mark.parametrize(
    ("seed_bug", "count", "finding"),
    [
        (skip_signatures, 2_000, "a forged delivery of .* is accepted"),
        pytest.param(accept_any_signature, 2_000, "a forged delivery of .* is accepted", marks=IN_TEST_ALL_AND_PROVE),
        pytest.param(trust_forms, 2_000, "is answered with 500", marks=IN_TEST_ALL_AND_PROVE),
        # checked at the end
        pytest.param(die_in_the_background, 200, "a task died: .*KeyError", marks=IN_TEST_ALL_AND_PROVE),
    ],
)
async def test_fuzzer_detects_seeded_webhook_bugs(
    world: World,
    rng: Random,
    monkeypatch: pytest.MonkeyPatch,
    seed_bug: Callable[..., None],
    count: int,
    finding: str,
    receiver: WebhookReceiver,
) -> None:
    await set_secrets(world)
    seed_bug(monkeypatch)
    with pytest.raises(AssertionError, match=finding):
        await fuzz(world, receiver, rng, count, is_signed=True)


LARGE = b'{"x":"' + b"a" * ((5 << 20) - 100) + b'"}'
PUSH = {"x-github-event": "push"}


async def send_at_once(world: World, count: int) -> None:
    """Send that many bodies of the maximum size: a few are read, the others wait or are rejected."""
    gc.collect()
    tracemalloc.start()
    sent = [post(world.entry, LARGE, PUSH, f"192.0.2.{number}") for number in range(count)]
    codes = Counter(await asyncio.gather(*sent))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert set(codes) <= {200, 400, 429}, codes
    assert most < MOST_MEMORY, f"{count} bodies take {most >> 20} MB"


async def test_concurrent_large_webhook_bodies_stay_within_the_memory_limit(
    world: World, size: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred concurrent bodies, thirty in `make test`."""
    monkeypatch.setattr(
        webhook_api, "RECEIVE_TIMEOUT_SECONDS", HANG_SECONDS
    )  # on a slow machine the last bodies wait longer than the default
    await send_at_once(world, min(100, size(2_000, test=30)))
    body, headers = LARGE, PUSH
    too_large = await post(world.entry, body + b" " * 200, headers, "192.0.2.200")
    unannounced = await post(world.entry, body + b" " * 200, {**headers, "content-length": ""}, "192.0.2.201")
    assert (too_large, unannounced) == (413, 413)


@pytest.mark.tier("all", "prove")
async def test_proof_detects_unlimited_concurrent_bodies(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WebhookReceiver, "wait_for_turn", lambda self, announced: contextlib.nullcontext())
    with pytest.raises(AssertionError, match=r"bodies take \d+ MB"):
        await send_at_once(world, 30)
