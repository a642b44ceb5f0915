"""Limits of a token that is created with another token.

In: the token that creates it. Out: the latest expiry, and the tokens that it depends on. Never: limits accounts and
users that signed in themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from argosy.errors import PolicyError
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.web.auth.accounts import TokenRecord
from argosy.web.auth.signed_tokens import ParentToken


@dataclass(frozen=True, slots=True)
class TokenLimits:
    latest_expiry: int = 0  # Unix time at which the parent token expires; 0: never
    parents: tuple[ParentToken, ...] = ()  # tokens that the new one depends on

    def check_expiry(self, record: TokenRecord) -> None:
        """Raises PolicyError if the new token would outlive its parent."""
        if not self.latest_expiry or 0 < record.expires_at <= self.latest_expiry:
            return
        remaining_seconds = max(0, self.latest_expiry - record.issued_at)
        raise PolicyError(
            f"a token cannot outlive the token that creates it, which expires at "
            f"{format_timestamp(datetime.fromtimestamp(self.latest_expiry, UTC))}; set expiresIn to at most "
            f"{remaining_seconds} seconds, "
            f"or sign in with a password"
        )


NO_LIMITS: Final = TokenLimits()
