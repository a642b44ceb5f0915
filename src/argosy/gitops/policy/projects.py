"""Checks what an AppProject permits its Applications.

In: a project, an Application, a key. Out: messages that name the rule; none if it is permitted. Never: raises.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from argosy.gitops.application import Application, Destination, Source
from argosy.gitops.application.cluster_globs import denies_cluster, matches_cluster
from argosy.gitops.application.project_spec import DestinationPattern, KindPattern, Project
from argosy.gitops.policy.destination_cluster_lookup import DestinationClusters
from argosy.gitops.policy.repository_patterns import (
    RepositorySpellings,
    is_allowed_by,
    is_denied_by,
    is_selected,
    read_repository_spellings,
)
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.languages.globs import matches_glob

# Parts of the messages below: an operation state has only a message to tell that a project refused it.
_REFUSAL_MARKERS: Final = (
    "is not permitted in project",
    "are not permitted in project",
    "is not permitted to use project",
    "do not match any of the allowed destinations in project",
)
_UNVERIFIED_MODE: Final = "none"
_INTEGRITY_MODES: Final = (_UNVERIFIED_MODE, "head")  # argo: strict, which verifies the history, is rejected


def is_project_refusal(message: str) -> bool:
    """True if a message says that a project forbids something."""
    return any(refusal in message for refusal in _REFUSAL_MARKERS)


def describe_forbidden_namespace(project: Project, app: Application) -> str:
    return (
        f"application '{app.name}' in namespace '{app.namespace}' is not permitted to use project "
        f"'{project.name}': sourceNamespaces does not list it"
    )


def list_violations(
    project: Project | None,
    app: Application,
    *,
    control_namespace: str,
    clusters: DestinationClusters | None = None,
    destination_error: str = "",
) -> list[str]:
    """Return what the project forbids in the Application.

    `clusters` is set if only project-scoped ones are permitted.
    """
    if project is None:
        return [f"Application referencing project {app.project} which does not exist"]
    messages = []
    if not permits_application_namespace(project, app, control_namespace):
        messages.append(describe_forbidden_namespace(project, app))
    messages += list_forbidden_sources(project, app.sources)
    if destination_error:
        messages.append(destination_error)  # argo: an invalid destination is not checked against the list
    elif not permits_destination(project, app.destination):
        server = app.destination.server or app.destination.name
        messages.append(
            f"application destination server '{server}' and namespace '{app.destination.namespace}' do not "
            "match any of "
            f"the allowed destinations in project '{project.name}': "
            f"{_describe_destination_denial(project, app.destination)}"
        )
    elif clusters is not None and not _is_project_scoped(clusters, project, app.destination):
        server = app.destination.server or app.destination.name
        messages.append(
            f"cluster '{server}' is not permitted in project '{project.name}': permitOnlyProjectScopedClusters is set, "
            f"and no cluster Secret gives it to this project"
        )
    return messages


def permits_application_namespace(project: Project, app: Application, control_namespace: str) -> bool:
    """argo: outside the control namespace, sourceNamespaces must list the namespace of the Application."""
    return app.namespace == control_namespace or any(
        matches_glob(pattern, app.namespace) for pattern in project.source_namespaces
    )


def list_forbidden_sources(project: Project, sources: Iterable[Source]) -> list[str]:
    """Return the forbidden sources, also those of an operation, which may differ from the Application's."""
    return [
        f"application repo {source.repo_url} is not permitted in project '{project.name}': "  # argo: its words
        f"{_describe_source_denial(project, source.repo_url)}"
        for source in sources
        if not permits_source(project, source.repo_url)
    ]


def _describe_source_denial(project: Project, url: str) -> str:
    address = read_repository_spellings(url)
    denials = [pattern for pattern in project.source_repos if pattern.startswith("!")]
    matching = [pattern for pattern in denials if is_denied_by(pattern, address)]
    if matching:
        return f"sourceRepos denies it by {matching[0]!r}"
    if denials and not address.is_parsed:
        return "sourceRepos denies some repositories, and this URL cannot be parsed"
    if not _allows_source(project, address):
        return "sourceRepos does not list it"
    return _describe_integrity_error(project, address)


def _describe_destination_denial(project: Project, destination: Destination) -> str:
    for entry in project.destinations:
        is_match, is_denial = _match_destination(entry, destination)
        if is_match and is_denial:
            denials = [part for part in entry if part.startswith("!")]
            return f"destinations denies it by {denials[0]!r}"
    return "destinations does not list it"


def _is_project_scoped(clusters: DestinationClusters, project: Project, destination: Destination) -> bool:
    cluster = clusters.find(destination._replace(name="") if destination.server else destination)
    return any(
        known_cluster.project == project.name and cluster is not None and cluster.server == known_cluster.server
        for known_cluster in clusters.known_clusters
    )


