"""Traces served models and notebook jobs to the commit they come from.

In: a cluster, KIND/NAME. Out: lineages. Never: writes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from argosy.cli.application_service_connection import open_service
from argosy.cli.cluster_target import TargetOptions
from argosy.errors import ArgosyError, ClusterError, UserError
from argosy.features.models.lineage import VOLUME_SCHEME, Lineage, LineageRun, StorageUriOrigin, read_runs, trace_model
from argosy.features.models.service import ModelService
from argosy.gitops.application_client.app_state_reader import open_reader
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.object_explanation import explain_object, find_object
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import NOTEBOOK_JOB, POD

INFERENCE_SERVICE_RESOURCE: Final = "inferenceservices.serving.kserve.io"
MODEL_KIND_NAMES: Final = ("isvc", "inferenceservice", "inferenceservices", "model")
JOB_KIND_NAMES: Final = ("nvj", "nvjob", "notebookvalidationjob", "notebookvalidationjobs", "notebook")


@dataclass(frozen=True)
class TraceResult:
    """Lineages of the served models; for a notebook job also its runs."""

    lineages: tuple[Lineage, ...]
    runs: tuple[LineageRun, ...] = ()


@dataclass(frozen=True)
class Tracer:
    service: ApplicationService

    @property
    def cluster(self) -> Cluster:
        return self.service.cluster

    async def trace_object(self, kind_and_name: str, namespace: str = "") -> TraceResult:
        """Trace `KIND/NAME`; a name without a kind is a model."""
        kind, _, name = kind_and_name.rpartition("/")
        if kind.lower().partition(".")[0] in JOB_KIND_NAMES:
            return await self._trace_job(name, namespace)
        if kind and kind.lower().partition(".")[0] not in MODEL_KIND_NAMES:
            raise UserError(
                f"cannot trace kind {kind}; use a model (isvc/NAME) or a notebook job (nvj/NAME)", where=kind_and_name
            )
        inference_service = await ModelService(self.cluster, "").get_model(name, namespace)
        return TraceResult((await self._trace_service(inference_service),))

    async def _trace_job(self, name: str, namespace: str) -> TraceResult:
        jobs = [item for item in await self._list_jobs(namespace) if item["metadata"]["name"] == name]
        if len(jobs) != 1:
            advice = "add its namespace: -n NAMESPACE" if jobs else "list them: kubectl get nvj -A"
            raise UserError(f"notebook job {name} {'exists in several namespaces' if jobs else 'not found'}; {advice}")
        job_namespace = str(jobs[0]["metadata"]["namespace"])
        services = await ModelService(self.cluster, "").list_models(job_namespace)
        lineages = [await self._trace_service(item) for item in services]
        fitting = tuple(item for item in lineages if any(run.job == name for run in item.runs))
        return TraceResult(fitting, tuple(read_runs(jobs[0])))

    async def _trace_service(self, inference_service: Manifest) -> Lineage:
        namespace, name = (str(inference_service["metadata"][field]) for field in ("namespace", "name"))
        labels = f"serving.kserve.io/inferenceservice={name}"
        pods = (await self.cluster.list(POD, namespace=namespace, labels=labels)).items
        lineage = trace_model(inference_service, await self._list_jobs(namespace), pods)
        address = (
            None if lineage.source.startswith(VOLUME_SCHEME) else await self._find_storage_uri_origin(inference_service)
        )
        return lineage.with_storage_uri_origin(address) if address else lineage

    async def _find_storage_uri_origin(self, inference_service: Manifest) -> StorageUriOrigin | None:
        """Git origin of the storage URI; None if no Application manages the service or Git cannot be read."""
        metadata, field = inference_service["metadata"], find_storage_uri_path(inference_service)
        if not field:
            return None
        try:
            resource_name = f"{INFERENCE_SERVICE_RESOURCE}/{metadata['name']}"
            app, key = await find_object(self.service, resource_name, str(metadata["namespace"]))
            async with open_reader(self.service) as reader:
                explained_fields = (await explain_object(reader, app, key, field)).fields
        except ArgosyError:
            return None
        cause = explained_fields[0].report.cause if explained_fields else None
        if cause is None or not cause.location:
            return None
        return StorageUriOrigin(
            cause.location, cause.revision, cause.commit_summary, not explained_fields[0].report.differs
        )

    async def _list_jobs(self, namespace: str) -> list[Manifest]:
        try:
            return list((await self.cluster.list(NOTEBOOK_JOB, namespace=namespace)).items)
        except ClusterError as error:
            if error.code == 404:
                return []  # the CRD is not installed
            raise


def find_storage_uri_path(service: Manifest) -> str:
    """Path of the storageUri field; k8s: it is below `model`, or below the framework's name in older manifests."""
    predictor = as_mapping(as_mapping(service.get("spec")).get("predictor"))
    names = [name for name, value in predictor.items() if as_mapping(value).get("storageUri")]
    return f".spec.predictor.{names[0]}.storageUri" if names else ""


@asynccontextmanager
async def open_tracer(options: TargetOptions) -> AsyncIterator[Tracer]:
    async with open_service(options) as service:
        yield Tracer(service)
