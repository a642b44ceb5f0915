"""Lists live objects that are related to Applications: workloads, volumes, Events, repository Secrets and models.

In: OptionalReads, Applications. Out: manifests by kind, RepositorySecret, LiveModel. Never: writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import Final

from argosy.annotations import SECRET_TYPE
from argosy.errors import ArgosyError
from argosy.features.doctor.forbidden_tolerant_reads import OptionalReads
from argosy.features.models.lineage import trace_model
from argosy.features.models.service import ModelService
from argosy.gitops.analysis.live_view import HealthResponse, LiveApplication, LiveModel, RepositorySecret
from argosy.gitops.analysis.rules.live.pvc_image_model_failures import is_model_ready
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.live.inference_service import read_served_model
from argosy.gitops.source.credentials import read_credentials
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import (
    BUILD,
    EVENT,
    INFERENCE_SERVICE,
    JOB,
    NOTEBOOK_JOB,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    RESOURCE_QUOTA,
    SECRET,
    STORAGE_CLASS,
)

PROBE_SECONDS: Final = 2.0
OWNER_KINDS: Final = tuple(GroupKind("apps", kind) for kind in ("ReplicaSet", "Deployment", "StatefulSet"))
READ_KINDS: Final = (
    POD,
    PERSISTENT_VOLUME_CLAIM,
    EVENT,
    RESOURCE_QUOTA,
    BUILD,
    NOTEBOOK_JOB,
    INFERENCE_SERVICE,
    JOB,
    *OWNER_KINDS,
)


async def list_objects(
    reads: OptionalReads, apps: Iterable[LiveApplication], names: Collection[str]
) -> dict[GroupKind, list[Manifest]]:
    selected = [app for app in apps if app.name in names]
    namespaces = {app.app.destination.namespace for app in selected}
    namespaces |= {row.key.namespace for app in selected for row in app.resources}
    objects_by_kind, classes, volumes = await asyncio.gather(
        reads.list_kinds(READ_KINDS, sorted(namespaces - {""})),
        reads.list_kind(STORAGE_CLASS),
        reads.list_kind(PERSISTENT_VOLUME),
    )
    return {**objects_by_kind, STORAGE_CLASS: classes, PERSISTENT_VOLUME: volumes}


def add_objects_of_unlisted_kinds(objects: dict[GroupKind, list[Manifest]], more: Iterable[Manifest]) -> None:
    for manifest in more:
        key = key_of(manifest)
        related = objects.setdefault(key.group_kind, [])
        if key.group_kind not in READ_KINDS:
            related.append(manifest)


async def list_repository_secrets(reads: OptionalReads, control: str) -> tuple[RepositorySecret, ...] | None:
    secrets = await reads.list_kind(SECRET, control, SECRET_TYPE)
    if SECRET in reads.unread:
        return None
    return tuple(
        RepositorySecret(credential.secret, str(credential.url), credential.is_template, credential.fault)
        for credential in read_credentials(secrets)
    )


async def list_models(
    app_service: ApplicationService, objects: dict[GroupKind, list[Manifest]], *, probes_models: bool
) -> tuple[LiveModel, ...]:
    async def build_model_view(service: Manifest) -> LiveModel:
        answers = await _probe_model(app_service, service) if probes_models and is_model_ready(service) else ()
        return LiveModel(service, answers, _describe_outdated_pods(service, objects))

    return tuple(await asyncio.gather(*map(build_model_view, objects.get(INFERENCE_SERVICE, ()))))


async def _probe_model(app_service: ApplicationService, service: Manifest) -> tuple[HealthResponse, ...]:
    """Return nothing if the model is not reachable from here, because that proves nothing about the model."""
    model = read_served_model(service)
    if not model.url:
        return ()
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            probe_results = await ModelService(app_service.cluster, app_service.cluster_name).probe_health(
                model, insecure=True
            )
    except (ArgosyError, TimeoutError):
        return ()
    return tuple(HealthResponse(result.path, result.code) for result in probe_results)


def _describe_outdated_pods(service: Manifest, objects: dict[GroupKind, list[Manifest]]) -> str:
    """Describe Pods that loaded the model file before the last run replaced it."""
    name, namespace = service["metadata"]["name"], service["metadata"].get("namespace")
    notebook_jobs = [item for item in objects.get(NOTEBOOK_JOB, ()) if item["metadata"].get("namespace") == namespace]
    label = "serving.kserve.io/inferenceservice"
    pods = [
        item
        for item in objects.get(POD, ())
        if item["metadata"].get("namespace") == namespace and (item["metadata"].get("labels") or {}).get(label) == name
    ]
    lineage = trace_model(service, notebook_jobs, pods)
    old = [item.name for item in lineage.copies if not item.is_current]
    if not lineage.runs or not old:
        return ""
    last = lineage.runs[-1]
    return f"{', '.join(old)} started before {last.job} left it at {last.ended}"
