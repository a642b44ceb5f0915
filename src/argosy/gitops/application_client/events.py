"""Lists Events of an Application and its objects.

In: an ApplicationService, an Application. Out: Events, oldest first. Never: Events of other objects.
"""

from __future__ import annotations

from typing import Final

from argosy.errors import ClusterError
from argosy.gitops.application import Application
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.summary import rows
from argosy.gitops.status.wire_format import mapping
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest

EVENT: Final = GroupKind("", "Event")


async def events_of(desk: Desk, app: Application, *, also_objects: bool = False) -> list[Manifest]:
    wanted = {("Application", app.namespace, app.name)}
    namespaces = {app.namespace}
    if also_objects and app.destination.is_here:  # Events of another cluster are there
        wanted |= {(row.key.kind, row.key.namespace, row.key.name) for row in rows(app)}
        namespaces |= {row.key.namespace for row in rows(app) if row.key.namespace}
    found: list[Manifest] = []
    for namespace in sorted(namespaces):
        try:
            found += (await desk.cluster.list(EVENT, namespace=namespace)).items
        except ClusterError as error:
            if namespace == app.namespace or error.code != 403:
                raise
    mine = [each for each in found if _about(each) in wanted]
    return sorted(mine, key=_moment)


def _moment(event: Manifest) -> tuple[str, int]:
    """k8s: Event times have seconds only; within a second, compare numeric resourceVersions."""
    version = str(event["metadata"].get("resourceVersion") or "")
    seen = str(event.get("lastTimestamp") or event.get("eventTime") or "")
    return seen, int(version) if version.isdecimal() else 0


def _about(event: Manifest) -> tuple[str, str, str]:
    about = mapping(event.get("involvedObject"))
    return str(about.get("kind") or ""), str(about.get("namespace") or ""), str(about.get("name") or "")
