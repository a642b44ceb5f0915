"""SSO login: redirects a browser to the identity provider and handles the callback.

In: a browser's cookie and the callback parameters. Out: a redirect URL, a session. Never: accepts a callback that this
browser did not start, or one callback twice.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets as chance
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Protocol

from argosy.errors import TransientError, UserError
from argosy.kube.controller.clock import Clock
from argosy.web.auth.account_changes import new_id
from argosy.web.auth.account_state import Standing
from argosy.web.auth.caller import BadLogin
from argosy.web.auth.oidc_client import Conversation, NotVouched, Person, Secrets
from argosy.web.auth.tokens import BadToken, decoded, encoded
from argosy.web.auth.user_info import UserInfoGroups

log = logging.getLogger(__name__)
SECONDS: Final = 300
LONGEST_COOKIE: Final = 3_800  # bytes; browser limit
MOST_USED: Final = 10_000
QUIET: Final = 1.0  # seconds between two warnings with the same message


@dataclass(frozen=True)
class Going:
    where: str  # login page of the provider
    cookie: str  # cookie that the callback must present


@dataclass(frozen=True)
class Back:
    token: str
    next: str


class Doorkeeper(Protocol):
    """The part of the Authenticator that SSO needs."""

    standing: Standing

    @property
    def key(self) -> bytes: ...

    def welcome(self, session_id: str, person: str, groups: tuple[str, ...], email: str) -> str: ...


class SigningIn:
    def __init__(self, identities: Doorkeeper, clock: Clock) -> None:
        self._identities, self._clock = identities, clock
        self._conversation = Conversation(clock)
        self.user_info = UserInfoGroups(self._conversation, clock)
        self._used: dict[str, float] = {}
        self._warned: dict[str, float] = {}

    @property
    def provider_name(self) -> str:
        """Label of the login button; empty without a provider."""
        found = self._identities.standing.provider
        return found.name if found else ""

    async def leave(self, callback: str, next_page: str) -> Going:
        """Start a login. Raises BadLogin if there is no provider, or it is unavailable."""
        provider = self._identities.standing.provider
        if provider is None:
            raise BadLogin
        asked = Secrets(*(chance.token_urlsafe(48) for _ in range(3)))
        try:
            where = await self._conversation.address(provider, asked, callback)
        except (NotVouched, TransientError, UserError) as error:
            self._warn("cannot reach the identity provider: %s", error)
            raise BadLogin from error
        kept = {"s": asked.state, "n": asked.nonce, "v": asked.verifier, "p": next_page, "c": callback}
        return Going(where, self._sealed({**kept, "i": provider.title, "e": int(self._now()) + SECONDS}))

    async def come_back(self, cookie: str, state: str, code: str, issuer: str) -> Back:
        """Finish a login. Raises BadLogin."""
        try:
            kept = self._opened(cookie)
            person = await self._person(kept, state, code, issuer)
        except (BadToken, NotVouched, TransientError, UserError) as error:
            self._warn("SSO login refused: %s", error)
            raise BadLogin from error
        session_id = new_id()
        token = self._session(session_id, person)
        self.user_info.remember(session_id, person)  # only now: a refused login leaves no access token
        return Back(token, kept["p"])

    async def _person(self, kept: dict[str, Any], state: str, code: str, issuer: str) -> Person:
        standing = self._identities.standing
        provider = standing.provider
        if provider is None or kept["i"] != provider.title or (issuer and issuer != provider.issuer):
            raise NotVouched("the login was started with another provider")
        if not code or not hmac.compare_digest(state.encode(), str(kept["s"]).encode()):
            raise NotVouched("the login was not started by this browser")
        self._use(state)
        secrets = Secrets(kept["s"], kept["n"], kept["v"])
        person = await self._conversation.person(provider, secrets, kept["c"], code, standing.policy.scopes)
        if person.subject in standing.accounts:
            raise NotVouched("the subject has the name of a local account")
        return person

    def _use(self, state: str) -> None:
        now = self._now()
        self._used = {each: until for each, until in self._used.items() if until > now}
        if state in self._used:
            raise NotVouched("the callback was already used")
        if len(self._used) >= MOST_USED:  # the provider refuses a reused code, too
            del self._used[next(iter(self._used))]
        self._used[state] = now + SECONDS + 1

    def _warn(self, text: str, error: Exception) -> None:
        """Log at most one warning per second and message: strangers could fill the log. The audit log counts all."""
        now = self._clock.monotonic()
        if now - self._warned.get(text, -QUIET) >= QUIET:
            self._warned[text] = now
            log.warning(text, error)

    def _session(self, session_id: str, person: Person) -> str:
        welcome = self._identities.welcome
        made = welcome(session_id, person.subject, person.groups, person.email)
        if len(made) <= LONGEST_COOKIE:
            return made
        named = self._identities.standing.enforcer.names  # too large for a cookie: keep groups in RBAC rules
        groups = tuple(group for group in person.groups if group in named)
        made = welcome(session_id, person.subject, groups, person.email)
        if len(made) > LONGEST_COOKIE:
            log.warning("SSO login refused: too many groups with roles for a session cookie")
            raise BadLogin
        return made

    # -- cookie -------------------------------------------------------------------------------------------------

    def _sealed(self, kept: dict[str, Any]) -> str:
        text = encoded(json.dumps(kept).encode())
        return f"{text}.{self._seal(text)}"

    def _opened(self, cookie: str) -> dict[str, Any]:
        text, _, seal = cookie.partition(".")
        if not hmac.compare_digest(seal.encode(), self._seal(text).encode()):
            raise BadToken("the login cookie is missing or invalid")
        kept: dict[str, Any] = json.loads(decoded(text))
        if kept["e"] <= self._now():
            raise BadToken("the login took too long")
        return kept

    def _seal(self, text: str) -> str:
        return encoded(hmac.new(self._identities.key, b"sign-in\0" + text.encode(), sha256).digest())

    def _now(self) -> float:
        return self._clock.now().timestamp()
