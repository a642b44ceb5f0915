"""Who asks, as a value, and what they showed of it.

In: –. Out: Caller and Shown. Never: believes what was shown; that is the matter of Identities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from argosy.gitops.policy.rbac import Subjects

How = Literal["nobody", "anonymous", "cookie", "bearer"]
Kind = Literal["", "account", "project", "person"]


@dataclass(frozen=True, slots=True)
class Caller:
    name: str  # argo: the subject: an account, proj:<project>:<role>, or the sub of an OIDC token
    groups: tuple[str, ...] = ()
    how: How = "nobody"
    id: str = ""  # of the session or token: what is revoked
    kind: Kind = ""  # a role of a project, and a person whom an identity provider knows, are no accounts
    email: str = ""
    issuer: str = ""  # argo: argocd, or the identity provider
    expires: int = 0
    claims: Any = field(default=None, repr=False, compare=False)  # what was signed, to ask again whether it counts
    signed_by: str = field(default="", repr=False, compare=False)  # which key, not the key

    @property
    def is_nobody(self) -> bool:
        return self.how == "nobody"

    @property
    def subjects(self) -> Subjects:
        """Whom rules may name."""
        return Subjects(self.name, self.groups, self.kind == "project")

    @property
    def shown_name(self) -> str:
        """For people and for logs."""
        return self.email or self.name or ("anonymous" if self.how == "anonymous" else "")


NOBODY = Caller("")


@dataclass(frozen=True, slots=True)
class Shown:
    """All of a request that may say who asks."""

    bearer: str = field(default="", repr=False)
    cookies: Mapping[str, str] = field(default_factory=dict, repr=False)
    peer: str = ""  # the address that it came from


class BadLogin(Exception):
    """argo: one answer, whatever is wrong."""


class BadCredential(Exception):
    """Something was shown, and it does not count: never the same as having shown nothing."""
