"""Checks port flags. In: a flag and its number. Out: nothing. Never: accepts a number outside the port range."""

from __future__ import annotations

from argosy.errors import UserError

MOST = 65535
ANY = "any free port"


def check_port(flag: str, port: int | None, none: str = ANY) -> None:
    """Raises UserError for an invalid port. `zero_meaning` describes the meaning of 0."""
    if port is not None and not 0 <= port <= MOST:
        raise UserError(f"invalid port {flag} {port}; use 1 to {MOST}, or 0 for {none}")