def permits_source(project: Project, url: str) -> bool:
    """argo: at least one pattern must match, and none with `!` before it."""
    address = read_repository_spellings(url)
    denials = [pattern for pattern in project.source_repos if pattern.startswith("!")]
    if denials and (not address.is_parsed or any(is_denied_by(pattern, address) for pattern in denials)):
        return False
    return _allows_source(project, address) and not _describe_integrity_error(project, address)


def _allows_source(project: Project, address: RepositorySpellings) -> bool:
    return any(is_allowed_by(pattern, address) for pattern in project.source_repos if not pattern.startswith("!"))


def find_signature_keys(project: Project, url: str) -> tuple[str, ...] | None:
    """Return the ids of the keys that may sign revisions of a repository; None if no signature is required.

    Only for a repository that the project permits. signatureKeys count for repositories that no policy selects.
    """
    address = read_repository_spellings(url)
    for policy in project.integrity:
        if is_selected(policy.repositories, address):
            return None if policy.mode == _UNVERIFIED_MODE else policy.keys
    return project.signature_keys or None


def _describe_integrity_error(project: Project, address: RepositorySpellings) -> str:
    """Return why sourceIntegrity cannot be verified for the repository; empty if it can be, or need not be."""
    if not address.is_parsed:
        is_restricted = any(policy.mode != _UNVERIFIED_MODE for policy in project.integrity)
        return "sourceIntegrity restricts repositories, and this URL cannot be parsed" if is_restricted else ""
    policies = [policy for policy in project.integrity if is_selected(policy.repositories, address)]
    if len(policies) > 1:
        return f"{len(policies)} policies of sourceIntegrity select it; select it in one"  # argo: an error, too
    if policies and policies[0].mode not in _INTEGRITY_MODES:
        return (
            f"its policy in sourceIntegrity has the mode {policies[0].mode!r}, which argosy cannot verify; use "
            f"{' or '.join(_INTEGRITY_MODES)}"
        )
    return ""


def permits_destination(project: Project, destination: Destination) -> bool:
    """argo: cluster by name or address, and namespace must match; an entry with `!` before a part denies."""
    allowed = False
    for entry in project.destinations:
        is_match, is_denial = _match_destination(entry, destination)
        if is_match and is_denial:
            return False
        allowed = allowed or is_match
    return allowed


def _match_destination(entry: DestinationPattern, destination: Destination) -> tuple[bool, bool]:
    destination = destination.with_in_cluster_alias
    denies_server = entry.server.startswith("!") or entry.name.startswith("!")
    denies_namespace = entry.namespace.startswith("!")
    match_server = denies_cluster if denies_server or denies_namespace else matches_cluster
    is_server_match = bool(
        entry.server and destination.server and match_server(entry.server, destination.server)
    ) or bool(entry.name and destination.name and matches_glob(entry.name.removeprefix("!"), destination.name))
    is_namespace_match = matches_glob(entry.namespace.removeprefix("!"), destination.namespace)
    if denies_server:
        return is_server_match, True
    return is_server_match and is_namespace_match, denies_namespace


def find_permission_error(project: Project, key: ResourceKey, *, is_namespaced: bool, destination: Destination) -> str:
    """Return why an object may not be managed; empty if it may."""
    if not permits_kind(project, key.group_kind, is_namespaced=is_namespaced, name=key.name):
        rule = _describe_kind_denial(project, key, is_namespaced)
        return f"resource {key.group}:{key.kind} is not permitted in project {project.name}: {rule}"
    object_destination = destination._replace(namespace=key.namespace)
    if is_namespaced and key.namespace and not permits_destination(project, object_destination):
        rule = _describe_destination_denial(project, object_destination)
        return f"namespace {key.namespace} is not permitted in project '{project.name}': {rule}"
    return ""


def _describe_kind_denial(project: Project, key: ResourceKey, is_namespaced: bool) -> str:
    denied, name = (project.namespaced_denied, "") if is_namespaced else (project.cluster_denied, key.name)
    field_prefix = "namespaceResource" if is_namespaced else "clusterResource"
    if _any_matches_kind(denied, key.group_kind, name):
        return f"{field_prefix}Blacklist lists it"
    return f"{field_prefix}Whitelist does not list it"


def permits_kind(project: Project, kind: GroupKind, *, is_namespaced: bool, name: str = "") -> bool:
    """argo: namespaced kinds are permitted unless a list restricts them, cluster-scoped kinds only if listed."""
    if is_namespaced:
        allowed = project.namespaced_allowed is None or _any_matches_kind(project.namespaced_allowed, kind)
        return allowed and not _any_matches_kind(project.namespaced_denied, kind)
    return _any_matches_kind(project.cluster_allowed, kind, name) and not _any_matches_kind(
        project.cluster_denied, kind, name
    )


def _any_matches_kind(patterns: Iterable[KindPattern], kind: GroupKind, name: str = "") -> bool:
    return any(
        matches_glob(pattern.group, kind.group)
        and matches_glob(pattern.kind, kind.kind)
        and (not pattern.name or matches_glob(pattern.name, name))
        for pattern in patterns
    )
