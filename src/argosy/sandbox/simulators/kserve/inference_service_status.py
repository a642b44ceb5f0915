"""Builds the complete status of an InferenceService.

In: the InferenceService, its components, the time. Out: its status. Never: reads a clock; writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from argosy.annotations import SIMULATED
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import BY, told
from argosy.sandbox.simulators.kserve.component_states import Found, component_ready, model_status, predictor_ready
from argosy.sandbox.simulators.kserve.conditions import Condition, ready, written
from argosy.sandbox.simulators.kserve.constants import has_revisions, inner_host, mode_of
from argosy.sandbox.simulators.kserve.parts import outermost

NOT_MADE: Final = "{} ingress not created"
WORDS: Final = {"predictor": "Predictor", "transformer": "Transformer", "explainer": "Explainer"}
GONE: Final = ("url", "address", "components", "modelStatus", "servingRuntimeName", "clusterServingRuntimeName")

Status = dict[str, Any]


class Door(NamedTuple):
    """How the service is reached from outside the cluster."""

    url: str  # empty: not available yet
    problem: str = ""  # why it cannot become available


def status_of(
    service: Manifest,
    found: Found,
    others: Mapping[str, Manifest | None],
    revisions: Mapping[str, str],
    door: Door,
    now: str,
) -> Status:
    """Build the status. `other_deployments` are those of transformer and explainer, `revisions` the revision of each
    component."""
    parts = [predictor_ready(found), *(component_ready(others[each], f"{WORDS[each]}Ready") for each in others)]
    ways = [*parts, _ingress(parts, door)]
    whole = ready(ways)
    is_ready_now = whole.status == "True"
    conditions = [*ways, whole, Condition("Stopped", "False")]
    if revisions:
        conditions += _of_revisions(parts)
    known = service.get("status") or {}
    model = model_status(found, is_ready_now=is_ready_now, before=known.get("modelStatus") or {}, now=now)
    runtime = found.chosen.runtime
    name = runtime["metadata"]["name"] if runtime else None
    inside = f"http://{inner_host(service, outermost(service))}"
    url = found.answer.url if found.answer is not None and found.answer.url else ""
    # a service that is down keeps its URL
    url = url or (known.get("url") if not is_ready_now else "") or door.url
    return {
        **_frame(service),
        "conditions": written(conditions, service, now),
        "url": url if is_ready_now or known.get("url") else None,
        "address": {"url": inside} if is_ready_now else known.get("address"),
        "components": _components(service, [part.type for part in parts if part.status == "True"], revisions),
        "modelStatus": model,
        "servingRuntimeName": None if found.chosen.is_of_cluster else name,
        "clusterServingRuntimeName": name if found.chosen.is_of_cluster else None,
    }


def stopped(service: Manifest, now: str) -> Status:
    reason = Condition("Ready", "False", "Stopped", told("The InferenceService is stopped"))
    parts = [reason.named(type_) for type_ in ("IngressReady", "PredictorReady", "Ready")]
    conditions = [*parts, Condition("Stopped")]
    return {**_frame(service), "conditions": written(conditions, service, now), **dict.fromkeys(GONE)}


def _frame(service: Manifest) -> Status:
    return {
        "observedGeneration": service["metadata"].get("generation", 1),
        "deploymentMode": mode_of(service),
        "annotations": {SIMULATED: BY},  # conditions with status True have no message that could say it
    }


def _ingress(parts: list[Condition], door: Door) -> Condition:
    """kserve: the ingress is created once all components behind it are ready."""
    type_ = "IngressReady"
    for part in parts:
        if part.status != "True":
            return Condition(type_, part.status, NOT_MADE.format(part.type.removesuffix("Ready")))
    if door.problem:
        return Condition(type_, "False", "RouteNotAdmitted", door.problem)
    return Condition(type_) if door.url else Condition(type_, "Unknown", "RoutePending", told("Waiting for the Route"))


def _of_revisions(parts: list[Condition]) -> list[Condition]:
    found = []
    for part in parts:
        word = part.type.removesuffix("Ready")
        found += [part.named(f"{word}ConfigurationReady"), part.named(f"{word}RouteReady")]
    worst = ready(parts)
    return [*found, worst.named("LatestDeploymentReady"), worst.named("RoutesReady")]


def _components(service: Manifest, up: list[str], revisions: Mapping[str, str]) -> Status:
    known = (service.get("status") or {}).get("components") or {}
    found: Status = {}
    for component, word in WORDS.items():
        if not (service["spec"].get(component)):
            continue
        is_up, before = f"{word}Ready" in up, known.get(component) or {}
        reached = {"url": f"http://{inner_host(service, component)}"} if is_up else {}
        if not has_revisions(service):
            found[component] = {**_only(before, "url"), **reached}
            continue
        found[component] = _revisioned(revisions.get(component, ""), before, reached, is_up=is_up)
    return {**dict.fromkeys(known), **found}


def _revisioned(revision: str, before: Status, reached: Status, *, is_up: bool) -> Status:
    status = {**before, **({"latestCreatedRevision": revision} if revision else {})}
    if not is_up:
        return status
    rolled_out = before.get("latestRolledoutRevision")
    if rolled_out and rolled_out != revision:
        status["previousRolledoutRevision"] = rolled_out
    traffic = [{"latestRevision": True, "percent": 100, "revisionName": revision}]
    return {
        **status, **reached, "latestReadyRevision": revision, "latestRolledoutRevision": revision, "traffic": traffic,
        "address": reached,
    }  # fmt: skip


def _only(status: Status, *names: str) -> Status:
    return {name: status[name] for name in names if name in status}
