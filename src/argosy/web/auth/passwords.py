"""Password hashing with bcrypt, compatible with Argo CD.

In: a password and the stored hash. Out: match or not, or a new hash. Never: answers faster for an unknown account.
"""

from __future__ import annotations

import asyncio
import secrets
from functools import cached_property
from typing import Final

import bcrypt

from argosy.errors import UserError
from argosy.languages.go_regexp import InvalidGoRegexp, MatchTooExpensiveError, compile_go_regexp

BCRYPT_COST: Final = 10  # argo
MAX_PASSWORD_BYTES: Final = 72  # bytes that bcrypt uses
DEFAULT_PATTERN: Final = "^.{8,32}$"  # argo: passwordPattern
MAX_CONCURRENT_HASHES: Final = 4
INITIAL_PASSWORD_BYTES: Final = 18  # of randomness


class PasswordHasher:
    """Compares passwords, a few at a time."""

    def __init__(self, cost: int = BCRYPT_COST) -> None:
        self._cost = cost
        self._semaphore = asyncio.Semaphore(MAX_CONCURRENT_HASHES)
        self.comparison_count = 0

    async def matches(self, password: str, password_hash: bytes) -> bool:
        """Compare a password. Takes as long if there is no stored hash or it is invalid."""
        password_bytes = password.encode("utf-8", "surrogatepass")
        is_comparable = 0 < len(password_bytes) <= MAX_PASSWORD_BYTES and b"\0" not in password_bytes
        async with self._semaphore:
            if password_hash and is_comparable:
                self.comparison_count += 1
                is_match = await asyncio.to_thread(_compare, password_bytes, password_hash)
                if is_match is not None:
                    return is_match
            await asyncio.to_thread(self._compare_dummy)
            return False

    async def prepare_dummy_hash(self) -> None:
        """Create the dummy hash, so that the first login of an unknown account is not slower than later ones."""
        await asyncio.to_thread(self._compare_dummy)

    async def hash_password(self, password: str) -> bytes:
        async with self._semaphore:
            return await asyncio.to_thread(bcrypt.hashpw, password.encode(), bcrypt.gensalt(self._cost))

    def _compare_dummy(self) -> None:
        _compare(b"nobody", self._dummy_hash)

    @cached_property
    def _dummy_hash(self) -> bytes:
        return bcrypt.hashpw(secrets.token_bytes(16).hex().encode(), bcrypt.gensalt(self._cost))


def _compare(password_bytes: bytes, password_hash: bytes) -> bool | None:
    try:
        return bcrypt.checkpw(password_bytes, password_hash)
    except ValueError:  # the stored value is not a hash
        return None


def check_password_pattern(password: str, pattern: str = "") -> None:
    """argo: passwordPattern. Raises UserError if the password is not allowed."""
    try:
        is_match = compile_go_regexp(pattern or DEFAULT_PATTERN)(password)
    except InvalidGoRegexp as error:
        raise UserError(f"passwordPattern is not a valid regular expression: {error}", where="argocd-cm") from None
    except MatchTooExpensiveError:
        is_match = False
    if not is_match:
        raise UserError(f"the new password does not match passwordPattern {pattern or DEFAULT_PATTERN}; choose another")
    if len(password.encode()) > MAX_PASSWORD_BYTES or "\0" in password:
        raise UserError(f"the new password is longer than {MAX_PASSWORD_BYTES} bytes or contains NUL; choose another")


def generate_password() -> str:
    return secrets.token_urlsafe(INITIAL_PASSWORD_BYTES)
