"""Loads drifted objects of an Application and describes their drift.

In: an Application, a cluster. Out: drift data for expressions and templates. Never: reads objects that are Synced.
"""

from __future__ import annotations

from argosy.errors import ClusterError
from argosy.features.notifications.condition_and_template_evaluation import DriftData
from argosy.features.notifications.drift_template_data import build_drift, list_drifted_keys
from argosy.gitops.application import read_destination
from argosy.kube.client import ClusterReader
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey


async def load_drift(app: Manifest, cluster: ClusterReader) -> DriftData:
    destination = (app.get("spec") or {}).get("destination") or {}
    if not read_destination(str(destination.get("server") or ""), str(destination.get("name") or "")).is_in_cluster:
        return None  # this client cannot read objects of another cluster
    live: dict[ResourceKey, Manifest | None] = {}
    for key in list_drifted_keys(app):
        try:
            live[key] = await cluster.get(key)
        except ClusterError as error:
            if error.code not in (403, 404):
                raise
            live[key] = {"metadata": {}} if error.code == 403 else None
    return build_drift(app, live) if live else None
