"""Accounts, signing key, RBAC policy and revoked sessions, read from the cluster view.

In: a cluster view. Out: parsed values, cached until their ConfigMap, Secret or AppProject changes. Never: reads
from the cluster, except in `refresh`.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol, TypeVar

from argosy.errors import UserError
from argosy.gitops.application.project_spec import Project, read_project
from argosy.gitops.policy.rbac import RbacEnforcer
from argosy.gitops.policy.rbac_config import RBAC_CM, AccessPolicy, read_access_policy
from argosy.kube.client import ClusterReader
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import APP_PROJECT, CONFIG_MAP, SECRET
from argosy.web.auth.accounts import (
    ACCOUNTS_SECRET,
    SETTINGS_CONFIG_MAP,
    SIGNING_KEY,
    Account,
    TokenRecord,
    decode_secret_data,
    read_accounts,
    read_config_map_data,
    read_role_token_records,
    read_session_seconds,
)
from argosy.web.auth.oidc_provider_settings import OidcProvider, find_secret_value, read_provider

log = logging.getLogger(__name__)
SESSIONS_CONFIG_MAP: Final = "argosy-sessions"
T = TypeVar("T")


class ObjectCache(Protocol):
    def get(self, key: ResourceKey) -> Manifest | None: ...

    def list(self, kind: GroupKind, *, namespace: str = "") -> Iterable[Manifest]: ...


class ObservableCluster(Protocol):
    @property
    def cache(self) -> ObjectCache: ...

    def add_listener(self, callback: Callable[[Manifest | None, Manifest | None], None]) -> Callable[[], None]: ...


class AccountState:
    def __init__(self, cluster_view: ObservableCluster, namespace: str) -> None:
        self._cache: ObjectCache = cluster_view.cache
        self.namespace = namespace
        self._parsed: dict[str, Any] = {}
        self._reported_error: str | None = None  # None: before the first report
        self._direct_reads: dict[ResourceKey, Manifest | None] = {}  # read directly, and newer than the cluster view
        self.stop = cluster_view.add_listener(self._on_change)

    # -- values -------------------------------------------------------------------------------------------------

    @property
    def settings(self) -> Mapping[str, str]:
        return self._parse_once("settings", lambda: read_config_map_data(self._get_config_map(SETTINGS_CONFIG_MAP)))

    @property
    def secrets(self) -> Mapping[str, bytes]:
        return self._parse_once(
            "secrets", lambda: decode_secret_data(self._get(ResourceKey(*SECRET, self.namespace, ACCOUNTS_SECRET)))
        )

    @property
    def accounts(self) -> Mapping[str, Account]:
        return self._parse_once("accounts", lambda: read_accounts(self.settings, self.secrets))

    @property
    def key(self) -> bytes:
        return self.secrets.get(SIGNING_KEY, b"")

    @property
    def key_id(self) -> str:
        """Id of the signing key that reveals nothing about it."""
        return self._parse_once("key_name", lambda: hashlib.sha256(b"name\0" + self.key).hexdigest()[:16])

    @property
    def policy(self) -> AccessPolicy:
        return self._parse_once(
            "policy", lambda: read_access_policy(read_config_map_data(self._get_config_map(RBAC_CM)))
        )

    @property
    def enforcer(self) -> RbacEnforcer:
        return self._parse_once("enforcer", lambda: RbacEnforcer(self.policy, self._list_projects()))

    @property
    def is_anonymous_allowed(self) -> bool:
        """argo: users.anonymous.enabled"""
        return self.settings.get("users.anonymous.enabled", "").strip().lower() == "true"

    @property
    def session_seconds(self) -> int:
        return read_session_seconds(self.settings)

    @property
    def provider(self) -> OidcProvider | None:
        """OIDC provider; None if none is configured or the configuration is invalid."""
        return self._read_provider()[0]

    @property
    def provider_error(self) -> str:
        """Why `oidc.config` cannot be used; empty if it is valid or missing."""
        return self._read_provider()[1]

    def report_provider_error(self) -> None:
        """Log a warning when `oidc.config` becomes invalid, and a line when it is valid again."""
        error, previous = self.provider_error, self._reported_error
        self._reported_error = error
        if error and error != previous:
            log.warning("SSO is not usable: %s", error)
        elif previous and not error:
            log.info("SSO: oidc.config in argocd-cm is valid again")

    def _read_provider(self) -> tuple[OidcProvider | None, str]:
        return self._parse_once(
            "provider",
            lambda: read_provider(self.settings, lambda reference: find_secret_value(reference, self._find_secret)),
        )

    def _find_secret(self, name: str) -> Manifest | None:
        return self._get(ResourceKey(*SECRET, self.namespace, name))

    @property
    def revoked_sessions(self) -> Mapping[str, str]:
        return self._parse_once("revoked", lambda: read_config_map_data(self._get_config_map(SESSIONS_CONFIG_MAP)))

    def find_role_tokens(self, project: str, role: str) -> tuple[TokenRecord, ...] | None:
        """argo: tokens are stored in the role and in the status of its project; None if the role does not exist."""
        manifest = self._get(ResourceKey(*APP_PROJECT, self.namespace, project)) or {}
        roles = (manifest.get("spec") or {}).get("roles") or ()
        matching_roles = [entry for entry in roles if isinstance(entry, dict) and entry.get("name") == role]
        if not matching_roles:
            return None
        by_role = ((manifest.get("status") or {}).get("jwtTokensByRole") or {}).get(role) or {}
        in_spec, in_status = matching_roles[0].get("jwtTokens"), by_role.get("items")
        return tuple(dict.fromkeys((*read_role_token_records(in_spec), *read_role_token_records(in_status))))

    # -- changes ------------------------------------------------------------------------------------------------

    async def refresh(self, cluster: ClusterReader, project: str = "") -> None:
        """Read from the cluster, for a token that may be newer than the cluster view."""
        names = (("ConfigMap", SETTINGS_CONFIG_MAP), ("Secret", ACCOUNTS_SECRET), ("ConfigMap", SESSIONS_CONFIG_MAP))
        keys = [ResourceKey("", kind, self.namespace, name) for kind, name in names]
        for key in [*keys, *([ResourceKey(*APP_PROJECT, self.namespace, project)] if project else ())]:
            cached = self._cache.get(key)
            current = await cluster.get(key)
            if self._cache.get(key) is cached:  # else the cluster view changed meanwhile, and may be newer
                self._direct_reads[key] = current
        self._parsed.clear()

    def _on_change(self, old: Manifest | None, new: Manifest | None) -> None:
        manifest = new or old or {}
        metadata = manifest.get("metadata") or {}
        if metadata.get("namespace") != self.namespace:
            return
        kind, name, affects_provider = manifest.get("kind"), metadata.get("name", ""), False
        if kind in ("ConfigMap", "Secret") and name in (
            SETTINGS_CONFIG_MAP,
            ACCOUNTS_SECRET,
            RBAC_CM,
            SESSIONS_CONFIG_MAP,
        ):
            self._direct_reads.pop(ResourceKey("", str(kind), self.namespace, name), None)
            self._parsed.clear()
            affects_provider = name in (SETTINGS_CONFIG_MAP, ACCOUNTS_SECRET)
        elif kind == "Secret":  # may be referenced as `$name:key`
            self._parsed.pop("provider", None)
            affects_provider = True
        elif kind == APP_PROJECT.kind:
            self._direct_reads.pop(ResourceKey(*APP_PROJECT, self.namespace, name), None)
            self._parsed.pop("enforcer", None)
        if affects_provider and self._reported_error is not None:  # during the first list, Secrets may be missing
            self.report_provider_error()

    def _parse_once(self, name: str, parse: Callable[[], T]) -> T:
        if name not in self._parsed:
            self._parsed[name] = parse()
        value: T = self._parsed[name]
        return value

    def _get_config_map(self, name: str) -> Manifest | None:
        return self._get(ResourceKey(*CONFIG_MAP, self.namespace, name))

    def _get(self, key: ResourceKey) -> Manifest | None:
        return self._direct_reads[key] if key in self._direct_reads else self._cache.get(key)

    def _list_projects(self) -> list[Project]:
        projects = []
        for manifest in self._cache.list(APP_PROJECT, namespace=self.namespace):
            try:
                projects.append(read_project(manifest))
            except UserError:  # the project's page shows the error; an invalid project grants nothing
                continue
        return projects
