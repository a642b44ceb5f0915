"""From a served model, or from a notebook job, to the commit that it comes from.

In: which cluster, KIND/NAME. Out: lineages. Never: writes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from argosy.app.models import ModelDesk
from argosy.app.target import TargetOptions, open_target
from argosy.cluster import Cluster
from argosy.model.errors import ClusterError, UserError
from argosy.model.manifest import Manifest
from argosy.model.names import GroupKind
from argosy.models.lineage import Lineage, Run, runs_of, trace

JOB: Final = GroupKind("mlops.mlops.dev", "NotebookValidationJob")
POD: Final = GroupKind("", "Pod")
MODELS: Final = ("isvc", "inferenceservice", "inferenceservices", "model")
JOBS: Final = ("nvj", "nvjob", "notebookvalidationjob", "notebookvalidationjobs", "notebook")


@dataclass(frozen=True)
class Traced:
    """What is served, and where it comes from; for a job also its own runs."""

    lineages: tuple[Lineage, ...]
    runs: tuple[Run, ...] = ()


@dataclass(frozen=True)
class Tracer:
    cluster: Cluster

    async def find(self, what: str, namespace: str = "") -> Traced:
        """`KIND/NAME`; a name alone is a model's."""
        kind, _, name = what.rpartition("/")
        if kind.lower().partition(".")[0] in JOBS:
            return await self._of_job(name, namespace)
        if kind and kind.lower().partition(".")[0] not in MODELS:
            raise UserError(f"{kind} has no trace; choose a model (isvc/NAME) or a notebook job (nvj/NAME)", where=what)
        service = await ModelDesk(self.cluster, "").find(name, namespace)
        return Traced((await self._lineage(service),))

    async def _of_job(self, name: str, namespace: str) -> Traced:
        found = [each for each in await self._jobs(namespace) if each["metadata"]["name"] == name]
        if len(found) != 1:
            told = "say in which namespace: -n NAMESPACE" if found else "see which there are: kubectl get nvj -A"
            raise UserError(f"there {'are several' if found else 'is no'} notebook job {name}; {told}")
        place = str(found[0]["metadata"]["namespace"])
        services = await ModelDesk(self.cluster, "").all(place)
        lineages = [await self._lineage(each) for each in services]
        fitting = tuple(each for each in lineages if any(run.job == name for run in each.runs))
        return Traced(fitting, tuple(runs_of(found[0])))

    async def _lineage(self, service: Manifest) -> Lineage:
        namespace, name = (str(service["metadata"][field]) for field in ("namespace", "name"))
        labels = f"serving.kserve.io/inferenceservice={name}"
        pods = (await self.cluster.list(POD, namespace=namespace, labels=labels)).items
        return trace(service, await self._jobs(namespace), pods)

    async def _jobs(self, namespace: str) -> list[Manifest]:
        try:
            return list((await self.cluster.list(JOB, namespace=namespace)).items)
        except ClusterError as error:
            if error.code == 404:
                return []  # nobody here has notebooks
            raise


@asynccontextmanager
async def open_tracer(options: TargetOptions) -> AsyncIterator[Tracer]:
    async with open_target(options) as (cluster, _):
        yield Tracer(cluster)
