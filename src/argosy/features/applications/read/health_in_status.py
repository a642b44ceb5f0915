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
from argosy.gitops.application_client.reader import Reader, Unseen
from argosy.gitops.reconciler.permissions import permission
from argosy.gitops.status.wire_format import given, mapping, mappings
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

SOURCE, TREE = "resourceHealthSource", "appTree"  # argo: set if health is not stored in the status
NAMES: Final = ("group", "kind", "namespace", "name")


def lacks_health(manifest: Mapping[str, Any]) -> bool:
    return bool(mapping(manifest.get("status")).get(SOURCE) == TREE)


async def with_health(reader: Reader, app: Application) -> Manifest:
    """argo: Get and watch of a single Application include health; lists do not."""
    status = mapping(app.wire.get("status"))
    project = reader.rules.projects.get(app.project)
    if not lacks_health(app.wire) or project is None:
        return dict(app.wire)
    try:
        allowed = permission(app, project, reader.rules, await reader.kinds())
        judged = {key: each for key, each in (await reader.health(app)).items() if allowed(key)}
    except (Unseen, TransientError, ClusterError):
        if app.destination.is_here:
            raise
        return dict(app.wire)  # the cluster is unreachable: return the stored status
    resources = [_told(each, judged) for each in mappings(status.get("resources"))]
    return {**app.wire, "status": {**status, "resources": resources}}


def _told(row: Mapping[str, Any], judged: Mapping[ResourceKey, Assessment]) -> dict[str, Any]:
    found = judged.get(ResourceKey(*(str(row.get(name) or "") for name in NAMES)))
    if found is None or found.health is None:
        return dict(row)
    return {**row, "health": given(status=found.health.value, message=found.message)}
