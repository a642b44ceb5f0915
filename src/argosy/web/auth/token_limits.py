"""Limits of a token that is created with another token.

In: the token that creates it. Out: the latest expiry, and the tokens that it depends on. Never: limits accounts and
users that signed in themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from argosy.errors import PolicyError
from argosy.kube.objects.timestamps import written
from argosy.web.auth.accounts import TokenMark
from argosy.web.auth.tokens import ParentToken


@dataclass(frozen=True, slots=True)
class TokenLimits:
    latest_end: int = 0  # Unix time at which the parent token expires; 0: never
    parents: tuple[ParentToken, ...] = ()  # tokens that the new one depends on

    def check_end(self, mark: TokenMark) -> None:
        """Raises PolicyError if the new token would outlive its parent."""
        if not self.latest_end or 0 < mark.expires <= self.latest_end:
            return
        left = max(0, self.latest_end - mark.issued)
        raise PolicyError(
            f"a token cannot outlive the token that creates it, which expires at "
            f"{written(datetime.fromtimestamp(self.latest_end, UTC))}; set expiresIn to at most {left} seconds, "
            f"or sign in with a password"
        )


NO_LIMITS: Final = TokenLimits()
