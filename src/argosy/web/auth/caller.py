"""Caller: the authenticated user of a request; RequestCredentials: what it presented.

In: –. Out: Caller and RequestCredentials. Never: verifies credentials; the Authenticator does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from argosy.gitops.policy.rbac import RbacRequester

CredentialKind = Literal["nobody", "anonymous", "cookie", "bearer"]
CallerKind = Literal["", "account", "project", "person"]


@dataclass(frozen=True, slots=True)
class Caller:
    name: str  # argo: the subject: an account, proj:<project>:<role>, or the sub of an OIDC token
    groups: tuple[str, ...] = ()
    credential_kind: CredentialKind = "nobody"
    id: str = ""  # id of the session or token, used to revoke it
    kind: CallerKind = ""  # project roles and SSO users are not accounts
    email: str = ""
    issuer: str = ""  # argo: argocd, or the identity provider
    expires: int = 0
    claims: Any = field(default=None, repr=False, compare=False)  # signed claims, to check again that they are valid
    key_id: str = field(default="", repr=False, compare=False)  # id of the signing key

    @property
    def is_nobody(self) -> bool:
        return self.credential_kind == "nobody"

    @property
    def rbac_requester(self) -> RbacRequester:
        """Names that RBAC rules can match."""
        return RbacRequester(self.name, self.groups, self.kind == "project")

    @property
    def display_name(self) -> str:
        """Name for messages and logs."""
        return self.email or self.name or ("anonymous" if self.credential_kind == "anonymous" else "")


NOBODY = Caller("")


@dataclass(frozen=True, slots=True)
class RequestCredentials:
    """The parts of a request that can identify the caller."""

    bearer: str = field(default="", repr=False)
    cookies: Mapping[str, str] = field(default_factory=dict, repr=False)
    peer: str = ""  # client IP address


class BadLogin(Exception):
    """argo: the same error for every kind of failed login."""


class BadCredential(Exception):
    """A credential was presented and is invalid; never treated like a missing credential."""


class RevokedCredential(BadCredential):
    """A session that was ended before its time. Only who has the signed token learns it."""
