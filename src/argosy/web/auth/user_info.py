"""Groups from the identity provider's userinfo endpoint, cached per session.

In: the tokens of a login, and the sessions of requests. Out: groups that are at most `userInfoCacheExpiration` old.
Never: an access token on disk, in a cookie or in a log, or kept longer than its session; groups of another subject.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from argosy.errors import TransientError, UserError
from argosy.kube.controller.clock import Clock
from argosy.web.auth.identity_provider import Provider
from argosy.web.auth.oidc_client import Conversation, NotVouched, Person, ProviderLogin
from argosy.web.auth.tokens import DAY, SKEW, Claims

log = logging.getLogger(__name__)
MAX_SESSIONS: Final = 10_000
MAX_SESSION_SECONDS: Final = DAY + SKEW
NO_LOGIN: Final = ProviderLogin({}, "")
RETRY_SECONDS: Final = 5.0  # seconds between two requests for one session while the provider fails


@dataclass(slots=True)
class SessionGroups:
    """The latest groups of one session, and the login to read newer ones."""

    login: ProviderLogin
    groups: tuple[str, ...]
    began: float  # start of the session; all times here are monotonic
    fetched: float
    failed: float = float("-inf")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)


class UserInfoGroups:
    """argo: the access token is cached; without it, a session with outdated groups is over."""

    def __init__(self, conversation: Conversation, clock: Clock) -> None:
        self._conversation, self._clock = conversation, clock
        self._sessions: dict[str, SessionGroups] = {}

    def remember(self, session_id: str, person: Person) -> None:
        self._drop_expired()
        if person.login is None:
            return
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        now = self._clock.monotonic()
        self._sessions[session_id] = SessionGroups(person.login, person.groups, now, now)

    def forget(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)

    def find_groups(self, provider: Provider, claims: Claims) -> tuple[str, ...] | None:
        """Return the groups of a session; None if they are older than the provider's setting allows."""
        if not provider.user_info_seconds:
            return claims.groups
        known = self._sessions.get(claims.id)
        if known is not None:
            return known.groups if self._is_fresh(provider, known) else None
        age = self._clock.now().timestamp() - claims.began  # login at another process, or before a restart
        return claims.groups if -SKEW <= age < provider.user_info_seconds else None

    async def refresh(self, provider: Provider, claims: Claims, scopes: Sequence[str]) -> None:
        """Read groups again if they are too old. Keeps the old ones if the provider is unavailable."""
        self._drop_expired()
        known = self._sessions.get(claims.id)
        if known is None or not provider.user_info_seconds or self._is_fresh(provider, known):
            return
        async with known.lock:
            if self._is_fresh(provider, known) or self._clock.monotonic() - known.failed < RETRY_SECONDS:
                return
            try:
                person = await self._conversation.person_with_groups(provider, known.login, scopes)
            except NotVouched as error:
                # kept without its token: the session is over, regardless of the wall clock
                known.login, known.fetched, known.failed = NO_LOGIN, float("-inf"), float("inf")
                log.warning("session ended: the userinfo endpoint refused its access token: %s", error)
            except (TransientError, UserError) as error:
                known.failed = self._clock.monotonic()  # after the request, which may take longer than the pause
                log.warning("cannot read groups from the userinfo endpoint: %s", error)
            else:
                known.groups, known.fetched = person.groups, self._clock.monotonic()

    def _is_fresh(self, provider: Provider, known: SessionGroups) -> bool:
        return self._clock.monotonic() - known.fetched < provider.user_info_seconds

    def _drop_expired(self) -> None:
        """Drop access tokens of expired sessions; the oldest sessions come first."""
        oldest = self._clock.monotonic() - MAX_SESSION_SECONDS
        for session_id in list(takewhile(lambda known: self._sessions[known].began < oldest, self._sessions)):
            del self._sessions[session_id]
