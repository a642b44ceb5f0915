"""If a health gate or a notebook hold fails a sync, the operation message is the gate's message."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from argosy.gitops.application import OperationPhase
from argosy.gitops.sync.notebook_wave_holds import WaveHold
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.sync_operations import Stage, config, definition, deployment, ends, finish_jobs, job, manifest

UNSUCCESSFUL = "one or more synchronization tasks completed unsuccessfully"
BLOCK = {"argosy.dev/gate": "block"}
FAILED = "NotebookValidationJob ml/train, which blocks wave 4, failed: cell 3 raised ValueError"


async def nothing_happens(_: Cluster) -> None:
    pass


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with EmbeddedCluster.open() as opened:
        await opened.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
        await Stage(opened, [definition()]).finish()
        yield opened


def widget(name: str, **more: Any) -> Manifest:
    return manifest("Widget", name, api="example.com/v1", **more)


async def test_gate_timeout_is_the_operation_message(cluster: Cluster) -> None:
    gate_annotations = {**BLOCK, "argosy.dev/gate-timeout": "1m"}
    stage = Stage(cluster, [deployment("web", annotations=gate_annotations)], world=nothing_happens)
    await stage.step()
    stage.time += timedelta(seconds=61)
    state = await stage.finish()
    assert state.phase is OperationPhase.FAILED
    assert state.message.startswith("apps/Deployment/web: not healthy within 60s: Waiting for rollout to finish")


@pytest.mark.parametrize("annotations", [BLOCK, {"argosy.dev/gate-timeout": "1m"}, {"mlops.dev/block-wave": "2"}])
async def test_degraded_gated_object_gives_its_health_message(cluster: Cluster, annotations: dict[str, str]) -> None:
    sick = widget("w", health="Degraded", message="no memory left", annotations=annotations)
    stage = Stage(cluster, [definition(), sick, config("after", wave=1)])
    assert ends(await stage.finish()) == (OperationPhase.FAILED, "example.com/Widget/w: no memory left")


async def test_messages_of_several_failed_gates_are_joined(cluster: Cluster) -> None:
    sick = [widget(name, health="Degraded", message=f"{name} is ill", annotations=BLOCK) for name in "ab"]
    state = await Stage(cluster, [definition(), *sick]).finish()
    assert state.message == "example.com/Widget/a: a is ill; example.com/Widget/b: b is ill"


async def test_failure_without_a_gate_keeps_the_argo_cd_message(cluster: Cluster) -> None:
    sick = widget("w", health="Degraded", message="no memory left")
    stage = Stage(cluster, [definition(), sick, config("after", wave=1)])
    assert ends(await stage.finish()) == (OperationPhase.FAILED, UNSUCCESSFUL)


async def test_failure_of_another_object_keeps_the_argo_cd_message_with_reason(cluster: Cluster) -> None:
    sick = widget("w", health="Degraded", message="no memory left", annotations=BLOCK)
    other = widget("v", health="Degraded", message="on fire")
    state = await Stage(cluster, [definition(), sick, other, config("after", wave=1)]).finish()
    assert state.message == f"{UNSUCCESSFUL}, reason: example.com/Widget/w: no memory left"


@pytest.mark.parametrize("has_hook", [False, True])
async def test_failed_notebook_that_holds_a_wave_is_the_operation_message(cluster: Cluster, has_hook: bool) -> None:
    def holds(wave: int) -> WaveHold | None:
        return WaveHold(FAILED, has_failed=True) if wave >= 4 else None

    hooks = [job("clean-up", hook="SyncFail")] if has_hook else []
    desired = [config("early"), config("model", wave=4), *hooks]
    stage = Stage(cluster, desired, more={"find_hold": holds}, world=finish_jobs)
    assert ends(await stage.finish()) == (OperationPhase.FAILED, FAILED)
    assert "model" not in await stage.names()
