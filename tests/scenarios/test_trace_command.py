"""`argosy trace` of a model without a volume: the line in Git that has its storage URI, and the commit of that line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from argosy.features.models.lineage_lookup import find_storage_uri_path
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from support.app_commands import Scene, scene

pytestmark = pytest.mark.anyio
SERVING = "serving.kserve.io"
FRAUD = ResourceKey(SERVING, "InferenceService", "ml", "fraud")
SERVICE = """\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata:
  name: fraud
spec:
  predictor:
    model:
      modelFormat: {name: vLLM}
      storageUri: oci://example.com/models/fraud:1
"""
POD: Manifest = {
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "fraud-1", "namespace": "ml", "labels": {f"{SERVING}/inferenceservice": "fraud"}},
    "spec": {"containers": [{"name": "main", "image": "main:1"}]},
}  # fmt: skip


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    async with scene(tmp_path) as new_scene:
        await new_scene.cluster.create(load_definition(f"inferenceservices.{SERVING}"))
        new_scene.repository.push({"app/fraud.yaml": SERVICE}, "Serve fraud from a registry")
        await new_scene.deliver()
        await new_scene.until(lambda status: bool(status.get("sync")))
        result = await new_scene.argosy("app", "sync", "models", "--async")
        assert result.code == 0, result.err
        await new_scene.until(lambda status: status["sync"]["status"] == "Synced")
        await new_scene.cluster.create(POD)
        yield new_scene


async def test_trace_shows_line_and_commit_of_storage_uri_and_exits_0(desk: Scene) -> None:
    result = await desk.argosy("trace", "isvc/fraud")
    assert result.code == 0, result
    rows = {line.split()[0]: line for line in result.out.splitlines()}
    assert '"Serve fraud from a registry"' in rows["commit"]
    assert rows["written"].endswith("app/fraud.yaml:9")
    assert "unknown origin" not in result.out and "fraud-1  since" in rows["served"]
    trace = json.loads((await desk.argosy("trace", "isvc/fraud", "-o", "json")).out)
    assert (trace["apiVersion"], trace["kind"]) == ("cli.argosy.dev/v1", "Trace")
    assert trace["models"][0]["written"]["place"] == "app/fraud.yaml:9"
    assert len(trace["models"][0]["written"]["commit"]) == 40


@pytest.mark.tier("all")
async def test_trace_exits_1_if_git_has_another_storage_uri(desk: Scene) -> None:
    edited = {"spec": {"predictor": {"model": {"storageUri": "oci://example.com/models/fraud:2"}}}}
    await desk.cluster.patch(FRAUD, edited, manager="kubectl-edit")
    result = await desk.argosy("trace", "fraud")
    assert result.code == 1 and "Git has another storage URI" in result.out, result


@pytest.mark.tier("all")
async def test_trace_exits_1_for_model_that_no_application_manages(desk: Scene) -> None:
    service_header = {"apiVersion": f"{SERVING}/v1beta1", "kind": "InferenceService"}
    spec = {"predictor": {"model": {"modelFormat": {"name": "vLLM"}, "storageUri": "s3://models/other"}}}
    await desk.cluster.create({**service_header, "metadata": {"name": "other", "namespace": "ml"}, "spec": spec})
    result = await desk.argosy("trace", "isvc/other")
    assert result.code == 1 and "is not on a volume" in result.out, result


@pytest.mark.parametrize(
    ("predictor", "field"),
    [
        ({"model": {"storageUri": "oci://x"}}, ".spec.predictor.model.storageUri"),
        ({"minReplicas": 1, "sklearn": {"storageUri": "s3://x"}}, ".spec.predictor.sklearn.storageUri"),
        ({"containers": [{"name": "main"}]}, ""),
    ],
)
async def test_storage_uri_path_is_found_in_model_or_framework_field(predictor: Manifest, field: str) -> None:
    assert find_storage_uri_path({"spec": {"predictor": predictor}}) == field
