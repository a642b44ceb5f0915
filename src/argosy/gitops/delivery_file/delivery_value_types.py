"""The values of argosy.yaml: repository, environments, rules.

In, out: values. Never: I/O; a secret itself, only where it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from argosy.gitops.health.bundled_rules import DEFAULT_INSTALL_PROFILE

API_VERSION: Final = "argosy.dev/v1"
KIND: Final = "Delivery"
FILE_NAME: Final = "argosy.yaml"


class SyncMode(StrEnum):
    AUTO = "auto"
    MANUAL = "manual"


@dataclass(frozen=True)
class SecretSource:
    """Where a secret is read from: an environment variable or a file."""

    env: str = ""
    file: str = ""

    def __str__(self) -> str:
        return f"environment variable {self.env}" if self.env else f"file {self.file}"


@dataclass(frozen=True)
class RepositoryCredentials:
    username: str = ""
    password: SecretSource | None = None
    ssh_key: SecretSource | None = None


@dataclass(frozen=True)
class DeliveryRepository:
    url: str
    ref: str = "main"
    credentials: RepositoryCredentials | None = None


@dataclass(frozen=True)
class ArgoCDReference:
    """The Argo CD to use; empty: the one in the cluster."""

    namespace: str = ""
    name: str = ""


@dataclass(frozen=True)
class PromotionGate:
    """A condition for promoting a change to this environment."""

    kind: str  # check, healthy, notebook, soak or approval
    value: str = ""


@dataclass(frozen=True)
class DeliveryEnvironment:
    name: str
    application: str
    namespace: str
    path: str
    sync: SyncMode = SyncMode.MANUAL
    after: str = ""
    gates: tuple[PromotionGate, ...] = ()

    @property
    def product(self) -> str:
        """The product of the environments: llmops for the application llmops-dev of dev."""
        return self.application.removesuffix(f"-{self.name}") or self.application


@dataclass(frozen=True)
class HealthOptions:
    profile: str = DEFAULT_INSTALL_PROFILE
    kinds: tuple[str, ...] = ()  # as written; empty: those of KServe


@dataclass(frozen=True)
class DeliveryRole:
    """Who may do what with which Applications, in Argo CD's words."""

    name: str
    groups: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    applications: str = "*/*"  # project/name


@dataclass(frozen=True)
class DeliveryRbac:
    default_role: str | None = None
    scopes: str | None = None
    admins: tuple[str, ...] = ()
    roles: tuple[DeliveryRole, ...] = ()


@dataclass(frozen=True)
class CheckSuppression:
    rule: str
    path: str = ""
    reason: str = ""


@dataclass(frozen=True)
class CheckOptions:
    """Options of `argosy check`; setup only validates them."""

    baseline: str = ""
    suppress: tuple[CheckSuppression, ...] = ()


@dataclass(frozen=True)
class DeliveryFile:
    repository: DeliveryRepository
    environments: tuple[DeliveryEnvironment, ...]
    argocd: ArgoCDReference = ArgoCDReference()
    health: HealthOptions | None = None
    rbac: DeliveryRbac | None = None
    check: CheckOptions | None = None

    @property
    def product(self) -> str:
        return self.environments[0].product


# Every field with its description. A star stands for a user-defined name, or for a list index.
FIELDS: Final[Mapping[str, str]] = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "repository": "where the manifests are",
    "repository.url": "as Argo CD reads it",
    "repository.ref": "branch, tag or commit",
    "repository.credentials": "for a private repository",
    "repository.credentials.username": "user name",
    "repository.credentials.passwordFrom": "where the password or token is",
    "repository.credentials.passwordFrom.env": "name of a variable",
    "repository.credentials.passwordFrom.file": "path of a file",
    "repository.credentials.sshKeyFrom": "where the private key is",
    "repository.credentials.sshKeyFrom.env": "name of a variable",
    "repository.credentials.sshKeyFrom.file": "path of a file",
    "argocd": "which Argo CD",
    "argocd.namespace": "its namespace",
    "argocd.name": "its ArgoCD resource",
    "environments": "one entry for each",
    "environments.*": "an environment, by its name",
    "environments.*.application": "name of its Application",
    "environments.*.namespace": "destination namespace",
    "environments.*.path": "folder of the repository",
    "environments.*.sync": "auto or manual",
    "environments.*.after": "the previous environment",
    "environments.*.gates": "conditions for a promotion",
    "environments.*.gates.*": "one of the following",
    "environments.*.gates.*.check": "the repository's checks pass",
    "environments.*.gates.*.healthy": "healthy for so long",
    "environments.*.gates.*.notebook": "this notebook succeeded",
    "environments.*.gates.*.soak": "deployed for so long without problems",
    "environments.*.gates.*.approval": "approved by a member of this role",
    "health": "health checks for Argo CD",
    "health.profile": "which scripts",
    "health.kinds": "for which kinds",
    "rbac": "who may do what in Argo CD",
    "rbac.default": "role of every signed-in user",
    "rbac.scopes": "claims that name groups",
    "rbac.admins": "groups and users that may do everything",
    "rbac.roles": "roles of your own",
    "rbac.roles.*": "a role, by its name",
    "rbac.roles.*.groups": "its members",
    "rbac.roles.*.may": "what it allows",
    "rbac.roles.*.applications": "with which applications",
    "check": "for the checks of the repository",
    "check.baseline": "file of known findings",
    "check.suppress": "findings that are accepted",
    "check.suppress.*": "one of them",
    "check.suppress.*.rule": "which rule",
    "check.suppress.*.path": "in which files",
    "check.suppress.*.reason": "why",
}
