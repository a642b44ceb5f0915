"""Checks port flags. In: a flag and its number. Out: nothing. Never: accepts a number outside the port range."""

from __future__ import annotations

from argosy.errors import UserError

MAX_PORT = 65535
ANY_FREE_PORT = "any free port"


def check_port(flag: str, port: int | None, zero_meaning: str = ANY_FREE_PORT) -> None:
    """Raises UserError for an invalid port. `zero_meaning` describes the meaning of 0."""
    if port is not None and not 0 <= port <= MAX_PORT:
        raise UserError(f"invalid port {flag} {port}; use 1 to {MAX_PORT}, or 0 for {zero_meaning}")
