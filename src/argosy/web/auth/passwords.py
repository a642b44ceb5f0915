"""Password hashing with bcrypt, compatible with Argo CD.

In: a password and the stored hash. Out: match or not, or a new hash. Never: answers faster for an unknown account.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from functools import cached_property
from typing import Final

import bcrypt

from argosy.errors import UserError

COST: Final = 10  # argo
LONGEST: Final = 72  # bytes that bcrypt uses
USUAL_RULE: Final = "^.{8,32}$"  # argo: passwordPattern
AT_ONCE: Final = 4
INITIAL_BYTES: Final = 18  # of randomness


class Hashing:
    """Compares passwords, a few at a time."""

    def __init__(self, cost: int = COST) -> None:
        self._cost = cost
        self._turns = asyncio.Semaphore(AT_ONCE)
        self.compared = 0

    async def fits(self, password: str, kept: bytes) -> bool:
        """Compare a password. Takes as long if there is no stored hash or it is invalid."""
        given = password.encode("utf-8", "surrogatepass")
        is_fair = 0 < len(given) <= LONGEST and b"\0" not in given
        async with self._turns:
            if kept and is_fair:
                self.compared += 1
                found = await asyncio.to_thread(_compared, given, kept)
                if found is not None:
                    return found
            await asyncio.to_thread(self._against_nobody)
            return False

    async def prepare(self) -> None:
        """Create the dummy hash, so that the first login of an unknown account is not slower than later ones."""
        await asyncio.to_thread(self._against_nobody)

    async def hashed(self, password: str) -> bytes:
        async with self._turns:
            return await asyncio.to_thread(bcrypt.hashpw, password.encode(), bcrypt.gensalt(self._cost))

    def _against_nobody(self) -> None:
        _compared(b"nobody", self._nobodys)

    @cached_property
    def _nobodys(self) -> bytes:
        return bcrypt.hashpw(secrets.token_bytes(16).hex().encode(), bcrypt.gensalt(self._cost))


def _compared(given: bytes, kept: bytes) -> bool | None:
    try:
        return bcrypt.checkpw(given, kept)
    except ValueError:  # the stored value is not a hash
        return None


def check_rule(password: str, rule: str = "") -> None:
    """argo: passwordPattern. Raises UserError if the password is not allowed."""
    try:
        fits = re.search(rule or USUAL_RULE, password)
    except re.error:
        raise UserError("passwordPattern is not a valid regular expression", where="argocd-cm") from None
    if not fits:
        raise UserError(f"the new password does not match passwordPattern {rule or USUAL_RULE}; choose another")
    if len(password.encode()) > LONGEST or "\0" in password:
        raise UserError(f"the new password is longer than {LONGEST} bytes or contains NUL; choose another")


def initial() -> str:
    return secrets.token_urlsafe(INITIAL_BYTES)
