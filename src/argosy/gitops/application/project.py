"""An AppProject as values: what its Applications may do.

In: a manifest in Argo CD's format. Out: frozen values. Never: decides; `gitops.policy` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from argosy.kube.objects.field_reader import Fields

BUDGETS_CONFIG_MAP: Final = "argosy-project-budgets"  # controllers write it while a project's work waits for its budget


class DestinationPattern(NamedTuple):
    """argo: an entry of destinations: globs, with `!` before a denial."""

    server: str = ""
    name: str = ""
    namespace: str = ""


class KindPattern(NamedTuple):
    """argo: an entry of a list of kinds; the name is for cluster-scoped kinds only."""

    group: str
    kind: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class SyncWindow:
    kind: str = ""  # allow or deny
    schedule: str = ""
    duration: str = ""
    applications: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    manual_sync: bool = False
    time_zone: str = ""
    needs_all: bool = False  # argo: andOperator
    sync_overrun: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class Role:
    name: str
    policies: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class IntegrityPolicy(NamedTuple):
    """argo: an entry of sourceIntegrity.git.policies."""

    repositories: tuple[str, ...]  # globs; `!` before one excludes
    mode: str  # of gpg: none, head or strict


class DestinationServiceAccount(NamedTuple):
    """Globs of clusters and namespaces, and the service account that syncs impersonate there."""

    server: str
    namespace: str
    account: str


@dataclass(frozen=True, slots=True)
class OrphanRule:
    warns: bool = True
    ignored: tuple[KindPattern, ...] = ()


@dataclass(frozen=True, slots=True)
class Project:
    name: str = "default"
    source_repos: tuple[str, ...] = ()
    source_namespaces: tuple[str, ...] = ()
    destinations: tuple[DestinationPattern, ...] = ()
    cluster_allowed: tuple[KindPattern, ...] = ()  # argo: clusterResourceWhitelist
    cluster_denied: tuple[KindPattern, ...] = ()
    namespaced_allowed: tuple[KindPattern, ...] | None = None  # argo: None permits all, an empty list nothing
    namespaced_denied: tuple[KindPattern, ...] = ()
    roles: tuple[Role, ...] = ()
    windows: tuple[SyncWindow, ...] = ()
    orphans: OrphanRule | None = None
    signature_keys: tuple[str, ...] = ()
    integrity: tuple[IntegrityPolicy, ...] = ()  # argo: sourceIntegrity
    service_accounts: tuple[DestinationServiceAccount, ...] = ()  # argo: destinationServiceAccounts
    only_scoped_clusters: bool = False  # argo: permitOnlyProjectScopedClusters
    labels: Mapping[str, str] = field(default_factory=dict)
    wire: Mapping[str, Any] = field(default_factory=dict)


def read_project(manifest: Mapping[str, Any], where: str = "") -> Project:
    fields = Fields(manifest, where)
    spec = fields.fields("spec")
    allowed = spec.values.get("namespaceResourceWhitelist")
    orphans = spec.optional("orphanedResources")
    return Project(
        name=fields.fields("metadata").text("name"),
        source_repos=spec.all_texts("sourceRepos"),
        source_namespaces=spec.all_texts("sourceNamespaces"),
        destinations=tuple(
            DestinationPattern(each.text("server"), each.text("name"), each.text("namespace"))
            for each in spec.all_fields("destinations")
        ),
        cluster_allowed=_kinds(spec, "clusterResourceWhitelist"),
        cluster_denied=_kinds(spec, "clusterResourceBlacklist"),
        namespaced_allowed=None if allowed is None else _kinds(spec, "namespaceResourceWhitelist"),
        namespaced_denied=_kinds(spec, "namespaceResourceBlacklist"),
        roles=tuple(
            Role(each.text("name"), each.all_texts("policies"), each.all_texts("groups"))
            for each in spec.all_fields("roles")
        ),
        windows=tuple(map(_window, spec.all_fields("syncWindows"))),
        orphans=_orphans(orphans) if orphans else None,
        signature_keys=tuple(each.text("keyID") for each in spec.all_fields("signatureKeys")),
        integrity=tuple(
            IntegrityPolicy(
                tuple(repository.text("url") for repository in policy.all_fields("repos")),
                policy.fields("gpg").text("mode"),
            )
            for policy in spec.fields("sourceIntegrity").fields("git").all_fields("policies")
        ),
        service_accounts=tuple(
            DestinationServiceAccount(
                entry.text("server"), entry.text("namespace"), entry.text("defaultServiceAccount")
            )
            for entry in spec.all_fields("destinationServiceAccounts")
        ),
        only_scoped_clusters=spec.flag("permitOnlyProjectScopedClusters"),
        labels=fields.fields("metadata").texts("labels"),
        wire=manifest,
    )


def _kinds(spec: Fields, name: str) -> tuple[KindPattern, ...]:
    return tuple(KindPattern(*(each.text(part) for part in KindPattern._fields)) for each in spec.all_fields(name))


def _window(given: Fields) -> SyncWindow:
    return SyncWindow(
        kind=given.text("kind"),
        schedule=given.text("schedule"),
        duration=given.text("duration"),
        applications=given.all_texts("applications"),
        namespaces=given.all_texts("namespaces"),
        clusters=given.all_texts("clusters"),
        manual_sync=given.flag("manualSync"),
        time_zone=given.text("timeZone"),
        needs_all=given.flag("andOperator"),
        sync_overrun=given.flag("syncOverrun"),
        description=given.text("description"),
    )


def _orphans(given: Fields) -> OrphanRule:
    warns = given.values.get("warn")
    return OrphanRule(True if warns is None else given.flag("warn"), _kinds(given, "ignore"))
