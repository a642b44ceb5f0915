"""Add the health of each object to the status of an Application, as Argo CD's server does.

In: a reader, an Application. Out: its manifest, with the health of each object. Never: health of an object that the
project does not permit; changes the stored Application.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.errors import ClusterError, TransientError
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import Assessment
from argosy.gitops.application_client.app_state_reader import ApplicationReader, DestinationUnreadable
from argosy.gitops.reconciler.object_permission_and_deletion_check import build_permission_check
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings, omit_empty
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey

# argo: set if health is not stored in the status
HEALTH_SOURCE_FIELD, HEALTH_IN_TREE = "resourceHealthSource", "appTree"
KEY_FIELDS: Final = ("group", "kind", "namespace", "name")


def lacks_health(manifest: Mapping[str, Any]) -> bool:
    return bool(as_mapping(manifest.get("status")).get(HEALTH_SOURCE_FIELD) == HEALTH_IN_TREE)


async def add_health(reader: ApplicationReader, app: Application) -> Manifest:
    """argo: Get and watch of a single Application include health; lists do not."""
    status = as_mapping(app.wire.get("status"))
    project = reader.reconciler_settings.projects.get(app.project)
    if not lacks_health(app.wire) or project is None:
        return dict(app.wire)
    try:
        is_allowed = build_permission_check(app, project, reader.reconciler_settings, await reader.list_kinds())
        assessments = {key: item for key, item in (await reader.assess_managed_objects(app)).items() if is_allowed(key)}
    except (DestinationUnreadable, TransientError, ClusterError):
        if app.destination.is_in_cluster:
            raise
        return dict(app.wire)  # the cluster is unreachable: return the stored status
    resources = [_add_row_health(item, assessments) for item in as_mappings(status.get("resources"))]
    return {**app.wire, "status": {**status, "resources": resources}}


def _add_row_health(row: Mapping[str, Any], assessments: Mapping[ResourceKey, Assessment]) -> dict[str, Any]:
    assessment = assessments.get(ResourceKey(*(str(row.get(name) or "") for name in KEY_FIELDS)))
    if assessment is None or assessment.health is None:
        return dict(row)
    return {**row, "health": omit_empty(status=assessment.health.value, message=assessment.message)}
