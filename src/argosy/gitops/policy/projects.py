"""Checks what an AppProject permits its Applications.

In: a project, an Application, a key. Out: messages that name the rule; none if it is permitted. Never: raises.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from argosy.gitops.application import Application, Destination, Source
from argosy.gitops.application.cluster_globs import denies_cluster, matches_cluster
from argosy.gitops.application.project import DestinationPattern, KindPattern, Project
from argosy.gitops.policy.destination_clusters import Clusters
from argosy.gitops.policy.repository_patterns import Address, allows, denies, is_selected, read_address
from argosy.kube.names import GroupKind, ResourceKey
from argosy.languages.globs import matches

# Parts of the messages below: an operation state has only a message to tell that a project refused it.
_REFUSALS: Final = (
    "is not permitted in project",
    "is not permitted to use project",
    "do not match any of the allowed destinations in project",
)


def is_refusal(message: str) -> bool:
    """True if a message says that a project forbids something."""
    return any(refusal in message for refusal in _REFUSALS)


def violations(
    project: Project | None,
    app: Application,
    *,
    control_namespace: str,
    clusters: Clusters | None = None,
    place_refused: str = "",
) -> list[str]:
    """Return what the project forbids in the Application.

    `clusters` is set if only project-scoped ones are permitted.
    """
    if project is None:
        return [f"application references project {app.project} which does not exist"]  # argo: its words
    found = []
    is_elsewhere = app.namespace != control_namespace
    if is_elsewhere and not any(matches(each, app.namespace) for each in project.source_namespaces):
        found.append(
            f"application '{app.name}' in namespace '{app.namespace}' is not permitted to use project "
            f"'{project.name}': sourceNamespaces does not list it"
        )
    found += forbidden_sources(project, app.sources)
    if place_refused:
        found.append(place_refused)  # argo: an invalid destination is not checked against the list
    elif not permits_destination(project, app.destination):
        place = app.destination.server or app.destination.name
        found.append(
            f"application destination server '{place}' and namespace '{app.destination.namespace}' do not match any of "
            f"the allowed destinations in project '{project.name}': {_destination_rule(project, app.destination)}"
        )
    elif clusters is not None and not _is_scoped(clusters, project, app.destination):
        place = app.destination.server or app.destination.name
        found.append(
            f"cluster '{place}' is not permitted in project '{project.name}': permitOnlyProjectScopedClusters is set, "
            f"and no cluster Secret gives it to this project"
        )
    return found


def forbidden_sources(project: Project, sources: Iterable[Source]) -> list[str]:
    """Return the forbidden sources, also those of an operation, which may differ from the Application's."""
    return [
        f"application repo {each.repo_url} is not permitted in project '{project.name}': "  # argo: its words
        f"{_source_rule(project, each.repo_url)}"
        for each in sources
        if not permits_source(project, each.repo_url)
    ]


def _source_rule(project: Project, url: str) -> str:
    address = read_address(url)
    denials = [pattern for pattern in project.source_repos if pattern.startswith("!")]
    matching = [pattern for pattern in denials if denies(pattern, address)]
    if matching:
        return f"sourceRepos denies it by {matching[0]!r}"
    if denials and not address.is_parsed:
        return "sourceRepos denies some repositories, and this URL cannot be parsed"
    if not _lists_source(project, address):
        return "sourceRepos does not list it"
    return (
        "sourceIntegrity requires verified signatures, which argosy cannot check yet; use signatureKeys instead, or "
        "exclude the repository there"
    )


def _destination_rule(project: Project, destination: Destination) -> str:
    for entry in project.destinations:
        fits, denies = _fits_destination(entry, destination)
        if fits and denies:
            written = [each for each in entry if each.startswith("!")]
            return f"destinations denies it by {written[0]!r}"
    return "destinations does not list it"


