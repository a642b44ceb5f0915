"""Exponential backoff for receivers that are down or overloaded, with real servers that count requests."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from argosy.annotations import NOTIFIED, NOTIFYING
from argosy.features.notifications.addon import make
from argosy.features.notifications.delivery_events import NotificationHistoryRow, read_history
from argosy.features.notifications.receiver_backoff import ReceiverBackoff
from argosy.features.notifications.subscriptions import NotificationDestination
from argosy.kube.controller import run
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import EVENT
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.engine import LeapingClock
from support.message_servers import http_inbox
from support.notifications import APP, Inbox, application, prepare, quiet, set_status, settings

pytestmark = pytest.mark.anyio
Until = Callable[[Callable[[], Awaitable[object]]], Awaitable[None]]
SETTINGS = ResourceKey("", "ConfigMap", "argocd", "argocd-notifications-cm")
CHANGES = 20


@asynccontextmanager
async def leaping(cluster: EmbeddedCluster) -> AsyncIterator[LeapingClock]:
    addon, clock = make(""), LeapingClock()
    assert addon.background is not None
    async with addon.background(None):  # type: ignore[arg-type]
        work = asyncio.create_task(run(addon.controllers, cluster, clock=clock))
        try:
            yield clock
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


def degraded(**annotations: str) -> Manifest:
    app = application(health={"status": "Degraded"})
    app["metadata"]["annotations"] |= annotations
    return app


async def rows(cluster: EmbeddedCluster, reason: str = "") -> list[NotificationHistoryRow]:
    history = read_history((await cluster.list(EVENT)).items)
    return [entry for entry in history if not reason or entry.reason == f"Notification{reason}"]


async def settle(cluster: EmbeddedCluster, until: Until, count: int, reason: str = "Delayed") -> None:
    async def is_so() -> bool:
        return len(await rows(cluster, reason)) >= count and NOTIFYING not in await quiet(cluster)

    await until(is_so)


async def is_looked_at(cluster: EmbeddedCluster, until: Until, number: int) -> None:
    """Wait for a reconcile of the object: subscribe one more receiver, and wait for its message."""
    recipients = ";".join(str(recipient) for recipient in range(1, number + 1))
    subscription = {"notifications.argoproj.io/subscribe.on-health-degraded.other": recipients}
    await cluster.patch(APP, {"metadata": {"annotations": subscription}})
    await settle(cluster, until, number, "Sent")


async def version(cluster: EmbeddedCluster) -> int:
    """The resource version of the last write to the cluster."""
    return int((await cluster.list(EVENT)).version)


@pytest.mark.parametrize("count", [3, pytest.param(6, marks=pytest.mark.tier("all"))])
async def test_receiver_answering_503_is_retried_once_per_backoff_interval(
    cluster: EmbeddedCluster, until: Until, count: int
) -> None:
    with http_inbox(lambda letter: (503, b"busy")) as inbox, http_inbox() as well:
        await prepare(cluster, [*settings(inbox, **{"service.webhook.other": f"url: {well.url}"}), degraded()])
        async with leaping(cluster) as clock:
            for tries in range(1, count + 1):
                await settle(cluster, until, tries)
                for number in range(CHANGES):
                    await set_status(cluster, sync={"revision": f"{tries}.{number}"})
                clock.leap(min(10.0 * 2 ** (tries - 1), 300.0) * 0.7)  # before the retry, whatever the jitter
                await is_looked_at(cluster, until, tries)
                assert len(inbox.letters) == tries
                if tries == count:
                    inbox.answer = lambda letter: (200, b"")
                clock.leap(min(10.0 * 2 ** (tries - 1), 300.0) * 0.4)
            await settle(cluster, until, count + 1, "Sent")
        delayed = await rows(cluster, "Delayed")
    assert (len(inbox.letters), len(delayed)) == (count + 1, count)
    assert "answered 503 (busy)" in delayed[0].message and f"{count} times in a row, again in " in delayed[0].message
    assert NOTIFIED in await quiet(cluster)


@pytest.mark.tier("all")
async def test_unreachable_receiver_costs_two_writes_and_one_event_until_the_retry(
    cluster: EmbeddedCluster, until: Until
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = Inbox(f"http://127.0.0.1:{taken.getsockname()[1]}")
    with http_inbox() as well:
        await prepare(cluster, [*settings(nobody, **{"service.webhook.other": f"url: {well.url}"}), degraded()])
        before = await version(cluster)
        async with leaping(cluster):
            await settle(cluster, until, 1)
            for number in range(1, CHANGES + 1):
                await is_looked_at(cluster, until, number)
    assert await version(cluster) - before == 3 + 4 * CHANGES  # per change: the change, claim, end, Event
    (row,) = await rows(cluster, "Delayed")
    assert (row.trigger, row.destination) == ("on-health-degraded", "ours:")
    assert "cannot be reached" in row.message and "failed the first time, again in " in row.message


@pytest.mark.tier("all")
async def test_failing_receiver_does_not_block_another_receiver(cluster: EmbeddedCluster, until: Until) -> None:
    with http_inbox(lambda letter: (503, b"")) as busy, http_inbox() as well:
        more = {"service.webhook.other": f"url: {well.url}"}
        app = degraded(**{"notifications.argoproj.io/subscribe.on-health-degraded.other": ""})
        await prepare(cluster, [*settings(busy, **more), app])
        async with leaping(cluster):
            await settle(cluster, until, 1)
            await settle(cluster, until, 1, "Sent")
    assert (len(busy.letters), len(well.letters)) == (1, 1)


@pytest.mark.tier("all")
async def test_changed_settings_are_tried_at_once(cluster: EmbeddedCluster, until: Until) -> None:
    with http_inbox(lambda letter: (429, b"")) as inbox, http_inbox() as well:
        await prepare(cluster, [*settings(inbox), degraded()])
        async with leaping(cluster):
            await settle(cluster, until, 1)
            await cluster.patch(SETTINGS, {"data": {"service.webhook.ours": f"url: {well.url}"}})
            await settle(cluster, until, 1, "Sent")
    assert (len(inbox.letters), len(well.letters)) == (1, 1)


def test_backoff_doubles_up_to_five_minutes_and_can_be_reset() -> None:
    patience, at = ReceiverBackoff(), (APP, NotificationDestination("ours", ""))
    waits: list[Any] = [patience.record_failure(*at, ("1",), 0.0) for _ in range(9)]
    assert [count for count, _ in waits] == list(range(1, 10))
    for (_, wait), whole in zip(waits, (10, 20, 40, 80, 160, 300, 300, 300, 300), strict=True):
        assert 0.8 * whole <= wait <= whole
    assert patience.get_remaining_seconds(*at, ("1",), 0.0) == waits[-1][1]
    assert patience.get_remaining_seconds(*at, ("2",), 0.0) == 0.0
    assert patience.get_remaining_seconds(APP, NotificationDestination("other", ""), ("1",), 0.0) == 0.0
    patience.reset(*at)
    assert patience.get_remaining_seconds(*at, ("1",), 0.0) == 0.0
