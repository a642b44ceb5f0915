"""Groups from the identity provider's userinfo endpoint, for as long as a session lasts.

In: what the provider said at a login, and sessions of requests. Out: groups that are at most `userInfoCacheExpiration`
old. Never: an access token on disk, in a cookie or in a log, or for longer than a session lasts; groups
of another subject than the session's.
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
RETRY_SECONDS: Final = 5.0  # between two questions for one session, while the provider does not answer


@dataclass(slots=True)
class SessionGroups:
    """The newest groups of one session, and what is needed to ask for newer ones."""

    login: ProviderLogin
    groups: tuple[str, ...]
    began: float  # the session, by the monotonic clock, as all times here
    fetched: float
    failed: float = float("-inf")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)


class UserInfoGroups:
    """argo: the access token is kept in a cache; without it, a session whose groups are too old is over."""

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
        """The groups of a session; None if they are older than the provider's setting allows."""
        if not provider.user_info_seconds:
            return claims.groups
        known = self._sessions.get(claims.id)
        if known is not None:
            return known.groups if self._is_fresh(provider, known) else None
        age = self._clock.now().timestamp() - claims.began  # of a login at another process, or before a restart
        return claims.groups if -SKEW <= age < provider.user_info_seconds else None

    async def refresh(self, provider: Provider, claims: Claims, scopes: Sequence[str]) -> None:
        """Asks the provider if the groups of this session are too old. Leaves them so if it does not answer."""
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
                # Kept without its token: the session is over, whatever the wall clock says of its age.
                known.login, known.fetched, known.failed = NO_LOGIN, float("-inf"), float("inf")
                log.warning("session ended: the userinfo endpoint refused its access token: %s", error)
            except (TransientError, UserError) as error:
                known.failed = self._clock.monotonic()  # after the question, which may have taken longer than the pause
                log.warning("cannot read groups from the userinfo endpoint: %s", error)
            else:
                known.groups, known.fetched = person.groups, self._clock.monotonic()

    def _is_fresh(self, provider: Provider, known: SessionGroups) -> bool:
        return self._clock.monotonic() - known.fetched < provider.user_info_seconds

    def _drop_expired(self) -> None:
        """Forget access tokens of sessions that are over; the oldest sessions come first."""
        oldest = self._clock.monotonic() - MAX_SESSION_SECONDS
        for session_id in list(takewhile(lambda known: self._sessions[known].began < oldest, self._sessions)):
            del self._sessions[session_id]
