"""Adds project-scoped repositories and clusters to the permissions of their projects.

In: projects by name, Secrets of repositories and clusters that name a project. Out: the projects with these sources and
destinations. Never: adds a pattern: a URL or a namespace in a Secret means only itself; weakens a denial.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from argosy.annotations import SECRET_TYPE
from argosy.gitops.application.project_spec import DestinationPattern, Project
from argosy.gitops.policy.destination_cluster_lookup import (
    DestinationClusters,
    KnownCluster,
    decode_field,
    read_clusters,
)
from argosy.gitops.policy.global_projects import apply_global_projects
from argosy.gitops.policy.repository_patterns import read_repository_spellings
from argosy.kube.objects import Manifest
from argosy.languages.globs import escape_glob


def build_effective_projects(
    projects: Mapping[str, Project], secrets: Sequence[Manifest], argocd_cm: Mapping[str, str]
) -> dict[str, Project]:
    """argo: a project inherits the spec of a global project, but not its project-scoped resources. Raises UserError."""
    return add_scoped_resources(apply_global_projects(projects, argocd_cm), secrets, read_clusters(secrets))


def add_scoped_resources(
    projects: Mapping[str, Project], secrets: Iterable[Manifest], clusters: DestinationClusters
) -> dict[str, Project]:
    """argo: a project permits the repositories and clusters whose Secret names it."""
    repositories = _read_scoped_repositories(secrets)
    destinations = defaultdict[str, list[DestinationPattern]](list)
    for cluster in clusters.known_clusters:
        if cluster.project:
            destinations[cluster.project] += list_scoped_destinations(cluster)
    return {
        name: replace(
            project,
            source_repos=(*project.source_repos, *repositories[name]),
            destinations=(*project.destinations, *destinations[name]),
        )
        if name in repositories or name in destinations
        else project
        for name, project in projects.items()
    }


def list_scoped_destinations(cluster: KnownCluster) -> list[DestinationPattern]:
    """Return the destinations that the project of a cluster Secret permits: its namespaces, or all of them."""
    namespaces = [escape_glob(namespace) for namespace in cluster.namespaces] or ["*"]
    return [DestinationPattern(server=escape_glob(cluster.server), namespace=namespace) for namespace in namespaces]


def _read_scoped_repositories(secrets: Iterable[Manifest]) -> defaultdict[str, list[str]]:
    """Return source patterns by project. Credential templates permit nothing."""
    patterns = defaultdict[str, list[str]](list)
    for secret in secrets:
        if (secret["metadata"].get("labels") or {}).get(SECRET_TYPE) != "repository":
            continue
        data = secret.get("data") or {}
        project, repository = decode_field(data, "project"), read_repository_spellings(decode_field(data, "url"))
        if project and repository.is_parsed:
            patterns[project].append(escape_glob(repository.allowed_as[0]))
    return patterns
