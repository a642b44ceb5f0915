"""Finds the service account that a sync impersonates.

In: a project, an Application and the address of its cluster. Out: a user name. Never: the controller's own rights if
the settings require an account and none matches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from argosy.errors import PolicyError, UserError
from argosy.gitops.application import Application
from argosy.gitops.application.canonical_cluster_address import ClusterAddress
from argosy.gitops.application.cluster_globs import matches_cluster, require_glob
from argosy.gitops.application.project_spec import Project
from argosy.kube.objects.config_map_booleans import parse_boolean, read_boolean
from argosy.languages.globs import compile_glob

SERVICE_ACCOUNTS_FIELD: Final = "destinationServiceAccounts"
ENABLED_KEY: Final = "application.sync.impersonation.enabled"
ENFORCED_KEY: Final = "application.sync.impersonation.enforced"
_MAX_SHOWN_LENGTH: Final = 60  # of a value in a message
SERVICE_ACCOUNT_PREFIX: Final = "system:serviceaccount:"
_INVALID_CHARACTERS: Final = frozenset("!*[]{}\\/")  # argo


class NoServiceAccount(PolicyError):
    """A service account is required, and the project names no usable one."""


@dataclass(frozen=True, slots=True)
class ImpersonationPolicy:
    """argo: whether syncs impersonate service accounts, and whether a sync without one is refused."""

    is_enabled: bool = False
    is_enforced: bool = True

    def find_user(self, project: Project, app: Application, server: ClusterAddress) -> str:
        """Return the user to impersonate; empty: use the controller's own rights. Raises NoServiceAccount."""
        if not self.is_enabled:
            return ""
        try:
            user = find_service_account(project, app, server)
        except UserError as error:
            # argo: its words
            raise NoServiceAccount(f"failed to derive service account to impersonate: {error}") from error
        if not user and self.is_enforced:
            raise NoServiceAccount(
                f"no matching service account found for destination server {server} and namespace "
                f"{app.destination.namespace}; add one to destinationServiceAccounts of project '{project.name}'"
            )
        return user


def read_impersonation(argocd_cm: Mapping[str, str]) -> ImpersonationPolicy:
    """Read both settings. An invalid value restricts: no sync gets the controller's own rights."""
    text = argocd_cm.get(ENABLED_KEY, "")
    is_disabled = not text.strip() or parse_boolean(text) is False
    return ImpersonationPolicy(not is_disabled, read_boolean(argocd_cm, ENFORCED_KEY, default=True))


def find_impersonation_fault(argocd_cm: Mapping[str, str]) -> str:
    """Return what is wrong with the setting that enables impersonation; empty if nothing is.

    argo: only the exact word true enables it there. Another spelling enables it here, and is a fault.
    """
    text = argocd_cm.get(ENABLED_KEY, "")
    if text == "true" or not text.strip() or parse_boolean(text) is False:
        return ""
    shortened = text if len(text) <= _MAX_SHOWN_LENGTH else f"{text[: _MAX_SHOWN_LENGTH - 1]}…"
    return (
        f"{ENABLED_KEY}: {shortened!r} is neither true nor false, so impersonation is enabled; write exactly "
        "true or false"
    )


def find_service_account(project: Project, app: Application, server: ClusterAddress) -> str:
    """argo: the first entry that matches cluster and namespace; empty if none does."""
    namespace = app.destination.namespace
    for entry in project.service_accounts:
        require_glob(entry.server, SERVICE_ACCOUNTS_FIELD)
        if not (matches_cluster(entry.server, server) and _matches(entry.namespace, namespace)):
            continue
        account = entry.account
        if not account.strip() or _INVALID_CHARACTERS & set(account):
            raise PolicyError(f"default service account contains invalid chars '{account}'")
        return SERVICE_ACCOUNT_PREFIX + (account if ":" in account else f"{namespace or app.namespace}:{account}")
    return ""


def _matches(pattern: str, text: str) -> bool:
    """Match a glob. Raises UserError if it is invalid, because its intended restriction is unknown."""
    return compile_glob(pattern, SERVICE_ACCOUNTS_FIELD).fullmatch(text) is not None
