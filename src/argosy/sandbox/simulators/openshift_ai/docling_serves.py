"""Simulates the Docling operator: a DoclingServe becomes a Deployment with at least two replicas.

In: the key of a DoclingServe. Out: its Deployment, its status, and its replicas if fewer are requested. Never: reads a
document.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.kube.controller import ControllerContext, Watch, map_to_owner
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import DEPLOYMENT
from argosy.sandbox.simulators.conditional_writes import requeue_on_conflict, update_status_if_changed
from argosy.sandbox.simulators.openshift_ai.kinds_and_field_managers import DOCLING_FIELD_MANAGER, DOCLING_SERVE
from argosy.sandbox.simulators.owner_references_and_marks import (
    build_key,
    build_owner_reference,
    enqueue_if_unmarked,
    is_being_deleted,
    is_simulated_by_other_addon,
)

MIN_REPLICAS: Final = 2  # so that one can fail without an outage
DEFAULT_IMAGE: Final = "quay.io/docling-project/docling-serve:latest"
CONTAINER_PORT: Final = 5001


class DoclingServeController:
    name = "simulated-doclingserves"
    watches = (Watch(DOCLING_SERVE, enqueue_if_unmarked), Watch(DEPLOYMENT, map_to_owner(DOCLING_SERVE)))

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> None:
        serve = context.cache.get(key)
        if serve is None or is_being_deleted(serve) or is_simulated_by_other_addon(serve):
            return
        if read_replicas(serve) < MIN_REPLICAS:
            version = {"resourceVersion": serve["metadata"]["resourceVersion"]}
            patch = {"metadata": version, "spec": {"replicas": MIN_REPLICAS}}
            await context.cluster.patch(key, patch, manager=DOCLING_FIELD_MANAGER)
            return
        desired = build_deployment(serve)
        deployment = context.cache.get(build_key(DEPLOYMENT, key.namespace, key.name))
        if deployment is None or deployment["spec"].get("replicas") != desired["spec"]["replicas"]:
            deployment = await context.cluster.apply(desired, manager=DOCLING_FIELD_MANAGER, force=True)
        await update_status_if_changed(serve, build_status(serve, deployment), context.cluster)


def read_replicas(serve: Manifest) -> int:
    replicas = (serve.get("spec") or {}).get("replicas")
    return 1 if replicas is None else int(replicas)


def build_deployment(serve: Manifest) -> Manifest:
    metadata, spec = serve["metadata"], serve.get("spec") or {}
    image = (spec.get("apiServer") or {}).get("image") or spec.get("image") or DEFAULT_IMAGE
    labels = {"app": "docling-serve", "docling.io/name": metadata["name"]}
    container = {"name": "docling-serve", "image": image, "ports": [{"containerPort": CONTAINER_PORT}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [build_owner_reference(serve)],
        },
        "spec": {
            "replicas": read_replicas(serve),
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def build_status(serve: Manifest, deployment: Manifest) -> dict[str, Any]:
    deployment_status = deployment.get("status") or {}
    ready = int(deployment_status.get("readyReplicas") or 0)
    return {
        "phase": "Ready" if ready >= read_replicas(serve) else "Pending",
        "replicas": int(deployment_status.get("replicas") or 0),
        "readyReplicas": ready,
    }
