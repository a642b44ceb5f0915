"""Ports, as flags take them. In: a flag and its number. Out: nothing. Never: a number that no socket takes."""

from __future__ import annotations

from argosy.errors import UserError

MOST = 65535
ANY = "any free one"


def check_port(flag: str, port: int | None, none: str = ANY) -> None:
    """`none` is what 0 stands for."""
    if port is not None and not 0 <= port <= MOST:
        raise UserError(f"{flag} {port} is no port; choose 1 to {MOST}, or 0 for {none}")
