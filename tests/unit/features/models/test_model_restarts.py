"""`argosy model restart`: rolls out the Deployment again, or deletes the Pods of a serverless model."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.annotations import RESTARTED_AT
from argosy.errors import UserError
from argosy.features.models.service import ModelService
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

pytestmark = pytest.mark.anyio
LABELS = {"serving.kserve.io/inferenceservice": "churn", "component": "predictor"}
CONTAINERS = {"containers": [{"name": "main", "image": "m:1"}]}


def service(mode: str) -> dict[str, Any]:
    metadata = {"name": "churn", "namespace": "default", "annotations": {"serving.kserve.io/deploymentMode": mode}}
    return {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": metadata,
            "spec": {"predictor": {"model": {"modelFormat": {"name": "sklearn"}}}}}  # fmt: skip


async def test_restart_annotates_the_deployment(cluster: EmbeddedCluster) -> None:
    metadata = {"name": "churn-predictor", "namespace": "default"}
    template = {"metadata": {"labels": LABELS}, "spec": CONTAINERS}
    spec = {"selector": {"matchLabels": LABELS}, "template": template}
    await cluster.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    message = await ModelService(cluster, "here").restart_model(service("RawDeployment"))
    assert message == "deployment churn-predictor in default restarted"
    deployment = await cluster.get(ResourceKey("apps", "Deployment", "default", "churn-predictor"))
    assert deployment is not None and RESTARTED_AT in deployment["spec"]["template"]["metadata"]["annotations"]


async def test_restart_without_a_deployment_points_to_model_get(cluster: EmbeddedCluster) -> None:
    with pytest.raises(UserError, match="churn has no Deployment churn-predictor; see: argosy model get churn"):
        await ModelService(cluster, "here").restart_model(service("RawDeployment"))


async def test_restart_of_serverless_model_deletes_only_its_predictor_pods(cluster: EmbeddedCluster) -> None:
    for name, labels in (("ours", LABELS), ("other", {**LABELS, "component": "transformer"})):
        metadata = {"name": name, "namespace": "default", "labels": labels}
        await cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": CONTAINERS})
    message = await ModelService(cluster, "here").restart_model(service("Serverless"))
    assert message == "deleted 1 Pods of churn in default; new ones are starting"
    assert await cluster.get(ResourceKey("", "Pod", "default", "ours")) is None
    assert await cluster.get(ResourceKey("", "Pod", "default", "other")) is not None
