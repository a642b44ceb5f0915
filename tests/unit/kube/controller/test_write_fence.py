"""Write fencing: mutating calls in a step whose permit can be revoked or expire."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from argosy.errors import TransientError
from argosy.gitops.application import OperationPhase
from argosy.gitops.reconciler.read_your_writes import ReadYourWritesClient
from argosy.kube.client import Cluster, User
from argosy.kube.client.before_write_hook import BEFORE_WRITE
from argosy.kube.controller.write_fence import FencedStep, NotOwner, require_permit, run_write
from argosy.kube.objects import key_of
from support import sync_operations
from support.loop_clock import turns

pytestmark = pytest.mark.anyio


def config_map(name: str, namespace: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


async def test_writes_without_a_permit_are_allowed() -> None:
    assert await run_write(lambda: asyncio.sleep(0, "done"), "say so") == "done"


async def test_revoked_step_cannot_write(clock: Any, cluster: Cluster, namespace: str) -> None:
    step = FencedStep("argocd/app", lambda: True, lambda: 10.0, 4.0, clock)
    door = ReadYourWritesClient(cluster, lambda key: None)
    with require_permit(step):
        created = await door.create(config_map("one", namespace))
        step.revoke()
        for change in (
            door.create(config_map("two", namespace)),
            door.apply(config_map("two", namespace), manager="test"),
            door.replace(created),
            door.patch(key_of(created), {"data": {"a": "b"}}),
            door.delete(key_of(created)),
        ):
            with pytest.raises(NotOwner):
                await change
        with pytest.raises(NotOwner):
            await door.acting_as(User("ann", ("system:masters",))).create(config_map("two", namespace))
        await door.create(config_map("three", namespace), dry_run=True)  # a dry run is allowed
    config_maps = (await cluster.list(key_of(created).group_kind, namespace=namespace)).items
    assert "data" not in next(manifest for manifest in config_maps if manifest["metadata"]["name"] == "one")
    assert "two" not in [manifest["metadata"]["name"] for manifest in config_maps]


async def test_sync_with_a_refused_permit_continues_once_permitted(
    clock: Any, cluster: Cluster, namespace: str
) -> None:
    """A late Lease must not mark the revision as failed, since it would never be retried."""
    manifest = sync_operations.config("one", namespace=namespace)
    stage = sync_operations.Stage(cluster, [manifest], engine=ReadYourWritesClient(cluster, lambda key: None))
    is_late = True
    with require_permit(FencedStep("argocd/demo", lambda: not is_late, lambda: 10.0, 4.0, clock)):
        before = stage.begin()
        with pytest.raises(TransientError):
            await stage.step()
        assert stage.state is before and await cluster.get(key_of(manifest)) is None
        is_late = False
        assert (await stage.finish()).phase is OperationPhase.SUCCEEDED
    await cluster.delete(key_of(manifest))


async def test_permit_is_checked_again_just_before_sending(clock: Any) -> None:
    """The process may have been suspended since it started to open the connection."""
    step = FencedStep("argocd/app", lambda: True, lambda: 10.0, 4.0, clock)
    sent = []

    async def call() -> None:
        step.revoke()
        BEFORE_WRITE.get()()
        sent.append("it")

    with require_permit(step), pytest.raises(NotOwner):
        await run_write(call, "send it")
    assert not sent and step.is_finished
    BEFORE_WRITE.get()()  # the check applies to that call only


async def test_call_is_cancelled_when_its_lease_expires_and_not_while_renewed(
    clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """k8s: an admission webhook may take 30 s to answer."""
    ends = 10.0
    step, answered = FencedStep("argocd/app", lambda: True, lambda: ends, 4.0, clock), asyncio.Event()
    with require_permit(step):
        waiting = asyncio.create_task(run_write(answered.wait, "apply ConfigMap/ml/a"))
        await turns()
        for _ in range(15):
            clock.advance(2.0)
            ends += 2.0
        await turns()
        assert not waiting.done()
        clock.advance(10.1)
        with pytest.raises(NotOwner, match="apply ConfigMap/ml/a was cancelled after 40 s"):
            await waiting
        assert "apply ConfigMap/ml/a" in caplog.text
    step.close()
    assert step.is_finished and clock.waits() == []


async def test_call_of_a_revoked_step_is_cancelled_after_a_grace_period(clock: Any) -> None:
    step = FencedStep("argocd/app", lambda: True, lambda: 1000.0, 4.0, clock)
    with require_permit(step):
        waiting = asyncio.create_task(run_write(asyncio.Event().wait, "wait"))
        await turns()
        clock.advance(100.0)
        step.revoke()
        clock.advance(3.9)
        await turns()
        assert not waiting.done() and not step.is_finished
        clock.advance(0.2)
        with pytest.raises(NotOwner):
            await waiting
    assert step.is_finished


async def test_cancelled_task_waits_for_its_running_call(clock: Any) -> None:
    step, answered, notifications = (
        FencedStep("argocd/app", lambda: True, lambda: 10.0, 4.0, clock),
        asyncio.Event(),
        [],
    )
    step.on_finished = lambda: notifications.append("quiet")
    with require_permit(step):
        waiting = asyncio.create_task(run_write(answered.wait, "wait"))
        await turns()
    waiting.cancel()
    step.revoke()
    await turns()
    assert not waiting.done() and not step.is_finished
    answered.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert step.is_finished and notifications


async def test_cancelled_task_stops_waiting_after_a_grace_period(clock: Any) -> None:
    step = FencedStep("argocd/app", lambda: True, lambda: 1000.0, 4.0, clock)
    with require_permit(step):
        waiting = asyncio.create_task(run_write(asyncio.Event().wait, "wait"))
        await turns()
    waiting.cancel()
    await turns()
    clock.advance(4.1)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    step.close()
    assert step.is_finished and clock.waits() == []
