"""Who asks, as a value, and what they showed of it.

In: –. Out: Caller and Shown. Never: believes what was shown; that is the matter of Identities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

How = Literal["nobody", "cookie", "bearer"]


@dataclass(frozen=True, slots=True)
class Caller:
    name: str  # argo: the subject: an account, proj:<project>:<role>, or the sub of an OIDC token
    groups: tuple[str, ...] = ()
    how: How = "nobody"
    id: str = ""  # of the session or token: what is revoked

    @property
    def is_nobody(self) -> bool:
        return self.how == "nobody"


NOBODY = Caller("")


@dataclass(frozen=True, slots=True)
class Shown:
    """All of a request that may say who asks."""

    bearer: str = field(default="", repr=False)
    cookies: Mapping[str, str] = field(default_factory=dict, repr=False)
    peer: str = ""  # the address that it came from


class BadCredential(Exception):
    """Something was shown, and it does not count: never the same as having shown nothing."""
