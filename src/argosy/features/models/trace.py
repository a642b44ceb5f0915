"""Traces served models and notebook jobs to the commit they come from.

In: a cluster, KIND/NAME. Out: lineages. Never: writes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from argosy.cli.connection import open_desk
from argosy.cli.target import TargetOptions
from argosy.errors import ArgosyError, ClusterError, UserError
from argosy.features.models.lineage import VOLUME, Address, Lineage, Run, runs_of, trace
from argosy.features.models.service import ModelDesk
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.object_explanation import explain, find
from argosy.gitops.application_client.reader import open_reader
from argosy.gitops.status.wire_format import mapping
from argosy.kube.client import Cluster
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest

JOB: Final = GroupKind("mlops.mlops.dev", "NotebookValidationJob")
MODEL: Final = "inferenceservices.serving.kserve.io"
POD: Final = GroupKind("", "Pod")
MODELS: Final = ("isvc", "inferenceservice", "inferenceservices", "model")
JOBS: Final = ("nvj", "nvjob", "notebookvalidationjob", "notebookvalidationjobs", "notebook")


@dataclass(frozen=True)
class Traced:
    """Lineages of the served models; for a notebook job also its runs."""

    lineages: tuple[Lineage, ...]
    runs: tuple[Run, ...] = ()


@dataclass(frozen=True)
class Tracer:
    desk: Desk

    @property
    def cluster(self) -> Cluster:
        return self.desk.cluster

    async def find(self, what: str, namespace: str = "") -> Traced:
        """Trace `KIND/NAME`; a name without a kind is a model."""
        kind, _, name = what.rpartition("/")
        if kind.lower().partition(".")[0] in JOBS:
            return await self._of_job(name, namespace)
        if kind and kind.lower().partition(".")[0] not in MODELS:
            raise UserError(
                f"cannot trace kind {kind}; use a model (isvc/NAME) or a notebook job (nvj/NAME)", where=what
            )
        service = await ModelDesk(self.cluster, "").find(name, namespace)
        return Traced((await self._lineage(service),))

    async def _of_job(self, name: str, namespace: str) -> Traced:
        found = [each for each in await self._jobs(namespace) if each["metadata"]["name"] == name]
        if len(found) != 1:
            told = "add its namespace: -n NAMESPACE" if found else "list them: kubectl get nvj -A"
            raise UserError(f"notebook job {name} {'exists in several namespaces' if found else 'not found'}; {told}")
        place = str(found[0]["metadata"]["namespace"])
        services = await ModelDesk(self.cluster, "").all(place)
        lineages = [await self._lineage(each) for each in services]
        fitting = tuple(each for each in lineages if any(run.job == name for run in each.runs))
        return Traced(fitting, tuple(runs_of(found[0])))

    async def _lineage(self, service: Manifest) -> Lineage:
        namespace, name = (str(service["metadata"][field]) for field in ("namespace", "name"))
        labels = f"serving.kserve.io/inferenceservice={name}"
        pods = (await self.cluster.list(POD, namespace=namespace, labels=labels)).items
        found = trace(service, await self._jobs(namespace), pods)
        address = None if found.source.startswith(VOLUME) else await self._address(service)
        return found.written(address) if address else found

    async def _address(self, service: Manifest) -> Address | None:
        """Git origin of the storage URI; None if no Application manages the service or Git cannot be read."""
        metadata, field = service["metadata"], address_field(service)
        if not field:
            return None
        try:
            named = f"{MODEL}/{metadata['name']}"
            app, key = await find(self.desk, named, str(metadata["namespace"]))
            async with open_reader(self.desk) as reader:
                told = (await explain(reader, app, key, field)).fields
        except ArgosyError:
            return None
        cause = told[0].story.cause if told else None
        if cause is None or not cause.place:
            return None
        return Address(cause.place, cause.revision, cause.commit, not told[0].story.differs)

    async def _jobs(self, namespace: str) -> list[Manifest]:
        try:
            return list((await self.cluster.list(JOB, namespace=namespace)).items)
        except ClusterError as error:
            if error.code == 404:
                return []  # the CRD is not installed
            raise


def address_field(service: Manifest) -> str:
    """Path of the storageUri field; k8s: it is below `model`, or below the framework's name in older manifests."""
    predictor = mapping(mapping(service.get("spec")).get("predictor"))
    names = [name for name, each in predictor.items() if mapping(each).get("storageUri")]
    return f".spec.predictor.{names[0]}.storageUri" if names else ""


@asynccontextmanager
async def open_tracer(options: TargetOptions) -> AsyncIterator[Tracer]:
    async with open_desk(options) as desk:
        yield Tracer(desk)
