"""Builds the ClusterServingRuntimes that KServe installs, so that a model need not name a runtime.

In: nothing. Out: manifests with KServe's names, model formats, protocols, images and arguments. Never: a runtime for
vLLM, which users add as a ServingRuntime in their namespace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from argosy.annotations import SIMULATED
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.kserve.kinds_and_labels import KSERVE_CONTAINER
from argosy.sandbox.simulators.owner_references_and_marks import SIMULATED_NOTE

SERVER_TYPE: Final = "serving.kserve.io/server-type"
RESOURCES: Final = {"cpu": "1", "memory": "2Gi"}
MODEL_SERVER_ARGS: Final = ("--model_name={{.Name}}", "--model_dir=/mnt/models", "--http_port=8080")


class StockRuntime(NamedTuple):
    server: str  # the name without "kserve-"
    # FORMAT:VERSION:PRIORITY, separated by spaces; without a priority it is not selected automatically
    formats: str
    protocols: str
    image: str
    args: Sequence[str] = MODEL_SERVER_ARGS
    metrics_port: str = "8080"


# kserve: config/runtimes of the project, as of August 2026
STOCK_RUNTIMES: Final = (
    StockRuntime("sklearnserver", "sklearn:1:1", "v1 v2", "kserve/sklearnserver:latest"),
    StockRuntime("xgbserver", "xgboost:2:1", "v1 v2", "kserve/xgbserver:latest", (*MODEL_SERVER_ARGS, "--nthread=1")),
    StockRuntime("lgbserver", "lightgbm:4:1", "v1 v2", "kserve/lgbserver:latest", (*MODEL_SERVER_ARGS, "--nthread=1")),
    StockRuntime(
        "mlserver",
        "sklearn:0:2 sklearn:1:2 xgboost:1:2 xgboost:2:2 lightgbm:3:2 lightgbm:4:2 mlflow:1:1 mlflow:2:1",
        "v2",
        "docker.io/seldonio/mlserver:1.7.1",
        (),
    ),
    StockRuntime(
        "torchserve",
        "pytorch:1:2",
        "v1 v2 grpc-v2",
        "pytorch/torchserve-kfs:0.9.0",
        (
            "torchserve",
            "--start",
            "--model-store=/mnt/models/model-store",
            "--ts-config=/mnt/models/config/config.properties",
        ),
        "8082",
    ),
    StockRuntime(
        "tritonserver",
        "tensorrt:8:1 tensorflow:1:1 tensorflow:2:1 onnx:1:1 pytorch:1 triton:2:1",
        "v2 grpc-v2",
        "nvcr.io/nvidia/tritonserver:23.05-py3",
        (
            "tritonserver",
            "--model-store=/mnt/models",
            "--grpc-port=9000",
            "--http-port=8080",
            "--allow-grpc=true",
            "--allow-http=true",
        ),
        "8002",
    ),
    StockRuntime(
        "huggingfaceserver", "huggingface:1:1", "v2 v1", "kserve/huggingfaceserver:latest", ("--model_name={{.Name}}",)
    ),
    StockRuntime(
        "tensorflow-serving",
        "tensorflow:1:2 tensorflow:2:2",
        "v1 grpc-v1",
        "tensorflow/serving:2.6.2",
        (
            "--model_name={{.Name}}",
            "--port=9000",
            "--rest_api_port=8080",
            "--model_base_path=/mnt/models",
            "--rest_api_timeout_in_ms=60000",
        ),
    ),
    StockRuntime("pmmlserver", "pmml:3:1 pmml:4:1", "v1 v2", "kserve/pmmlserver:latest"),
    StockRuntime("paddleserver", "paddle:2:1", "v1 v2", "kserve/paddleserver:latest"),
)


def build_stock_runtimes() -> list[Manifest]:
    return [_build_manifest(runtime) for runtime in STOCK_RUNTIMES]


def _build_manifest(runtime: StockRuntime) -> Manifest:
    container: dict[str, Any] = {
        "name": KSERVE_CONTAINER,
        "image": runtime.image,
        **({"args": list(runtime.args)} if runtime.args else {}),
        "resources": {"requests": dict(RESOURCES), "limits": dict(RESOURCES)},
    }
    return {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "ClusterServingRuntime",
        "metadata": {
            "name": f"kserve-{runtime.server}",
            "annotations": {SERVER_TYPE: runtime.server, SIMULATED: SIMULATED_NOTE},
        },
        "spec": {
            "annotations": {
                "prometheus.kserve.io/port": runtime.metrics_port,
                "prometheus.kserve.io/path": "/metrics",
            },
            "supportedModelFormats": [_build_format(entry) for entry in runtime.formats.split()],
            "protocolVersions": runtime.protocols.split(),
            "containers": [container],
        },
    }


def _build_format(entry: str) -> dict[str, Any]:
    name, version, *priority = entry.split(":")
    selected = {"autoSelect": True, "priority": int(priority[0])} if priority else {}
    return {"name": name, "version": version, **selected}
