"""Simulates the Docling operator: a DoclingServe becomes a Deployment with at least two replicas.

In: the key of a DoclingServe. Out: its Deployment, its status, and its replicas if fewer are requested. Never: reads a
document.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.kube.controller import Context, Watch, owner
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import (
    DEPLOYMENT,
    is_dying,
    is_played_by_others,
    own_key,
    reference_to,
    unmarked,
)
from argosy.sandbox.simulators.openshift_ai.constants import DOCLING_OPERATOR, DOCLING_SERVE
from argosy.sandbox.simulators.writes import keep_status, patient

FEWEST: Final = 2  # so that one can fail without an outage
IMAGE: Final = "quay.io/docling-project/docling-serve:latest"
PORT: Final = 5001


class DoclingServes:
    name = "simulated-doclingserves"
    watches = (Watch(DOCLING_SERVE, unmarked), Watch(DEPLOYMENT, owner(DOCLING_SERVE)))

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> None:
        live = context.cache.get(key)
        if live is None or is_dying(live) or is_played_by_others(live):
            return
        if replicas_of(live) < FEWEST:
            version = {"resourceVersion": live["metadata"]["resourceVersion"]}
            patch = {"metadata": version, "spec": {"replicas": FEWEST}}
            await context.cluster.patch(key, patch, manager=DOCLING_OPERATOR)
            return
        wanted = deployment_of(live)
        found = context.cache.get(own_key(DEPLOYMENT, key.namespace, key.name))
        if found is None or found["spec"].get("replicas") != wanted["spec"]["replicas"]:
            found = await context.cluster.apply(wanted, manager=DOCLING_OPERATOR, force=True)
        await keep_status(live, status_of(live, found), context.cluster)


def replicas_of(serve: Manifest) -> int:
    asked = (serve.get("spec") or {}).get("replicas")
    return 1 if asked is None else int(asked)


def deployment_of(serve: Manifest) -> Manifest:
    metadata, spec = serve["metadata"], serve.get("spec") or {}
    image = (spec.get("apiServer") or {}).get("image") or spec.get("image") or IMAGE
    labels = {"app": "docling-serve", "docling.io/name": metadata["name"]}
    container = {"name": "docling-serve", "image": image, "ports": [{"containerPort": PORT}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [reference_to(serve)],
        },
        "spec": {
            "replicas": replicas_of(serve),
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def status_of(serve: Manifest, deployment: Manifest) -> dict[str, Any]:
    told = deployment.get("status") or {}
    ready = int(told.get("readyReplicas") or 0)
    return {
        "phase": "Ready" if ready >= replicas_of(serve) else "Pending",
        "replicas": int(told.get("replicas") or 0),
        "readyReplicas": ready,
    }
