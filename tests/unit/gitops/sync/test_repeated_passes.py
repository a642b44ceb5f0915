"""A pass whose state could not be written is made again, and still says what its operation changed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from argosy.gitops.sync.wave_step import AppliedMessages
from argosy.kube.client import Cluster
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.sync_operations import Stage, config, summarize_results


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with EmbeddedCluster.open() as opened:
        await opened.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
        yield opened


async def test_what_the_lost_pass_created_or_changed_is_not_called_unchanged(cluster: Cluster) -> None:
    await Stage(cluster, [config("old"), config("same")]).finish()
    messages: AppliedMessages = {}
    stage = Stage(cluster, more={"applied_messages": messages})
    stage = stage.again(config("old", "2"), config("same"), config("new"))
    initial_state = stage.state
    await stage.step()
    stage.state = initial_state  # somebody else wrote the Application meanwhile: nothing of this pass is known
    state = (await stage.step()).state
    assert {name: message for name, (_, _, message) in summarize_results(state).items()} == {
        "ConfigMap/old": "configmap/old configured",
        "ConfigMap/same": "configmap/same unchanged",
        "ConfigMap/new": "configmap/new created",
    }


async def test_without_a_memory_the_second_pass_tells_what_it_did_itself(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("a")])
    initial_state = stage.begin()
    await stage.step()
    stage.state = initial_state
    assert summarize_results((await stage.step()).state)["ConfigMap/a"][2] == "configmap/a unchanged"
