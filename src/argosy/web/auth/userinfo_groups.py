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
from argosy.web.auth.oidc_client import OidcClient, OidcLoginError, OidcUser, ProviderLogin
from argosy.web.auth.oidc_provider_settings import OidcProvider
from argosy.web.auth.signed_tokens import CLOCK_SKEW_SECONDS, DAY_SECONDS, TokenClaims

log = logging.getLogger(__name__)
MAX_SESSIONS: Final = 10_000
MAX_SESSION_SECONDS: Final = DAY_SECONDS + CLOCK_SKEW_SECONDS
NO_LOGIN: Final = ProviderLogin({}, "")
RETRY_SECONDS: Final = 5.0  # seconds between two requests for one session while the provider fails


@dataclass(slots=True)
class SessionGroups:
    """The latest groups of one session, and the login to read newer ones."""

    login: ProviderLogin
    groups: tuple[str, ...]
    started: float  # start of the session; all times here are monotonic
    fetched_at: float
    failed_at: float = float("-inf")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)


class UserInfoGroups:
    """argo: the access token is cached; without it, a session with outdated groups is over."""

    def __init__(self, oidc_client: OidcClient, clock: Clock) -> None:
        self._oidc_client, self._clock = oidc_client, clock
        self._sessions: dict[str, SessionGroups] = {}

    def remember(self, session_id: str, user: OidcUser) -> None:
        self._drop_expired()
        if user.login is None:
            return
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        now = self._clock.monotonic()
        self._sessions[session_id] = SessionGroups(user.login, user.groups, now, now)

    def forget(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)

    def find_groups(self, provider: OidcProvider, claims: TokenClaims) -> tuple[str, ...] | None:
        """Return the groups of a session; None if they are older than the provider's setting allows."""
        if not provider.user_info_cache_seconds:
            return claims.groups
        session = self._sessions.get(claims.id)
        if session is not None:
            return session.groups if self._is_fresh(provider, session) else None
        age = self._clock.now().timestamp() - claims.session_started_at  # login at another process, or before a restart
        return claims.groups if -CLOCK_SKEW_SECONDS <= age < provider.user_info_cache_seconds else None

    async def refresh(self, provider: OidcProvider, claims: TokenClaims, scopes: Sequence[str]) -> None:
        """Read groups again if they are too old. Keeps the old ones if the provider is unavailable."""
        self._drop_expired()
        session = self._sessions.get(claims.id)
        if session is None or not provider.user_info_cache_seconds or self._is_fresh(provider, session):
            return
        async with session.lock:
            if self._is_fresh(provider, session) or self._clock.monotonic() - session.failed_at < RETRY_SECONDS:
                return
            try:
                user = await self._oidc_client.fetch_user_with_groups(provider, session.login, scopes)
            except OidcLoginError as error:
                # kept without its token: the session is over, regardless of the wall clock
                session.login, session.fetched_at, session.failed_at = NO_LOGIN, float("-inf"), float("inf")
                log.warning("session ended: the userinfo endpoint refused its access token: %s", error)
            except (TransientError, UserError) as error:
                session.failed_at = self._clock.monotonic()  # after the request, which may take longer than the pause
                log.warning("cannot read groups from the userinfo endpoint: %s", error)
            else:
                session.groups, session.fetched_at = user.groups, self._clock.monotonic()

    def _is_fresh(self, provider: OidcProvider, session: SessionGroups) -> bool:
        return self._clock.monotonic() - session.fetched_at < provider.user_info_cache_seconds

    def _drop_expired(self) -> None:
        """Drop access tokens of expired sessions; the oldest sessions come first."""
        oldest = self._clock.monotonic() - MAX_SESSION_SECONDS
        for session_id in list(takewhile(lambda session: self._sessions[session].started < oldest, self._sessions)):
            del self._sessions[session_id]
