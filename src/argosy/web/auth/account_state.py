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
from argosy.gitops.application.project import Project, read_project
from argosy.gitops.policy.rbac import Enforcer
from argosy.gitops.policy.rbac_config import RBAC_CM, AccessPolicy, read_access
from argosy.kube.client import ClusterReader
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest
from argosy.web.auth.accounts import (
    SECRET,
    SETTINGS,
    SIGNING_KEY,
    Account,
    TokenMark,
    map_data,
    marks_of,
    read_accounts,
    secret_data,
)
from argosy.web.auth.identity_provider import Provider, read_provider, secret_value

log = logging.getLogger(__name__)
SESSIONS: Final = "argosy-sessions"
PROJECT: Final = GroupKind("argoproj.io", "AppProject")
T = TypeVar("T")


class Known(Protocol):
    def get(self, key: ResourceKey) -> Manifest | None: ...

    def list(self, kind: GroupKind, *, namespace: str = "") -> Iterable[Manifest]: ...


class Watching(Protocol):
    @property
    def cache(self) -> Known: ...

    def listen(self, callback: Callable[[Manifest | None, Manifest | None], None]) -> Callable[[], None]: ...


class Standing:
    def __init__(self, lookout: Watching, namespace: str) -> None:
        self._known: Known = lookout.cache
        self.namespace = namespace
        self._made: dict[str, Any] = {}
        self._reported_fault: str | None = None  # None: before the first report
        self._newer: dict[ResourceKey, Manifest | None] = {}  # read directly, and newer than the cluster view
        self.stop = lookout.listen(self._noticed)

    # -- values -------------------------------------------------------------------------------------------------

    @property
    def settings(self) -> Mapping[str, str]:
        return self._once("settings", lambda: map_data(self._config_map(SETTINGS)))

    @property
    def secrets(self) -> Mapping[str, bytes]:
        return self._once("secrets", lambda: secret_data(self._get(ResourceKey("", "Secret", self.namespace, SECRET))))

    @property
    def accounts(self) -> Mapping[str, Account]:
        return self._once("accounts", lambda: read_accounts(self.settings, self.secrets))

    @property
    def key(self) -> bytes:
        return self.secrets.get(SIGNING_KEY, b"")

    @property
    def key_name(self) -> str:
        """Id of the signing key that reveals nothing about it."""
        return self._once("key_name", lambda: hashlib.sha256(b"name\0" + self.key).hexdigest()[:16])

    @property
    def policy(self) -> AccessPolicy:
        return self._once("policy", lambda: read_access(map_data(self._config_map(RBAC_CM))))

    @property
    def enforcer(self) -> Enforcer:
        return self._once("enforcer", lambda: Enforcer(self.policy, self._projects()))

    @property
    def is_anonymous_allowed(self) -> bool:
        """argo: users.anonymous.enabled"""
        return self.settings.get("users.anonymous.enabled", "").strip().lower() == "true"

    @property
    def provider(self) -> Provider | None:
        """OIDC provider; None if none is configured or the configuration is invalid."""
        return self._read_provider()[0]

    @property
    def provider_fault(self) -> str:
        """Why `oidc.config` cannot be used; empty if it is valid or missing."""
        return self._read_provider()[1]

    def report_provider(self) -> None:
        """Log a warning when `oidc.config` becomes invalid, and a line when it is valid again."""
        fault, before = self.provider_fault, self._reported_fault
        self._reported_fault = fault
        if fault and fault != before:
            log.warning("SSO is not usable: %s", fault)
        elif before and not fault:
            log.info("SSO: oidc.config in argocd-cm is valid again")

    def _read_provider(self) -> tuple[Provider | None, str]:
        return self._once(
            "provider", lambda: read_provider(self.settings, lambda each: secret_value(each, self._find_secret))
        )

    def _find_secret(self, name: str) -> Manifest | None:
        return self._get(ResourceKey("", "Secret", self.namespace, name))

    @property
    def revoked(self) -> Mapping[str, str]:
        return self._once("revoked", lambda: map_data(self._config_map(SESSIONS)))

    def role_tokens(self, project: str, role: str) -> tuple[TokenMark, ...] | None:
        """argo: tokens are stored in the role and in the status of its project; None if the role does not exist."""
        found = self._get(ResourceKey(*PROJECT, self.namespace, project)) or {}
        roles = (found.get("spec") or {}).get("roles") or ()
        mine = [each for each in roles if isinstance(each, dict) and each.get("name") == role]
        if not mine:
            return None
        by_role = ((found.get("status") or {}).get("jwtTokensByRole") or {}).get(role) or {}
        return (*marks_of(mine[0].get("jwtTokens")), *marks_of(by_role.get("items")))

    # -- changes ------------------------------------------------------------------------------------------------

    async def look_again(self, cluster: ClusterReader, project: str = "") -> None:
        """Read from the cluster, for a token that may be newer than the cluster view."""
        names = (("ConfigMap", SETTINGS), ("Secret", SECRET), ("ConfigMap", SESSIONS))
        keys = [ResourceKey("", kind, self.namespace, name) for kind, name in names]
        for key in [*keys, *([ResourceKey(*PROJECT, self.namespace, project)] if project else ())]:
            known = self._known.get(key)
            found = await cluster.get(key)
            if self._known.get(key) is known:  # else the cluster view changed meanwhile, and may be newer
                self._newer[key] = found
        self._made.clear()

    def _noticed(self, before: Manifest | None, after: Manifest | None) -> None:
        manifest = after or before or {}
        metadata = manifest.get("metadata") or {}
        if metadata.get("namespace") != self.namespace:
            return
        kind, name, is_of_provider = manifest.get("kind"), metadata.get("name", ""), False
        if kind in ("ConfigMap", "Secret") and name in (SETTINGS, SECRET, RBAC_CM, SESSIONS):
            self._newer.pop(ResourceKey("", str(kind), self.namespace, name), None)
            self._made.clear()
            is_of_provider = name in (SETTINGS, SECRET)
        elif kind == "Secret":  # may be referenced as `$name:key`
            self._made.pop("provider", None)
            is_of_provider = True
        elif kind == PROJECT.kind:
            self._newer.pop(ResourceKey(*PROJECT, self.namespace, name), None)
            self._made.pop("enforcer", None)
        if is_of_provider and self._reported_fault is not None:  # during the first list, Secrets may be missing
            self.report_provider()

    def _once(self, name: str, make: Callable[[], T]) -> T:
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made

    def _config_map(self, name: str) -> Manifest | None:
        return self._get(ResourceKey("", "ConfigMap", self.namespace, name))

    def _get(self, key: ResourceKey) -> Manifest | None:
        return self._newer[key] if key in self._newer else self._known.get(key)

    def _projects(self) -> list[Project]:
        found = []
        for manifest in self._known.list(PROJECT, namespace=self.namespace):
            try:
                found.append(read_project(manifest))
            except UserError:  # the project's page shows the error; an invalid project grants nothing
                continue
        return found
