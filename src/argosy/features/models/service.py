"""Served models of a cluster: find, query, probe and restart them.

In: a cluster, a name. Out: InferenceServices and responses. Never: picks one of two models with the same name.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from argosy.cli.target import TargetOptions, open_target
from argosy.errors import ClusterError, TransientError, UserError
from argosy.features.models.requests import LISTED, Question, health_paths, question_for
from argosy.gitops.live.inference_service import INFERENCE_SERVICE, ServedModel, read_model
from argosy.http_client.plain_request import Answered, ask
from argosy.kube.client import Cluster
from argosy.kube.client.object_search import Noun, all_of, nobody, the_one, typed_name
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

RESTARTED: Final = "kubectl.kubernetes.io/restartedAt"
DEPLOYMENT, POD = GroupKind("apps", "Deployment"), GroupKind("", "Pod")
APPLICATION: Final = GroupKind("argoproj.io", "Application")
NOUN: Final = Noun(
    INFERENCE_SERVICE, "model", "argosy model list", "install KServe, or try an example with: argosy demo"
)
HEALTH_SECONDS: Final = 10.0
Asker = Callable[..., Answered]


@dataclass(frozen=True)
class Tried:
    question: Question
    answered: Answered


@dataclass(frozen=True)
class Probed:
    path: str
    code: int  # 0: no answer
    seconds: float
    why: str = ""


@dataclass(frozen=True)
class ModelDesk:
    cluster: Cluster
    where: str
    asker: Asker = ask  # the web server passes a guarded function

    async def all(self, namespace: str = "") -> list[Manifest]:
        return await all_of(NOUN, self.cluster, namespace)

    async def find(self, typed: str, namespace: str = "") -> Manifest:
        namespace, name = typed_name(typed, namespace)
        among = await self.all(namespace)
        if found := the_one(NOUN, name, among):
            return found
        if waits := await self._to_come(name, namespace):
            raise UserError(
                f"model {name} does not exist yet; Application {waits} has it in Git: argosy app sync {waits}"
            )
        raise nobody(NOUN, namespace, name, among)

    async def _to_come(self, name: str, namespace: str) -> str:
        """Name of the Application that has the model in Git but has not created it; "" if there is none."""
        try:
            apps = (await self.cluster.list(APPLICATION)).items
        except ClusterError:
            return ""  # only a hint: ignore missing permissions and a missing CRD
        for app in apps:
            for each in (app.get("status") or {}).get("resources") or ():
                is_it = (each.get("kind"), each.get("name")) == (INFERENCE_SERVICE.kind, name)
                if is_it and namespace in ("", each.get("namespace")):
                    return str(app["metadata"]["name"])
        return ""

    async def ask(self, model: ServedModel, typed: str, *, seconds: float, insecure: bool) -> Tried:
        question = question_for(model, typed)
        if question.needs_name:
            question = question.named(await self._served_name(model, insecure=insecure))
        url = model.url.rstrip("/") + question.path
        answered = await asyncio.to_thread(self.asker, url, question.document, seconds=seconds, insecure=insecure)
        return Tried(question, answered)

    async def _served_name(self, model: ServedModel, *, insecure: bool) -> str:
        """Name under which the model server serves the model; it may differ from the InferenceService's name."""
        url = model.url.rstrip("/") + LISTED
        found = (await asyncio.to_thread(self.asker, url, seconds=HEALTH_SECONDS, insecure=insecure)).document()
        cards = found.get("data") if isinstance(found, dict) else None
        names = [str(each.get("id")) for each in cards or () if isinstance(each, dict) and each.get("id")]
        return model.name if not names or model.name in names else names[0]

    async def probe(self, model: ServedModel, *, insecure: bool) -> list[Probed]:
        found = []
        for path in health_paths(model):
            url = model.url.rstrip("/") + path
            try:
                got = await asyncio.to_thread(self.asker, url, seconds=HEALTH_SECONDS, insecure=insecure)
            except TransientError as error:
                found.append(Probed(path, 0, 0.0, str(error)))
            else:
                found.append(Probed(path, got.code, got.seconds))
        return found

    async def restart(self, service: Manifest) -> str:
        """Restart the predictor as `kubectl rollout restart` does; with Knative revisions, delete its Pods instead."""
        model = read_model(service)
        if model.has_revisions:
            return await self._replace_pods(model)
        key = ResourceKey(*DEPLOYMENT, model.namespace, f"{model.name}-predictor")
        if await self.cluster.get(key) is None:
            raise UserError(f"{model.name} has no Deployment {key.name}; see: argosy model get {model.name}")
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        template = {"metadata": {"annotations": {RESTARTED: now}}}
        await self.cluster.patch(key, {"spec": {"template": template}})
        return f"deployment {key.name} in {key.namespace} restarted"

    async def _replace_pods(self, model: ServedModel) -> str:
        labels = f"serving.kserve.io/inferenceservice={model.name},component=predictor"
        pods = (await self.cluster.list(POD, namespace=model.namespace, labels=labels)).items
        for pod in pods:
            await self.cluster.delete(key_of(pod), uid=pod["metadata"].get("uid"))
        return f"deleted {len(pods)} Pods of {model.name} in {model.namespace}; new ones are starting"


@asynccontextmanager
async def open_models(options: TargetOptions) -> AsyncIterator[ModelDesk]:
    async with open_target(options) as (cluster, target):
        yield ModelDesk(cluster, target.where)
