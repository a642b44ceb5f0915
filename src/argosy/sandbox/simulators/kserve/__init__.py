"""Simulates KServe: InferenceServices served by ServingRuntimes that are chosen for them.

In: a model probe, and whether Routes exist. Out: controllers by kind, CRDs, admission handlers, runtimes.
Never: runs a model in this process.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.well_known_kinds import INFERENCE_SERVICE
from argosy.sandbox.simulators.kserve.inference_services import InferenceServiceController
from argosy.sandbox.simulators.kserve.model_probe_interface import ModelProbe, ModelState, ProbeResult
from argosy.sandbox.simulators.kserve.model_servers import ModelServers
from argosy.sandbox.simulators.kserve.stock_runtimes import build_stock_runtimes
from argosy.sandbox.simulators.kserve.webhooks import ADMISSION_HANDLERS

REQUIRED_CRDS: Final = (
    "inferenceservices.serving.kserve.io",
    "servingruntimes.serving.kserve.io",
    "clusterservingruntimes.serving.kserve.io",
)

__all__ = [
    "ADMISSION_HANDLERS",
    "INFERENCE_SERVICE",
    "REQUIRED_CRDS",
    "InferenceServiceController",
    "ModelProbe",
    "ModelServers",
    "ModelState",
    "ProbeResult",
    "build_stock_runtimes",
]
