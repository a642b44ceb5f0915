"""A sync step that is repeated after a lost status write still reports what the operation changed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from argosy.gitops.sync.wave_step import AppliedMessages
from argosy.kube.client import Cluster
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.sync_operations import NAMESPACE, Stage, config, definition, summarize_results


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with EmbeddedCluster.open() as opened:
        await opened.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
        yield opened


async def test_repeated_step_reports_created_and_configured_objects(cluster: Cluster) -> None:
    await Stage(cluster, [config("old"), config("same")]).finish()
    messages: AppliedMessages = {}
    stage = Stage(cluster, more={"applied_messages": messages})
    stage = stage.again(config("old", "2"), config("same"), config("new"))
    initial_state = stage.state
    await stage.step()
    stage.state = initial_state  # write conflict on the Application: the state of this step is lost
    state = (await stage.step()).state
    assert {name: message for name, (_, _, message) in summarize_results(state).items()} == {
        "ConfigMap/old": "configmap/old configured",
        "ConfigMap/same": "configmap/same unchanged",
        "ConfigMap/new": "configmap/new created",
    }


async def test_repeated_step_without_applied_messages_reports_unchanged(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("a")])
    initial_state = stage.begin()
    await stage.step()
    stage.state = initial_state
    assert summarize_results((await stage.step()).state)["ConfigMap/a"][2] == "configmap/a unchanged"


async def test_result_of_cluster_scoped_object_has_the_namespace_of_the_destination(cluster: Cluster) -> None:
    """The result is found again in the next wave, so the object is not applied a second time."""
    state = await Stage(cluster, [definition(), config("a", wave=1)]).finish()
    assert {(result.key.kind, result.key.namespace, result.message) for result in state.results} == {
        (
            "CustomResourceDefinition",
            NAMESPACE,
            "customresourcedefinition.apiextensions.k8s.io/widgets.example.com created",
        ),
        ("ConfigMap", NAMESPACE, "configmap/a created"),
    }
