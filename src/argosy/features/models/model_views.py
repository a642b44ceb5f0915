"""View data of served models: rows of the list, and the details of one model.

In: InferenceServices, and a cache with their Pods, Deployments and jobs. Out: ModelRow, ModelView. Never: network.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.annotations import SIMULATED
from argosy.features.models.inference_payloads import InferenceRequest, build_inference_request, render_curl_command
from argosy.features.models.lineage import Lineage, LineageRun, trace_model
from argosy.features.models.readiness import ReadinessStep, build_readiness_steps
from argosy.gitops.live.inference_service import ServedModel, read_served_model
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import DEPLOYMENT, NOTEBOOK_JOB, POD

SERVICE_LABEL: Final = "serving.kserve.io/inferenceservice"
PROTOCOL_LABELS: Final = {"v1": "V1 (instances)", "v2": "V2 (tensors)", "chat": "OpenAI chat"}


@dataclass(frozen=True)
class TrafficShare:
    revision: str
    percent: int
    is_latest: bool = False

    @property
    def name(self) -> str:
        return self.revision


@dataclass(frozen=True)
class ModelRow:
    model: ServedModel
    shares: tuple[TrafficShare, ...]
    ready_pods: int
    wanted_pods: int
    gpus: str
    trained: LineageRun | None  # the run that wrote the model
    published: LineageRun | None  # the run that wrote it to the served volume; the same run if nothing copies it
    is_current: bool  # every Pod has loaded the output of the last run
    since: str
    is_simulated: bool

    @property
    def id(self) -> str:
        return f"m-{self.model.namespace}-{self.model.name}"

    @property
    def path(self) -> str:
        return f"/models/{self.model.namespace}/{self.model.name}"

    @property
    def health(self) -> str:
        """Health status in Argo CD's words."""
        return {"True": "Healthy", "False": "Degraded"}.get(self.model.ready, "Progressing")

    @property
    def is_stale(self) -> bool:
        return self.published is not None and not self.is_current


@dataclass(frozen=True)
class ModelView:
    row: ModelRow
    links: tuple[ReadinessStep, ...]
    pods: tuple[tuple[str, str, str], ...]  # name, phase, started
    lineage: Lineage
    protocol: str
    example: str
    question: InferenceRequest
    curl: str
    python: str


def _list_pods_and_jobs(service: Manifest, cache: InformerCache) -> tuple[list[Manifest], list[Manifest]]:
    namespace, name = str(service["metadata"]["namespace"]), str(service["metadata"]["name"])
    pods = cache.list(POD, namespace=namespace, labels={SERVICE_LABEL: name})
    return pods, cache.list(NOTEBOOK_JOB, namespace=namespace)


def build_model_row(service: Manifest, cache: InformerCache) -> ModelRow:
    pods, jobs = _list_pods_and_jobs(service, cache)
    return _build_row(service, cache, pods, trace_model(service, jobs, pods))


def _build_row(service: Manifest, cache: InformerCache, pods: Sequence[Manifest], lineage: Lineage) -> ModelRow:
    model = read_served_model(service)
    ready = sum(_is_ready(pod) for pod in pods)
    predictor = as_mapping(as_mapping(service.get("spec")).get("predictor"))
    resources = as_mapping(as_mapping(as_mapping(predictor.get("model")).get("resources")).get("limits"))
    gpus = next((str(value) for name, value in resources.items() if str(name).endswith("/gpu")), "")
    annotations = as_mapping(as_mapping(service.get("status")).get("annotations"))
    return ModelRow(
        model,
        _read_traffic_shares(service, model),
        ready,
        _count_desired_pods(cache, model, len(pods)),
        gpus,
        lineage.trained,
        lineage.runs[-1] if lineage.runs else None,
        lineage.is_current,
        _read_ready_since(service),
        SIMULATED in annotations,
    )


def build_model_view(service: Manifest, cache: InformerCache) -> ModelView:
    pods, jobs = _list_pods_and_jobs(service, cache)
    lineage = trace_model(service, jobs, pods)
    row = _build_row(service, cache, pods, lineage)
    input_text = example_input(row.model)
    question = build_inference_request(row.model, input_text)
    if question.needs_name:
        question = question.with_model_name(row.model.name)
    address = row.model.url.rstrip("/")
    return ModelView(
        row,
        build_readiness_steps(service, pods),
        tuple(sorted(_summarize_pod(pod) for pod in pods)),
        lineage,
        protocol_label(row.model),
        input_text,
        question,
        render_curl_command(address, question),
        render_python_request(address + question.path, question.body),
    )


def protocol_label(model: ServedModel) -> str:
    protocol_key = "chat" if model.is_text else "v2" if model.protocol.endswith("v2") else "v1"
    return PROTOCOL_LABELS[protocol_key]


def example_input(model: ServedModel) -> str:
    """Example input that works without changes."""
    return "Hello" if model.is_text else "[[1, 2]]"


def render_python_request(url: str, document: Any) -> str:
    """Render the request as a Python script that uses only the standard library."""
    return "\n".join(
        (
            "import json, urllib.request",
            f"question = {json.dumps(document, ensure_ascii=True, indent=None)}"
            if _is_python_literal(document)
            else f"question = json.loads({json.dumps(document)!r})",
            f"request = urllib.request.Request({url!r}, json.dumps(question).encode(),",
            '                                 {"Content-Type": "application/json"})',
            "print(json.load(urllib.request.urlopen(request, timeout=60)))",
        )
    )


def _is_python_literal(document: Any) -> bool:
    """True if the JSON text is also a valid Python literal."""
    text = json.dumps(document)
    return not any(word in text for word in ("true", "false", "null"))


def _read_traffic_shares(service: Manifest, model: ServedModel) -> tuple[TrafficShare, ...]:
    status = as_mapping(as_mapping(as_mapping(service.get("status")).get("components")).get("predictor"))
    shares = []
    for entry in status.get("traffic") or ():
        fields = as_mapping(entry)
        percent = fields.get("percent")
        if isinstance(percent, int) and percent > 0:
            shares.append(
                TrafficShare(str(fields.get("revisionName") or ""), percent, bool(fields.get("latestRevision")))
            )
    if not shares and model.is_ready:
        return (TrafficShare("one version", 100, True),)
    return tuple(sorted(shares, key=lambda entry: not entry.is_latest))


def _count_desired_pods(cache: InformerCache, model: ServedModel, pod_count: int) -> int:
    deployment = cache.get(ResourceKey(*DEPLOYMENT, model.namespace, f"{model.name}-predictor"))
    replicas = as_mapping((deployment or {}).get("spec")).get("replicas")
    return replicas if isinstance(replicas, int) else pod_count


def _is_ready(pod: Manifest) -> bool:
    conditions = as_mapping(pod.get("status")).get("conditions") or ()
    return any((condition.get("type"), condition.get("status")) == ("Ready", "True") for condition in conditions)


def _read_ready_since(service: Manifest) -> str:
    """Time at which the service became ready; empty if it is not ready."""
    for condition in as_mapping(service.get("status")).get("conditions") or ():
        if (condition.get("type"), condition.get("status")) == ("Ready", "True"):
            return str(condition.get("lastTransitionTime") or "")
    return ""


def _summarize_pod(pod: Manifest) -> tuple[str, str, str]:
    status = as_mapping(pod.get("status"))
    phase = "Ready" if _is_ready(pod) else str(status.get("phase") or "Pending")
    return str(pod["metadata"]["name"]), phase, str(status.get("startTime") or "")
