"""View data of served models: rows of the list, and the details of one model.

In: InferenceServices, and a cache with their Pods, Deployments and jobs. Out: ModelRow, ModelView. Never: network.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.features.models.lineage import Lineage, Run, trace
from argosy.features.models.readiness import Link, chain
from argosy.features.models.requests import Question, curl, question_for
from argosy.gitops.live.inference_service import ServedModel, read_model
from argosy.gitops.status.wire_format import mapping
from argosy.kube.controller import Cache
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

SERVICE_LABEL: Final = "serving.kserve.io/inferenceservice"
JOB: Final = GroupKind("mlops.mlops.dev", "NotebookValidationJob")
POD, DEPLOYMENT = GroupKind("", "Pod"), GroupKind("apps", "Deployment")
SIMULATED: Final = "sandbox.argosy.dev/simulated"
PROTOCOLS: Final = {"v1": "V1 (instances)", "v2": "V2 (tensors)", "chat": "OpenAI chat"}


@dataclass(frozen=True)
class Share:
    revision: str
    percent: int
    is_latest: bool = False

    @property
    def name(self) -> str:
        return self.revision


@dataclass(frozen=True)
class ModelRow:
    model: ServedModel
    shares: tuple[Share, ...]
    ready_pods: int
    wanted_pods: int
    gpus: str
    trained: Run | None  # the run that wrote the model
    published: Run | None  # the run that wrote it to the served volume; the same run if nothing copies it
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
    links: tuple[Link, ...]
    pods: tuple[tuple[str, str, str], ...]  # name, phase, started
    lineage: Lineage
    protocol: str
    example: str
    question: Question
    curl: str
    python: str


def _beside(service: Manifest, cache: Cache) -> tuple[list[Manifest], list[Manifest]]:
    namespace, name = str(service["metadata"]["namespace"]), str(service["metadata"]["name"])
    pods = cache.list(POD, namespace=namespace, labels={SERVICE_LABEL: name})
    return pods, cache.list(JOB, namespace=namespace)


def row(service: Manifest, cache: Cache) -> ModelRow:
    pods, jobs = _beside(service, cache)
    return _row(service, cache, pods, trace(service, jobs, pods))


def _row(service: Manifest, cache: Cache, pods: Sequence[Manifest], lineage: Lineage) -> ModelRow:
    model = read_model(service)
    ready = sum(_is_ready(pod) for pod in pods)
    predictor = mapping(mapping(service.get("spec")).get("predictor"))
    resources = mapping(mapping(mapping(predictor.get("model")).get("resources")).get("limits"))
    gpus = next((str(value) for name, value in resources.items() if str(name).endswith("/gpu")), "")
    marked = mapping(mapping(service.get("status")).get("annotations"))
    return ModelRow(
        model,
        _shares(service, model),
        ready,
        _wanted(cache, model, len(pods)),
        gpus,
        lineage.trained,
        lineage.runs[-1] if lineage.runs else None,
        lineage.is_current,
        _since(service),
        SIMULATED in marked,
    )


def view(service: Manifest, cache: Cache) -> ModelView:
    pods, jobs = _beside(service, cache)
    lineage = trace(service, jobs, pods)
    found = _row(service, cache, pods, lineage)
    typed = example(found.model)
    question = question_for(found.model, typed)
    if question.needs_name:
        question = question.named(found.model.name)
    address = found.model.url.rstrip("/")
    return ModelView(
        found,
        chain(service, pods),
        tuple(sorted(_pod(each) for each in pods)),
        lineage,
        protocol(found.model),
        typed,
        question,
        curl(address, question),
        python(address + question.path, question.document),
    )


def protocol(model: ServedModel) -> str:
    word = "chat" if model.is_text else "v2" if model.protocol.endswith("v2") else "v1"
    return PROTOCOLS[word]


def example(model: ServedModel) -> str:
    """Example input that works without changes."""
    return "Hello" if model.is_text else "[[1, 2]]"


def python(url: str, document: Any) -> str:
    """Render the request as a Python script that uses only the standard library."""
    return "\n".join(
        (
            "import json, urllib.request",
            f"question = {json.dumps(document, ensure_ascii=True, indent=None)}"
            if _is_plain(document)
            else f"question = json.loads({json.dumps(document)!r})",
            f"request = urllib.request.Request({url!r}, json.dumps(question).encode(),",
            '                                 {"Content-Type": "application/json"})',
            "print(json.load(urllib.request.urlopen(request, timeout=60)))",
        )
    )


def _is_plain(document: Any) -> bool:
    """True if the JSON text is also a valid Python literal."""
    text = json.dumps(document)
    return not any(word in text for word in ("true", "false", "null"))


def _shares(service: Manifest, model: ServedModel) -> tuple[Share, ...]:
    status = mapping(mapping(mapping(service.get("status")).get("components")).get("predictor"))
    found = []
    for each in status.get("traffic") or ():
        share = mapping(each)
        percent = share.get("percent")
        if isinstance(percent, int) and percent > 0:
            found.append(Share(str(share.get("revisionName") or ""), percent, bool(share.get("latestRevision"))))
    if not found and model.is_ready:
        return (Share("one version", 100, True),)
    return tuple(sorted(found, key=lambda each: not each.is_latest))


def _wanted(cache: Cache, model: ServedModel, pods: int) -> int:
    deployment = cache.get(ResourceKey(*DEPLOYMENT, model.namespace, f"{model.name}-predictor"))
    wanted = mapping((deployment or {}).get("spec")).get("replicas")
    return wanted if isinstance(wanted, int) else pods


def _is_ready(pod: Manifest) -> bool:
    conditions = mapping(pod.get("status")).get("conditions") or ()
    return any((each.get("type"), each.get("status")) == ("Ready", "True") for each in conditions)


def _since(service: Manifest) -> str:
    """Time at which the service became ready; empty if it is not ready."""
    for each in mapping(service.get("status")).get("conditions") or ():
        if (each.get("type"), each.get("status")) == ("Ready", "True"):
            return str(each.get("lastTransitionTime") or "")
    return ""


def _pod(pod: Manifest) -> tuple[str, str, str]:
    status = mapping(pod.get("status"))
    phase = "Ready" if _is_ready(pod) else str(status.get("phase") or "Pending")
    return str(pod["metadata"]["name"]), phase, str(status.get("startTime") or "")
