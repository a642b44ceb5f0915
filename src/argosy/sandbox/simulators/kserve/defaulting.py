"""Simulates KServe's webhooks: defaults and validates an InferenceService before it is stored.

In: the manifest that was sent. Out: the manifest to store. Never: chooses a runtime; the controller does that later and
reports it in the status.
"""

from __future__ import annotations

import re
from typing import Any, Final

from argosy.errors import UserError
from argosy.kube.client import Admitter
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import is_played_by_others
from argosy.sandbox.simulators.kserve.constants import (
    COMPONENTS,
    CONTAINER,
    DEPLOYMENT_MODE,
    INFERENCE_SERVICE,
    STANDARD,
)

FRAMEWORKS: Final = (
    "sklearn", "tensorflow", "xgboost", "pytorch", "triton", "onnx", "huggingface", "pmml", "lightgbm", "paddle",
)  # kserve: in this order; the first that is there is taken  # fmt: skip
SPEAKS_V2: Final = ("triton", "onnx", "huggingface")
RESOURCES: Final = {"cpu": "1", "memory": "2Gi"}  # defaults of a custom container without resources
NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
WEBHOOK: Final = "inferenceservice.kserve-webhook-server"
MANAGER: Final = "kserve-webhook"

Fields = dict[str, Any]


def defaulted(service: Manifest) -> Manifest:
    spec = service.get("spec") or {}
    if is_played_by_others(service) or not isinstance(spec.get("predictor"), dict):
        return service
    metadata = service["metadata"]
    annotations = {DEPLOYMENT_MODE: STANDARD, **(metadata.get("annotations") or {})}
    whole = {**spec, "predictor": _modelled(spec["predictor"])}
    for component in COMPONENTS:
        if whole.get(component):
            whole[component] = _completed(whole[component])
    return {**service, "metadata": {**metadata, "annotations": annotations}, "spec": whole}


def _modelled(predictor: Fields) -> Fields:
    """kserve: convert the old framework field to `model`, so the live object always differs from Git.

    It replaces an existing `model`, because applying the same manifest again sends both.
    """
    framework = next((each for each in FRAMEWORKS if predictor.get(each) is not None), None)
    model = predictor.get("model")
    if framework is not None:
        spoken = {"protocolVersion": "v2"} if framework in SPEAKS_V2 else {}
        model = {"modelFormat": {"name": framework}, **spoken, **predictor[framework]}
        predictor = {name: value for name, value in predictor.items() if name != framework}
    if model is None:
        return predictor
    if (model.get("modelFormat") or {}).get("name") == "triton":
        model = {"protocolVersion": "v2", **model}
    # kserve: name and resources of a container are always written, even if empty
    return {**predictor, "model": {"name": "", "resources": {}, **model}}


def _completed(component: Fields) -> Fields:
    whole = {"automountServiceAccountToken": False, **component}
    containers = component.get("containers") or ()
    if containers and not component.get("model"):
        whole["containers"] = [_own(each, is_first=number == 0) for number, each in enumerate(containers)]
    return whole


def _own(container: Fields, *, is_first: bool) -> Fields:
    if not is_first:
        return container
    resources = container.get("resources") or {}
    filled = {field: {**RESOURCES, **(resources.get(field) or {})} for field in ("requests", "limits")}
    named = {**container, "name": container.get("name") or CONTAINER}
    return {**named, "resources": {**resources, **filled}}


def check(service: Manifest) -> None:
    """Raise UserError in the words of KServe's validating webhook."""
    name, spec = str(service["metadata"].get("name") or ""), service.get("spec") or {}
    if name and not NAME.fullmatch(name):
        rule = "must consist of lower case alphanumeric characters or '-', and must start with alphabetical character"
        raise UserError(f'the InferenceService "{name}" is invalid: a InferenceService name {rule}')
    predictor = spec.get("predictor") or {}
    chosen = [each for each in ("model", *FRAMEWORKS) if predictor.get(each) is not None]
    if len(chosen) > 1:
        raise UserError(f"exactly one of [{', '.join(chosen)}] must be specified in PredictorSpec")
    for component in COMPONENTS:
        least, most = ((spec.get(component) or {}).get(field) for field in ("minReplicas", "maxReplicas"))
        if least is not None and least < 0:
            raise UserError("'MinReplicas' cannot be less than 0")
        if most and (least if least is not None else 1) > most:
            raise UserError("'MinReplicas' cannot be greater than MaxReplicas")


def _refused(new: Manifest, old: Manifest | None) -> Manifest:
    if new["metadata"].get("deletionTimestamp") is None:
        check(new)
    return new


ADMITTERS: Final = (
    Admitter(INFERENCE_SERVICE, f"{WEBHOOK}.defaulter", MANAGER, lambda new, old: defaulted(new)),
    Admitter(INFERENCE_SERVICE, f"{WEBHOOK}.validator", MANAGER, _refused),
)
