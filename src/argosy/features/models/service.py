"""Served models of a cluster: find, query, probe and restart them.

In: a cluster, a name. Out: InferenceServices and responses. Never: picks one of two models with the same name.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Protocol

from argosy.annotations import RESTARTED_AT
from argosy.cli.cluster_target import TargetOptions, open_target
from argosy.errors import ClusterError, TransientError, UserError
from argosy.features.models.inference_payloads import (
    MODELS_PATH,
    InferenceRequest,
    build_inference_request,
    list_readiness_paths,
)
from argosy.gitops.live.inference_service import ServedModel, read_served_model
from argosy.http_client.anonymous_request import PlainResponse, send_plain_request
from argosy.kube.client import Cluster
from argosy.kube.client.user_typed_object_name_lookup import (
    KindNoun,
    build_not_found_error,
    find_unique,
    list_objects,
    read_typed_name,
)
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION, DEPLOYMENT, INFERENCE_SERVICE, POD

MODEL_NOUN: Final = KindNoun(
    INFERENCE_SERVICE, "model", "argosy model list", "install KServe, or try an example with: argosy demo"
)
PROBE_TIMEOUT_SECONDS: Final = 10.0
MAX_CONCURRENT_REQUESTS: Final = 16  # to models
_threads: Final = ThreadPoolExecutor(MAX_CONCURRENT_REQUESTS, thread_name_prefix="model-request")


class SendModelRequest(Protocol):
    def __call__(
        self, url: str, document: Any = None, *, timeout_seconds: float = ..., insecure: bool = ...
    ) -> PlainResponse: ...


@dataclass(frozen=True)
class ModelAnswer:
    inference_request: InferenceRequest
    response: PlainResponse


@dataclass(frozen=True)
class HealthProbeResult:
    path: str
    code: int  # 0: no answer
    seconds: float
    why: str = ""


@dataclass(frozen=True)
class ModelService:
    cluster: Cluster
    target_name: str
    send_request: SendModelRequest = send_plain_request  # the web server passes a guarded function

    async def list_models(self, namespace: str = "") -> list[Manifest]:
        return await list_objects(MODEL_NOUN, self.cluster, namespace)

    async def get_model(self, name_argument: str, namespace: str = "") -> Manifest:
        namespace, name = read_typed_name(name_argument, namespace)
        models = await self.list_models(namespace)
        if model := find_unique(MODEL_NOUN, name, models):
            return model
        if pending_app := await self._find_pending_application(name, namespace):
            raise UserError(
                f"model {name} does not exist yet; Application {pending_app} has it in Git: argosy app sync "
                f"{pending_app}"
            )
        raise build_not_found_error(MODEL_NOUN, namespace, name, models)

    async def _find_pending_application(self, name: str, namespace: str) -> str:
        """Name of the Application that has the model in Git but has not created it; "" if there is none."""
        try:
            apps = (await self.cluster.list(APPLICATION)).items
        except ClusterError:
            return ""  # only a hint: ignore missing permissions and a missing CRD
        for app in apps:
            for resource in (app.get("status") or {}).get("resources") or ():
                is_model = (resource.get("kind"), resource.get("name")) == (INFERENCE_SERVICE.kind, name)
                if is_model and namespace in ("", resource.get("namespace")):
                    return str(app["metadata"]["name"])
        return ""

    async def query_model(self, model: ServedModel, input_text: str, *, seconds: float, insecure: bool) -> ModelAnswer:
        inference_request = build_inference_request(model, input_text)
        if inference_request.needs_name:
            inference_request = inference_request.with_model_name(
                await self._fetch_served_name(model, insecure=insecure)
            )
        url = model.url.rstrip("/") + inference_request.path
        response = await self._send(url, inference_request.body, timeout_seconds=seconds, insecure=insecure)
        return ModelAnswer(inference_request, response)

    async def _fetch_served_name(self, model: ServedModel, *, insecure: bool) -> str:
        """Name under which the model server serves the model; it may differ from the InferenceService's name."""
        url = model.url.rstrip("/") + MODELS_PATH
        response = await self._send(url, timeout_seconds=PROBE_TIMEOUT_SECONDS, insecure=insecure)
        document = response.read_json()
        cards = document.get("data") if isinstance(document, dict) else None
        names = [str(card.get("id")) for card in cards or () if isinstance(card, dict) and card.get("id")]
        return model.name if not names or model.name in names else names[0]

    async def probe_health(self, model: ServedModel, *, insecure: bool) -> list[HealthProbeResult]:
        results = []
        for path in list_readiness_paths(model):
            url = model.url.rstrip("/") + path
            try:
                response = await self._send(url, timeout_seconds=PROBE_TIMEOUT_SECONDS, insecure=insecure)
            except TransientError as error:
                results.append(HealthProbeResult(path, 0, 0.0, str(error)))
            else:
                results.append(HealthProbeResult(path, response.code, response.seconds))
        return results

    async def _send(self, url: str, document: Any = None, *, timeout_seconds: float, insecure: bool) -> PlainResponse:
        """Send a request without the event loop's default thread pool: a model may be slow."""
        send = partial(self.send_request, url, document, timeout_seconds=timeout_seconds, insecure=insecure)
        return await asyncio.get_running_loop().run_in_executor(_threads, send)

    async def restart_model(self, service: Manifest) -> str:
        """Restart the predictor as `kubectl rollout restart` does; with Knative revisions, delete its Pods instead."""
        model = read_served_model(service)
        if model.has_revisions:
            return await self._replace_pods(model)
        key = ResourceKey(*DEPLOYMENT, model.namespace, f"{model.name}-predictor")
        if await self.cluster.get(key) is None:
            raise UserError(f"{model.name} has no Deployment {key.name}; see: argosy model get {model.name}")
        timestamp = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        template = {"metadata": {"annotations": {RESTARTED_AT: timestamp}}}
        await self.cluster.patch(key, {"spec": {"template": template}})
        return f"deployment {key.name} in {key.namespace} restarted"

    async def _replace_pods(self, model: ServedModel) -> str:
        labels = f"serving.kserve.io/inferenceservice={model.name},component=predictor"
        pods = (await self.cluster.list(POD, namespace=model.namespace, labels=labels)).items
        for pod in pods:
            await self.cluster.delete(key_of(pod), uid=pod["metadata"].get("uid"))
        return f"deleted {len(pods)} Pods of {model.name} in {model.namespace}; new ones are starting"


@asynccontextmanager
async def open_model_service(options: TargetOptions) -> AsyncIterator[ModelService]:
    async with open_target(options) as (cluster, target):
        yield ModelService(cluster, target.display_name)
