"""Objects and status rows of an Application that its project permits.

In: a request. Out: nodes, rows. Never: an object that the project does not permit, nor its children.
"""

from __future__ import annotations

from argosy.errors import ClusterError, TransientError, UserError
from argosy.features.applications.page_parts.shared_page_values import get_application
from argosy.gitops.application_client.app_state_reader import DestinationUnreadable
from argosy.gitops.application_client.status_summary import ManagedObjectRow, list_rows
from argosy.gitops.live.resource_tree import ResourceNode
from argosy.gitops.reconciler.object_permission_and_deletion_check import build_permission_check
from argosy.kube.resource_key import ResourceKey
from argosy.web.caller_application_service import build_reader
from argosy.web.request import RequestContext


async def list_permitted_nodes(request: RequestContext) -> list[ResourceNode]:
    """argo: Children of an object that is not permitted are left out."""
    app, reader = get_application(request), build_reader(request)
    try:
        nodes, kinds = await reader.build_tree(app), await reader.list_kinds()
    except (DestinationUnreadable, TransientError, ClusterError):
        if app.destination.is_in_cluster:
            raise
        return []  # the cluster is unreachable, as conditions show; the status lists managed objects
    try:
        project = reader.get_project(app)
    except UserError:
        return []  # the page shows that the project does not exist
    is_allowed = build_permission_check(app, project, reader.reconciler_settings, kinds)
    if all(is_allowed(node.key) for node in nodes):
        return nodes
    all_keys, kept = {node.key for node in nodes}, set[ResourceKey]()
    for node in nodes:  # parents come before their children
        parent_keys = [parent.key for parent in node.parents if parent.key in all_keys]
        if is_allowed(node.key) and (not parent_keys or any(key in kept for key in parent_keys)):
            kept.add(node.key)
    return [node for node in nodes if node.key in kept]


async def list_permitted_rows(request: RequestContext) -> list[ManagedObjectRow]:
    """List the permitted rows of the status, including objects that do not exist yet: Git may name any object."""
    app, reader = get_application(request), build_reader(request)
    project = reader.reconciler_settings.projects.get(app.project)
    if project is None:
        return []
    try:
        kinds = await reader.list_kinds()
    except (TransientError, ClusterError):
        if app.destination.is_in_cluster:
            raise
        kinds = {}  # then kinds are used as written
    is_allowed = build_permission_check(app, project, reader.reconciler_settings, kinds)
    return [row for row in list_rows(app) if is_allowed(row.key)]


def shows_orphans(request: RequestContext) -> bool:
    """argo: Orphans are shown only if the project monitors them."""
    project = build_reader(request).reconciler_settings.projects.get(get_application(request).project)
    return project is not None and project.orphans is not None
