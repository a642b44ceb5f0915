"""An AppProject as values: what its Applications may do.

In: a manifest in Argo CD's format. Out: frozen values. Never: decides; `gitops.policy` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from argosy.kube.objects.strict_typed_field_reader import FieldReader

BUDGETS_CONFIG_MAP: Final = "argosy-project-budgets"  # controllers write it while a project's work waits for its budget
DEFAULT_PROJECT_MANIFEST: Final[Mapping[str, Any]] = {
    "metadata": {"name": "default"},
    "spec": {
        "sourceRepos": ["*"],
        "destinations": [{"server": "*", "namespace": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
    },
}


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
class ProjectRole:
    name: str
    policies: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class IntegrityPolicy(NamedTuple):
    """argo: an entry of sourceIntegrity.git.policies."""

    repositories: tuple[str, ...]  # globs; `!` before one excludes
    mode: str  # of gpg: none, head or strict
    keys: tuple[str, ...] = ()  # of gpg: ids of the keys that may sign


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
    roles: tuple[ProjectRole, ...] = ()
    windows: tuple[SyncWindow, ...] = ()
    orphans: OrphanRule | None = None
    signature_keys: tuple[str, ...] = ()
    integrity: tuple[IntegrityPolicy, ...] = ()  # argo: sourceIntegrity
    service_accounts: tuple[DestinationServiceAccount, ...] = ()  # argo: destinationServiceAccounts
    only_scoped_clusters: bool = False  # argo: permitOnlyProjectScopedClusters
    labels: Mapping[str, str] = field(default_factory=dict)
    wire: Mapping[str, Any] = field(default_factory=dict)


def read_project(manifest: Mapping[str, Any], where: str = "") -> Project:
    fields = FieldReader(manifest, where)
    spec = fields.read_map("spec")
    allowed = spec.values.get("namespaceResourceWhitelist")
    orphans = spec.find_map("orphanedResources")
    return Project(
        name=fields.read_map("metadata").read_text("name"),
        source_repos=spec.read_text_list("sourceRepos"),
        source_namespaces=spec.read_text_list("sourceNamespaces"),
        destinations=tuple(
            DestinationPattern(item.read_text("server"), item.read_text("name"), item.read_text("namespace"))
            for item in spec.read_map_list("destinations")
        ),
        cluster_allowed=_read_kind_patterns(spec, "clusterResourceWhitelist"),
        cluster_denied=_read_kind_patterns(spec, "clusterResourceBlacklist"),
        namespaced_allowed=None if allowed is None else _read_kind_patterns(spec, "namespaceResourceWhitelist"),
        namespaced_denied=_read_kind_patterns(spec, "namespaceResourceBlacklist"),
        roles=tuple(
            ProjectRole(item.read_text("name"), item.read_text_list("policies"), item.read_text_list("groups"))
            for item in spec.read_map_list("roles")
        ),
        windows=tuple(map(_read_window, spec.read_map_list("syncWindows"))),
        orphans=_read_orphan_rule(orphans) if orphans else None,
        signature_keys=tuple(item.read_text("keyID") for item in spec.read_map_list("signatureKeys")),
        integrity=tuple(
            IntegrityPolicy(
                tuple(repository.read_text("url") for repository in policy.read_map_list("repos")),
                policy.read_map("gpg").read_text("mode"),
                policy.read_map("gpg").read_text_list("keys"),
            )
            for policy in spec.read_map("sourceIntegrity").read_map("git").read_map_list("policies")
        ),
        service_accounts=tuple(
            DestinationServiceAccount(
                entry.read_text("server"), entry.read_text("namespace"), entry.read_text("defaultServiceAccount")
            )
            for entry in spec.read_map_list("destinationServiceAccounts")
        ),
        only_scoped_clusters=spec.read_bool("permitOnlyProjectScopedClusters"),
        labels=fields.read_map("metadata").read_text_map("labels"),
        wire=manifest,
    )


def _read_kind_patterns(spec: FieldReader, name: str) -> tuple[KindPattern, ...]:
    return tuple(
        KindPattern(*(entry.read_text(part) for part in KindPattern._fields)) for entry in spec.read_map_list(name)
    )


def _read_window(fields: FieldReader) -> SyncWindow:
    return SyncWindow(
        kind=fields.read_text("kind"),
        schedule=fields.read_text("schedule"),
        duration=fields.read_text("duration"),
        applications=fields.read_text_list("applications"),
        namespaces=fields.read_text_list("namespaces"),
        clusters=fields.read_text_list("clusters"),
        manual_sync=fields.read_bool("manualSync"),
        time_zone=fields.read_text("timeZone"),
        needs_all=fields.read_bool("andOperator"),
        sync_overrun=fields.read_bool("syncOverrun"),
        description=fields.read_text("description"),
    )


def _read_orphan_rule(fields: FieldReader) -> OrphanRule:
    warns = fields.values.get("warn")
    return OrphanRule(True if warns is None else fields.read_bool("warn"), _read_kind_patterns(fields, "ignore"))
