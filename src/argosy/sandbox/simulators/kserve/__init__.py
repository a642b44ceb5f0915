"""Simulates KServe: InferenceServices served by ServingRuntimes that are chosen for them.

In: a model probe, and whether Routes exist. Out: controllers by kind, CRDs, admission handlers, runtimes.
Never: runs a model in this process.
"""

from __future__ import annotations

from typing import Final

from argosy.sandbox.simulators.kserve.constants import INFERENCE_SERVICE
from argosy.sandbox.simulators.kserve.defaulting import ADMITTERS
from argosy.sandbox.simulators.kserve.inference_services import InferenceServices
from argosy.sandbox.simulators.kserve.model_probe import Answer, ModelState, Probe
from argosy.sandbox.simulators.kserve.models import Models
from argosy.sandbox.simulators.kserve.stock_runtimes import build_stock_runtimes

NEEDS: Final = (
    "inferenceservices.serving.kserve.io",
    "servingruntimes.serving.kserve.io",
    "clusterservingruntimes.serving.kserve.io",
)

__all__ = [
    "ADMITTERS",
    "INFERENCE_SERVICE",
    "NEEDS",
    "Answer",
    "InferenceServices",
    "ModelState",
    "Models",
    "Probe",
    "build_stock_runtimes",
]
