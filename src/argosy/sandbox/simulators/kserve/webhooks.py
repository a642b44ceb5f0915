"""Simulates KServe's webhooks: defaults and validates an InferenceService before it is stored.

In: the manifest that was sent. Out: the manifest to store. Never: chooses a runtime; the controller does that later and
reports it in the status.
"""

from __future__ import annotations

import re
from typing import Any, Final

from argosy.errors import UserError
from argosy.kube.client import AdmissionHandler
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import INFERENCE_SERVICE
from argosy.sandbox.simulators.kserve.kinds_and_labels import (
    COMPONENTS,
    DEPLOYMENT_MODE_ANNOTATION,
    KSERVE_CONTAINER,
    STANDARD_MODE,
)
from argosy.sandbox.simulators.owner_references_and_marks import is_simulated_by_other_addon

FRAMEWORKS: Final = (
    "sklearn", "tensorflow", "xgboost", "pytorch", "triton", "onnx", "huggingface", "pmml", "lightgbm", "paddle",
)  # kserve: in this order; the first that is there is taken  # fmt: skip
V2_FRAMEWORKS: Final = ("triton", "onnx", "huggingface")
DEFAULT_RESOURCES: Final = {"cpu": "1", "memory": "2Gi"}  # defaults of a custom container without resources
NAME_PATTERN: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
WEBHOOK_NAME: Final = "inferenceservice.kserve-webhook-server"
FIELD_MANAGER: Final = "kserve-webhook"

SpecFields = dict[str, Any]


def apply_defaults(service: Manifest) -> Manifest:
    spec = service.get("spec") or {}
    if is_simulated_by_other_addon(service) or not isinstance(spec.get("predictor"), dict):
        return service
    metadata = service["metadata"]
    annotations = {DEPLOYMENT_MODE_ANNOTATION: STANDARD_MODE, **(metadata.get("annotations") or {})}
    new_spec = {**spec, "predictor": _convert_framework_to_model(spec["predictor"])}
    for component in COMPONENTS:
        if new_spec.get(component):
            new_spec[component] = _default_component(new_spec[component])
    return {**service, "metadata": {**metadata, "annotations": annotations}, "spec": new_spec}


def _convert_framework_to_model(predictor: SpecFields) -> SpecFields:
    """kserve: convert the old framework field to `model`, so the live object always differs from Git.

    It replaces an existing `model`, because applying the same manifest again sends both.
    """
    framework = next((candidate for candidate in FRAMEWORKS if predictor.get(candidate) is not None), None)
    model = predictor.get("model")
    if framework is not None:
        protocol = {"protocolVersion": "v2"} if framework in V2_FRAMEWORKS else {}
        model = {"modelFormat": {"name": framework}, **protocol, **predictor[framework]}
        predictor = {name: value for name, value in predictor.items() if name != framework}
    if model is None:
        return predictor
    if (model.get("modelFormat") or {}).get("name") == "triton":
        model = {"protocolVersion": "v2", **model}
    # kserve: name and resources of a container are always written, even if empty
    return {**predictor, "model": {"name": "", "resources": {}, **model}}


def _default_component(component: SpecFields) -> SpecFields:
    completed = {"automountServiceAccountToken": False, **component}
    containers = component.get("containers") or ()
    if containers and not component.get("model"):
        completed["containers"] = [
            _default_custom_container(container, is_first=number == 0) for number, container in enumerate(containers)
        ]
    return completed


def _default_custom_container(container: SpecFields, *, is_first: bool) -> SpecFields:
    if not is_first:
        return container
    resources = container.get("resources") or {}
    default_resources = {
        field: {**DEFAULT_RESOURCES, **(resources.get(field) or {})} for field in ("requests", "limits")
    }
    named_container = {**container, "name": container.get("name") or KSERVE_CONTAINER}
    return {**named_container, "resources": {**resources, **default_resources}}


def validate(service: Manifest) -> None:
    """Raise UserError in the words of KServe's validating webhook."""
    name, spec = str(service["metadata"].get("name") or ""), service.get("spec") or {}
    if name and not NAME_PATTERN.fullmatch(name):
        rule = "must consist of lower case alphanumeric characters or '-', and must start with alphabetical character"
        raise UserError(f'the InferenceService "{name}" is invalid: a InferenceService name {rule}')
    predictor = spec.get("predictor") or {}
    specified = [candidate for candidate in ("model", *FRAMEWORKS) if predictor.get(candidate) is not None]
    if len(specified) > 1:
        raise UserError(f"exactly one of [{', '.join(specified)}] must be specified in PredictorSpec")
    for component in COMPONENTS:
        min_replicas, max_replicas = (
            (spec.get(component) or {}).get(field) for field in ("minReplicas", "maxReplicas")
        )
        if min_replicas is not None and min_replicas < 0:
            raise UserError("'MinReplicas' cannot be less than 0")
        if max_replicas and (min_replicas if min_replicas is not None else 1) > max_replicas:
            raise UserError("'MinReplicas' cannot be greater than MaxReplicas")


def _admit_if_valid(new: Manifest, old: Manifest | None) -> Manifest:
    if new["metadata"].get("deletionTimestamp") is None:
        validate(new)
    return new


ADMISSION_HANDLERS: Final = (
    AdmissionHandler(
        INFERENCE_SERVICE, f"{WEBHOOK_NAME}.defaulter", FIELD_MANAGER, lambda new, old: apply_defaults(new)
    ),
    AdmissionHandler(INFERENCE_SERVICE, f"{WEBHOOK_NAME}.validator", FIELD_MANAGER, _admit_if_valid),
)