def _is_scoped(clusters: Clusters, project: Project, destination: Destination) -> bool:
    place = clusters.find(destination._replace(name="") if destination.server else destination)
    return any(
        each.project == project.name and place is not None and place.server == each.server for each in clusters.known
    )


def permits_source(project: Project, url: str) -> bool:
    """argo: at least one pattern must match, and none with `!` before it."""
    address = read_address(url)
    denials = [pattern for pattern in project.source_repos if pattern.startswith("!")]
    if denials and (not address.is_parsed or any(denies(pattern, address) for pattern in denials)):
        return False
    return _lists_source(project, address) and not _needs_integrity(project, address)


def _lists_source(project: Project, address: Address) -> bool:
    return any(allows(pattern, address) for pattern in project.source_repos if not pattern.startswith("!"))


def _needs_integrity(project: Project, address: Address) -> bool:
    """True if sourceIntegrity requires signatures of the repository. Not implemented, so nothing passes it."""
    policies = [policy for policy in project.integrity if policy.mode != "none"]
    return any(not address.is_parsed or is_selected(policy.repositories, address) for policy in policies)


def permits_destination(project: Project, destination: Destination) -> bool:
    """argo: cluster by name or address, and namespace must match; an entry with `!` before a part denies."""
    allowed = False
    for entry in project.destinations:
        fits, denies = _fits_destination(entry, destination)
        if fits and denies:
            return False
        allowed = allowed or fits
    return allowed


def _fits_destination(entry: DestinationPattern, destination: Destination) -> tuple[bool, bool]:
    destination = destination.known
    denies_place = entry.server.startswith("!") or entry.name.startswith("!")
    denies_namespace = entry.namespace.startswith("!")
    at_server = denies_cluster if denies_place or denies_namespace else matches_cluster
    in_place = bool(entry.server and destination.server and at_server(entry.server, destination.server)) or bool(
        entry.name and destination.name and matches(entry.name.removeprefix("!"), destination.name)
    )
    in_namespace = matches(entry.namespace.removeprefix("!"), destination.namespace)
    if denies_place:
        return in_place, True
    return in_place and in_namespace, denies_namespace


def permits(project: Project, key: ResourceKey, *, is_namespaced: bool, destination: Destination) -> str:
    """Return why an object may not be managed; empty if it may."""
    if not permits_kind(project, key.group_kind, is_namespaced=is_namespaced, name=key.name):
        rule = _kind_rule(project, key, is_namespaced)
        return f"resource {key.group}:{key.kind} is not permitted in project {project.name}: {rule}"
    place = destination._replace(namespace=key.namespace)
    if is_namespaced and key.namespace and not permits_destination(project, place):
        rule = _destination_rule(project, place)
        return f"namespace {key.namespace} is not permitted in project '{project.name}': {rule}"
    return ""


def _kind_rule(project: Project, key: ResourceKey, is_namespaced: bool) -> str:
    denied, name = (project.namespaced_denied, "") if is_namespaced else (project.cluster_denied, key.name)
    lists = "namespaceResource" if is_namespaced else "clusterResource"
    if _lists(denied, key.group_kind, name):
        return f"{lists}Blacklist lists it"
    return f"{lists}Whitelist does not list it"


def permits_kind(project: Project, kind: GroupKind, *, is_namespaced: bool, name: str = "") -> bool:
    """argo: namespaced kinds are permitted unless a list restricts them, cluster-scoped kinds only if listed."""
    if is_namespaced:
        allowed = project.namespaced_allowed is None or _lists(project.namespaced_allowed, kind)
        return allowed and not _lists(project.namespaced_denied, kind)
    return _lists(project.cluster_allowed, kind, name) and not _lists(project.cluster_denied, kind, name)


def _lists(patterns: Iterable[KindPattern], kind: GroupKind, name: str = "") -> bool:
    return any(
        matches(each.group, kind.group)
        and matches(each.kind, kind.kind)
        and (not each.name or matches(each.name, name))
        for each in patterns
    )
