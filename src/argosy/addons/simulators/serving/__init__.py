"""What KServe adds to a cluster: models that are served, by runtimes that are chosen for them.

In: who can ask a model, and whether there are Routes. Out: controllers by kind, definitions, admitters, runtimes.
Never: runs a model in this process.
"""

from __future__ import annotations

from typing import Final

from argosy.addons.simulators.serving.defaulting import ADMITTERS
from argosy.addons.simulators.serving.inference_services import InferenceServices
from argosy.addons.simulators.serving.models import Models
from argosy.addons.simulators.serving.names import INFERENCE_SERVICE
from argosy.addons.simulators.serving.probing import Answer, ModelState, Probe
from argosy.addons.simulators.serving.stock_runtimes import build_stock_runtimes

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
