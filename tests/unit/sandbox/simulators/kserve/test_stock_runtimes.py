"""KServe's stock runtimes in the sandbox: a legacy-style model that names no runtime is served."""

from __future__ import annotations

import pytest

from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import INFERENCE_SERVICE
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators.kserve.kinds_and_labels import CLUSTER_SERVING_RUNTIME
from argosy.sandbox.simulators.kserve.runtime_selection import choose_runtime
from argosy.sandbox.simulators.kserve.stock_runtimes import build_stock_runtimes
from argosy.sandbox.simulators.kserve.webhooks import FRAMEWORKS, apply_defaults
from support.serving_manifests import MODEL_KINDS, model, modelled

pytestmark = pytest.mark.anyio
EXPECTED = {
    "sklearn": "kserve-sklearnserver",
    "xgboost": "kserve-xgbserver",
    "lightgbm": "kserve-lgbserver",
    "pytorch": "kserve-torchserve",
    "triton": "kserve-tritonserver",
    "onnx": "kserve-tritonserver",
    "huggingface": "kserve-huggingfaceserver",
    "tensorflow": "kserve-tensorflow-serving",
    "pmml": "kserve-pmmlserver",
    "paddle": "kserve-paddleserver",
}


def old_style(framework: str = "sklearn", **more: str) -> Manifest:
    service = model()
    service["spec"]["predictor"] = {framework: {"storageUri": "pvc://ml-model-storage/fraud-detection", **more}}
    return service


def is_ready(live: Manifest) -> bool:
    conditions = (live.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_each_legacy_framework_selects_its_stock_kserve_runtime(framework: str) -> None:
    chosen = choose_runtime(
        apply_defaults(old_style(framework))["spec"]["predictor"]["model"], [], build_stock_runtimes()
    )
    assert chosen.runtime is not None and chosen.runtime["metadata"]["name"] == EXPECTED[framework]


def test_sklearn_model_with_protocol_v2_selects_mlserver() -> None:
    model_spec = apply_defaults(old_style(protocolVersion="v2"))["spec"]["predictor"]["model"]
    chosen = choose_runtime(model_spec, [], build_stock_runtimes())
    assert chosen.runtime is not None and chosen.runtime["metadata"]["name"] == "kserve-mlserver"


async def test_legacy_model_becomes_ready_with_a_stock_runtime(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        names = {runtime["metadata"]["name"] for runtime in (await cluster.list(CLUSTER_SERVING_RUNTIME)).items}
        assert names == {*EXPECTED.values(), "kserve-mlserver"}
        await cluster.create(old_style(storageUri="s3://models/web"))
        live = await world.becomes(INFERENCE_SERVICE, is_ready)
    assert live["status"]["clusterServingRuntimeName"] == "kserve-sklearnserver"


async def test_every_kind_of_write_converts_the_legacy_framework_field(cluster: EmbeddedCluster) -> None:
    def stored_model(live: Manifest) -> tuple[bool, object]:
        predictor = live["spec"]["predictor"]
        return "sklearn" in predictor, (predictor["model"]["modelFormat"], predictor["model"]["storageUri"])

    async with modelled(cluster, *MODEL_KINDS):
        created = await cluster.create(old_style())
        key: ResourceKey = key_of(created)
        patched = await cluster.patch(key, {"spec": old_style(storageUri="s3://a/patched")["spec"]}, manager="kubectl")
        replaced = await cluster.replace(
            {**old_style(storageUri="s3://a/replaced"), "metadata": (await cluster.get(key))["metadata"]},
        )
        applied = await cluster.apply(old_style(storageUri="s3://a/applied"), manager="argocd-controller", force=True)
        applied_again = await cluster.apply(old_style(storageUri="s3://a/again"), manager="argocd-controller")
    sklearn = {"name": "sklearn"}
    assert stored_model(created) == (False, (sklearn, "pvc://ml-model-storage/fraud-detection"))
    assert stored_model(patched) == (False, (sklearn, "s3://a/patched"))
    assert stored_model(replaced) == (False, (sklearn, "s3://a/replaced"))
    assert stored_model(applied) == (False, (sklearn, "s3://a/applied"))
    assert stored_model(applied_again) == (False, (sklearn, "s3://a/again"))
