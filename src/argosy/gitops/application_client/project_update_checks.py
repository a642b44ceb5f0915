"""Checks the effect of an AppProject update: new permissions, and Applications that would break.

In: a project before and after, Applications. Out: servers and repositories to authorize. Never: writes; asks a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.application import Application
from argosy.gitops.application.project_spec import Project, read_project
from argosy.gitops.application_client.project_spec_edits import list_entries
from argosy.gitops.policy.projects import permits_destination, permits_source

KIND_LIST_FIELDS: Final = (
    "clusterResourceWhitelist",
    "clusterResourceBlacklist",
    "namespaceResourceWhitelist",
    "namespaceResourceBlacklist",
)


def list_destination_clusters(spec: Mapping[str, Any]) -> list[str]:
    destinations = [destination for destination in list_entries(spec, "destinations") if isinstance(destination, dict)]
    return list(
        dict.fromkeys(str(destination.get("server") or destination.get("name") or "*") for destination in destinations)
    )


def list_added_clusters(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """argo: list new destinations; all of them if the permitted kinds changed."""
    if any((before.get(name) or []) != (after.get(name) or []) for name in KIND_LIST_FIELDS):
        return list_destination_clusters(after)
    return [cluster for cluster in list_destination_clusters(after) if cluster not in list_destination_clusters(before)]


def list_added_repositories(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """argo: list new source repositories."""
    old_repositories = list_entries(before, "sourceRepos")
    return [str(repository) for repository in list_entries(after, "sourceRepos") if repository not in old_repositories]


def check_applications_stay_valid(
    before: Mapping[str, Any], after: Mapping[str, Any], apps: Iterable[Application]
) -> None:
    """argo: refuse an update that removes a source or destination that an Application uses."""
    old, new = read_project(before), read_project(after)
    project_apps = [app for app in apps if app.project == new.name]
    lost_sources = sum(_loses_source(app, old, new) for app in project_apps)
    if lost_sources:
        message = f"as a result of project update {lost_sources} applications source became invalid"
        raise UserError(f"{message}; change them first")
    lost_destinations = sum(_loses_destination(app, old, new) for app in project_apps)
    if lost_destinations:
        message = f"as a result of project update {lost_destinations} applications destination became invalid"
        raise UserError(f"{message}; change them first")


def _loses_source(app: Application, old: Project, new: Project) -> bool:
    urls = [source.repo_url for source in app.sources]
    return any(permits_source(old, url) and not permits_source(new, url) for url in urls)


def _loses_destination(app: Application, old: Project, new: Project) -> bool:
    destination = app.destination.with_in_cluster_alias
    return permits_destination(old, destination) and not permits_destination(new, destination)
