"""Builds the complete status of an InferenceService.

In: the InferenceService, its components, the time. Out: its status. Never: reads a clock; writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from argosy.annotations import SIMULATED
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.kserve.component_and_model_status import (
    PredictorState,
    build_component_condition,
    build_model_status,
    build_predictor_condition,
)
from argosy.sandbox.simulators.kserve.kinds_and_labels import (
    build_cluster_local_host,
    has_revisions,
    read_deployment_mode,
)
from argosy.sandbox.simulators.kserve.knative_conditions import (
    KnativeCondition,
    compute_ready_condition,
    conditions_to_wire,
)
from argosy.sandbox.simulators.kserve.owned_object_manifests import find_entry_component
from argosy.sandbox.simulators.owner_references_and_marks import SIMULATED_NOTE, append_simulated_note

INGRESS_NOT_CREATED: Final = "{} ingress not created"
COMPONENT_TITLES: Final = {"predictor": "Predictor", "transformer": "Transformer", "explainer": "Explainer"}
CLEARED_FIELDS: Final = (
    "url",
    "address",
    "components",
    "modelStatus",
    "servingRuntimeName",
    "clusterServingRuntimeName",
)

InferenceServiceStatus = dict[str, Any]


class ExternalAccess(NamedTuple):
    """How the service is reached from outside the cluster."""

    url: str  # empty: not available yet
    problem: str = ""  # why it cannot become available


def build_status(
    service: Manifest,
    predictor: PredictorState,
    other_deployments: Mapping[str, Manifest | None],
    revisions: Mapping[str, str],
    access: ExternalAccess,
    now: str,
) -> InferenceServiceStatus:
    """Build the status. `other_deployments` are those of transformer and explainer, `revisions` the revision of each
    component."""
    component_conditions = [
        build_predictor_condition(predictor),
        *(
            build_component_condition(other_deployments[component], f"{COMPONENT_TITLES[component]}Ready")
            for component in other_deployments
        ),
    ]
    all_conditions = [*component_conditions, _build_ingress_condition(component_conditions, access)]
    ready_condition = compute_ready_condition(all_conditions)
    is_ready_now = ready_condition.status == "True"
    conditions = [*all_conditions, ready_condition, KnativeCondition("Stopped", "False")]
    if revisions:
        conditions += _build_revision_conditions(component_conditions)
    previous = service.get("status") or {}
    model_fields = build_model_status(
        predictor, is_ready_now=is_ready_now, previous=previous.get("modelStatus") or {}, now=now
    )
    runtime = predictor.runtime_choice.runtime
    name = runtime["metadata"]["name"] if runtime else None
    cluster_url = f"http://{build_cluster_local_host(service, find_entry_component(service))}"
    url = predictor.probe_result.url if predictor.probe_result is not None and predictor.probe_result.url else ""
    # a service that is down keeps its URL
    url = url or (previous.get("url") if not is_ready_now else "") or access.url
    return {
        **_build_common_fields(service),
        "conditions": conditions_to_wire(conditions, service, now),
        "url": url if is_ready_now or previous.get("url") else None,
        "address": {"url": cluster_url} if is_ready_now else previous.get("address"),
        "components": _build_component_statuses(
            service, [condition.type for condition in component_conditions if condition.status == "True"], revisions
        ),
        "modelStatus": model_fields,
        "servingRuntimeName": None if predictor.runtime_choice.is_cluster_runtime else name,
        "clusterServingRuntimeName": name if predictor.runtime_choice.is_cluster_runtime else None,
    }


def build_stopped_status(service: Manifest, now: str) -> InferenceServiceStatus:
    reason = KnativeCondition("Ready", "False", "Stopped", append_simulated_note("The InferenceService is stopped"))
    stopped_conditions = [reason.with_type(type_) for type_ in ("IngressReady", "PredictorReady", "Ready")]
    conditions = [*stopped_conditions, KnativeCondition("Stopped")]
    return {
        **_build_common_fields(service),
        "conditions": conditions_to_wire(conditions, service, now),
        **dict.fromkeys(CLEARED_FIELDS),
    }


def _build_common_fields(service: Manifest) -> InferenceServiceStatus:
    return {
        "observedGeneration": service["metadata"].get("generation", 1),
        "deploymentMode": read_deployment_mode(service),
        "annotations": {SIMULATED: SIMULATED_NOTE},  # conditions with status True have no message that could say it
    }


def _build_ingress_condition(component_conditions: list[KnativeCondition], access: ExternalAccess) -> KnativeCondition:
    """kserve: the ingress is created once all components behind it are ready."""
    type_ = "IngressReady"
    for condition in component_conditions:
        if condition.status != "True":
            return KnativeCondition(
                type_, condition.status, INGRESS_NOT_CREATED.format(condition.type.removesuffix("Ready"))
            )
    if access.problem:
        return KnativeCondition(type_, "False", "RouteNotAdmitted", access.problem)
    return (
        KnativeCondition(type_)
        if access.url
        else KnativeCondition(type_, "Unknown", "RoutePending", append_simulated_note("Waiting for the Route"))
    )


def _build_revision_conditions(component_conditions: list[KnativeCondition]) -> list[KnativeCondition]:
    conditions = []
    for condition in component_conditions:
        title = condition.type.removesuffix("Ready")
        conditions += [condition.with_type(f"{title}ConfigurationReady"), condition.with_type(f"{title}RouteReady")]
    worst = compute_ready_condition(component_conditions)
    return [*conditions, worst.with_type("LatestDeploymentReady"), worst.with_type("RoutesReady")]


def _build_component_statuses(
    service: Manifest, ready_types: list[str], revisions: Mapping[str, str]
) -> InferenceServiceStatus:
    previous_components = (service.get("status") or {}).get("components") or {}
    components: InferenceServiceStatus = {}
    for component, title in COMPONENT_TITLES.items():
        if not (service["spec"].get(component)):
            continue
        is_ready, previous = f"{title}Ready" in ready_types, previous_components.get(component) or {}
        url_fields = {"url": f"http://{build_cluster_local_host(service, component)}"} if is_ready else {}
        if not has_revisions(service):
            components[component] = {**_select_fields(previous, "url"), **url_fields}
            continue
        components[component] = _build_revisioned_status(
            revisions.get(component, ""), previous, url_fields, is_ready=is_ready
        )
    return {**dict.fromkeys(previous_components), **components}


def _build_revisioned_status(
    revision: str, previous: InferenceServiceStatus, url_fields: InferenceServiceStatus, *, is_ready: bool
) -> InferenceServiceStatus:
    status = {**previous, **({"latestCreatedRevision": revision} if revision else {})}
    if not is_ready:
        return status
    rolled_out = previous.get("latestRolledoutRevision")
    if rolled_out and rolled_out != revision:
        status["previousRolledoutRevision"] = rolled_out
    traffic = [{"latestRevision": True, "percent": 100, "revisionName": revision}]
    return {
        **status,
        **url_fields,
        "latestReadyRevision": revision,
        "latestRolledoutRevision": revision,
        "traffic": traffic,
        "address": url_fields,
    }


def _select_fields(status: InferenceServiceStatus, *names: str) -> InferenceServiceStatus:
    return {name: status[name] for name in names if name in status}
