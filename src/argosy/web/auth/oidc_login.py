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
from argosy.kube.objects.base64url import decode_base64url, encode_base64url
from argosy.web.auth.account_password_token_store import generate_token_id
from argosy.web.auth.cached_accounts_and_policy import AccountState
from argosy.web.auth.caller import BadLogin
from argosy.web.auth.oidc_client import LoginSecrets, OidcClient, OidcLoginError, OidcUser
from argosy.web.auth.signed_tokens import BadToken
from argosy.web.auth.userinfo_groups import UserInfoGroups

log = logging.getLogger(__name__)
LOGIN_TIMEOUT_SECONDS: Final = 300
MAX_COOKIE_BYTES: Final = 3_800  # bytes; browser limit
MAX_USED_STATES: Final = 10_000
WARNING_INTERVAL_SECONDS: Final = 1.0  # seconds between two warnings with the same message


@dataclass(frozen=True)
class SsoRedirect:
    location: str  # login page of the provider
    cookie: str  # cookie that the callback must present


@dataclass(frozen=True)
class SsoResult:
    token: str
    next: str


class SsoSessionIssuer(Protocol):
    """The part of the Authenticator that SSO needs."""

    state: AccountState

    @property
    def signing_key(self) -> bytes: ...

    def create_sso_session(self, session_id: str, subject: str, groups: tuple[str, ...], email: str) -> str: ...


class SsoLogin:
    def __init__(self, authenticator: SsoSessionIssuer, clock: Clock) -> None:
        self._authenticator, self._clock = authenticator, clock
        self._oidc_client = OidcClient(clock)
        self.user_info = UserInfoGroups(self._oidc_client, clock)
        self._used_states: dict[str, float] = {}
        self._warned_at: dict[str, float] = {}

    @property
    def provider_name(self) -> str:
        """Label of the login button; empty without a provider."""
        provider = self._authenticator.state.provider
        return provider.name if provider else ""

    async def start_login(self, callback: str, next_page: str) -> SsoRedirect:
        """Start a login. Raises BadLogin if there is no provider, or it is unavailable."""
        provider = self._authenticator.state.provider
        if provider is None:
            raise BadLogin
        login_secrets = LoginSecrets(*(chance.token_urlsafe(48) for _ in range(3)))
        try:
            login_url = await self._oidc_client.build_login_url(provider, login_secrets, callback)
        except (OidcLoginError, TransientError, UserError) as error:
            self._warn("cannot reach the identity provider: %s", error)
            raise BadLogin from error
        cookie_values = {
            "s": login_secrets.state,
            "n": login_secrets.nonce,
            "v": login_secrets.verifier,
            "p": next_page,
            "c": callback,
        }
        return SsoRedirect(
            login_url,
            self._sign_cookie(
                {**cookie_values, "i": provider.provider_id, "e": int(self._now()) + LOGIN_TIMEOUT_SECONDS}
            ),
        )

    async def finish_login(self, cookie: str, state: str, code: str, issuer: str) -> SsoResult:
        """Finish a login. Raises BadLogin."""
        try:
            cookie_values = self._read_cookie(cookie)
            user = await self._fetch_user(cookie_values, state, code, issuer)
        except (BadToken, OidcLoginError, TransientError, UserError) as error:
            self._warn("SSO login refused: %s", error)
            raise BadLogin from error
        session_id = generate_token_id()
        token = self._create_session(session_id, user)
        self.user_info.remember(session_id, user)  # only now: a refused login leaves no access token
        return SsoResult(token, cookie_values["p"])

    async def _fetch_user(self, cookie_values: dict[str, Any], state: str, code: str, issuer: str) -> OidcUser:
        account_state = self._authenticator.state
        provider = account_state.provider
        if provider is None or cookie_values["i"] != provider.provider_id or (issuer and issuer != provider.issuer):
            raise OidcLoginError("the login was started with another provider")
        if not code or not hmac.compare_digest(state.encode(), str(cookie_values["s"]).encode()):
            raise OidcLoginError("the login was not started by this browser")
        self._mark_state_used(state)
        login_secrets = LoginSecrets(cookie_values["s"], cookie_values["n"], cookie_values["v"])
        user = await self._oidc_client.fetch_user(
            provider, login_secrets, cookie_values["c"], code, account_state.policy.scopes
        )
        if user.subject in account_state.accounts:
            raise OidcLoginError("the subject has the name of a local account")
        return user

    def _mark_state_used(self, state: str) -> None:
        now = self._now()
        self._used_states = {used_state: expires for used_state, expires in self._used_states.items() if expires > now}
        if state in self._used_states:
            raise OidcLoginError("the callback was already used")
        if len(self._used_states) >= MAX_USED_STATES:  # the provider refuses a reused code, too
            del self._used_states[next(iter(self._used_states))]
        self._used_states[state] = now + LOGIN_TIMEOUT_SECONDS + 1

    def _warn(self, text: str, error: Exception) -> None:
        """Log at most one warning per second and message: strangers could fill the log. The audit log counts all."""
        now = self._clock.monotonic()
        if now - self._warned_at.get(text, -WARNING_INTERVAL_SECONDS) >= WARNING_INTERVAL_SECONDS:
            self._warned_at[text] = now
            log.warning(text, error)

    def _create_session(self, session_id: str, user: OidcUser) -> str:
        create_session = self._authenticator.create_sso_session
        token = create_session(session_id, user.subject, user.groups, user.email)
        if len(token) <= MAX_COOKIE_BYTES:
            return token
        # Too large for a cookie: keep groups in RBAC rules.
        names_in_rules = self._authenticator.state.enforcer.member_names
        groups = tuple(group for group in user.groups if group in names_in_rules)
        token = create_session(session_id, user.subject, groups, user.email)
        if len(token) > MAX_COOKIE_BYTES:
            log.warning("SSO login refused: too many groups with roles for a session cookie")
            raise BadLogin
        return token

    # -- cookie -------------------------------------------------------------------------------------------------

    def _sign_cookie(self, cookie_values: dict[str, Any]) -> str:
        text = encode_base64url(json.dumps(cookie_values).encode())
        return f"{text}.{self._sign_text(text)}"

    def _read_cookie(self, cookie: str) -> dict[str, Any]:
        text, _, signature = cookie.partition(".")
        if not hmac.compare_digest(signature.encode(), self._sign_text(text).encode()):
            raise BadToken("the login cookie is missing or invalid")
        cookie_values: dict[str, Any] = json.loads(decode_base64url(text))
        if cookie_values["e"] <= self._now():
            raise BadToken("the login took too long")
        return cookie_values

    def _sign_text(self, text: str) -> str:
        return encode_base64url(
            hmac.new(self._authenticator.signing_key, b"sign-in\0" + text.encode(), sha256).digest()
        )

    def _now(self) -> float:
        return self._clock.now().timestamp()
