"""Lists Events of an Application and its objects.

In: an ApplicationService, an Application. Out: Events, oldest first. Never: Events of other objects.
"""

from __future__ import annotations

from argosy.errors import ClusterError
from argosy.gitops.application import Application
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.status_summary import list_rows
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import EVENT


async def events_of(service: ApplicationService, app: Application, *, include_objects: bool = False) -> list[Manifest]:
    identities = {("Application", app.namespace, app.name)}
    namespaces = {app.namespace}
    if include_objects and app.destination.is_in_cluster:  # Events of another cluster are there
        identities |= {(row.key.kind, row.key.namespace, row.key.name) for row in list_rows(app)}
        namespaces |= {row.key.namespace for row in list_rows(app) if row.key.namespace}
    events: list[Manifest] = []
    for namespace in sorted(namespaces):
        try:
            events += (await service.cluster.list(EVENT, namespace=namespace)).items
        except ClusterError as error:
            if namespace == app.namespace or error.code != 403:
                raise
    matching = [event for event in events if _involved_object(event) in identities]
    return sorted(matching, key=_sort_key)


def _sort_key(event: Manifest) -> tuple[str, int]:
    """k8s: Event times have seconds only; within a second, compare numeric resourceVersions."""
    version = str(event["metadata"].get("resourceVersion") or "")
    last_seen = str(event.get("lastTimestamp") or event.get("eventTime") or "")
    return last_seen, int(version) if version.isdecimal() else 0


def _involved_object(event: Manifest) -> tuple[str, str, str]:
    reference = as_mapping(event.get("involvedObject"))
    return str(reference.get("kind") or ""), str(reference.get("namespace") or ""), str(reference.get("name") or "")
