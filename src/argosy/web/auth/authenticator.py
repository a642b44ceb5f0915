"""Authentication: identifies callers, issues sessions, and checks that credentials are still valid.

In: a cluster, a cluster view, and the credentials of requests. Out: Callers, sessions, permissions. Never: treats an
invalid credential as none; reveals why it is invalid, except that a session was revoked; stores a password or a token.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from typing import Final

from argosy.errors import PolicyError
from argosy.gitops.policy.builtin_and_project_roles import is_reserved, parse_role_subject
from argosy.gitops.policy.rbac import RbacEnforcer, RbacPermissions, RbacRequester
from argosy.kube.client import Cluster
from argosy.kube.controller.clock import SYSTEM_CLOCK, Clock, sleep
from argosy.web.auth import signed_tokens
from argosy.web.auth.account_password_token_store import AccountStore, generate_token_id
from argosy.web.auth.accounts import API_KEY, CAPABILITIES, LOGIN, Account, TokenRecord
from argosy.web.auth.cached_accounts_and_policy import AccountState, ObservableCluster
from argosy.web.auth.caller import (
    BadCredential,
    BadLogin,
    Caller,
    CredentialKind,
    RequestCredentials,
    RevokedCredential,
)
from argosy.web.auth.derived_token_limits import NO_LIMITS, TokenLimits
from argosy.web.auth.login_codes import LoginCodes
from argosy.web.auth.login_rate_limit import UNKNOWN_ACCOUNT, LoginRateLimiter
from argosy.web.auth.oidc_login import SsoLogin
from argosy.web.auth.passwords import PasswordHasher
from argosy.web.auth.session_revocation import SessionRevocations
from argosy.web.auth.signed_tokens import (
    CLOCK_SKEW_SECONDS,
    DAY_SECONDS,
    ISSUER,
    MAX_PARENTS,
    SSO_ISSUER,
    BadToken,
    ParentToken,
    RevokedToken,
    TokenClaims,
)

IDLE_TIMEOUT_SECONDS: Final = 3600  # seconds; a browser session ends that long after its last request
RENEWAL_SECONDS: Final = 300  # seconds of use after which its token is replaced
MIN_LOGIN_SECONDS: Final = 0.4  # seconds; every login response takes at least that long, so that timing reveals nothing
REFRESH_INTERVAL_SECONDS: Final = 1.0  # seconds
MAX_REFRESHED_TOKENS: Final = 1_000
ARGOCD_COOKIE: Final = "argocd.token"  # argo
MAX_NAME_CHARACTERS: Final = 64


class Authenticator:
    def __init__(
        self,
        cluster: Cluster,
        cluster_view: ObservableCluster,
        namespace: str,
        *,
        cookie: str = "argosy",
        codes: LoginCodes | None = None,
        clock: Clock = SYSTEM_CLOCK,
        hashing: PasswordHasher | None = None,
        min_login_seconds: float = MIN_LOGIN_SECONDS,
    ) -> None:
        self._cluster, self._clock, self._codes = cluster, clock, codes
        self.cookie, self._min_login_seconds = cookie, min_login_seconds
        self.state = AccountState(cluster_view, namespace)
        self.account_store = AccountStore(cluster, namespace, clock, hashing)
        self.rate_limiter = LoginRateLimiter(cluster, namespace, clock)
        self.revocations = SessionRevocations(cluster, namespace, clock)
        self.sso_login = SsoLogin(self, clock)
        self._last_permissions: tuple[RbacEnforcer | None, Caller | None, RbacPermissions | None] = (None, None, None)
        self._refresh_lock = asyncio.Lock()
        self._refreshed_at: dict[str, float] = {}
        self._login_counts = {"success": 0, "failure": 0}

    async def prepare(self) -> bool:
        """Prepare for the first request. True if admin has a new password."""
        is_new = await self.account_store.ensure_key_and_admin_password()
        await self.account_store.hashing.prepare_dummy_hash()
        await self.state.refresh(self._cluster)
        self.state.report_provider_error()
        return is_new

    @property
    def signing_key(self) -> bytes:
        """Signing key, for derived keys. Without one, everything that it would protect is refused."""
        if len(self.state.key) < signed_tokens.MIN_KEY_BYTES:
            raise BadCredential
        return self.state.key

    # -- callers ------------------------------------------------------------------------------------------------

    async def identify(self, credentials: RequestCredentials) -> Caller | None:
        cookie = credentials.cookies.get(self.cookie) or credentials.cookies.get(ARGOCD_COOKIE)
        if credentials.bearer:
            return await self._identify_token(credentials.bearer, "bearer")
        if cookie:
            return await self._identify_token(cookie, "cookie")
        if self.state.is_anonymous_allowed:
            return Caller("", credential_kind="anonymous")
        return None

    def is_still_valid(self, caller: Caller) -> bool:
        if caller.credential_kind in ("nobody", "anonymous"):
            return caller.credential_kind == "anonymous" and self.state.is_anonymous_allowed
        if caller.key_id != self.state.key_id or not isinstance(caller.claims, TokenClaims):
            return False
        if self.is_expired(caller):
            return False
        try:
            self._build_caller(caller.claims, caller.credential_kind)
        except BadToken:
            return False
        return True

    def is_expired(self, caller: Caller) -> bool:
        """True if the token has expired or was replaced by the browser, or its groups must be read again."""
        return 0 < caller.expires <= self._now() or self._has_outdated_groups(caller)

    def _has_outdated_groups(self, caller: Caller) -> bool:
        provider = self.state.provider
        if caller.kind != "person" or provider is None or not isinstance(caller.claims, TokenClaims):
            return False
        return self.sso_login.user_info.find_groups(provider, caller.claims) != caller.groups

    def permissions(self, caller: Caller) -> RbacPermissions:
        return self.state.enforcer.get_permissions(caller.rbac_requester)

    def is_allowed(self, caller: Caller, resource: str, action: str, rbac_object: str) -> bool:
        """Check a permission. The last caller's permissions are cached, because lists check thousands of objects."""
        enforcer = self.state.enforcer
        last_enforcer, last_caller, permissions = self._last_permissions
        if last_caller is not caller or last_enforcer is not enforcer or permissions is None:
            permissions = enforcer.get_permissions(caller.rbac_requester)
            self._last_permissions = (enforcer, caller, permissions)
        return permissions.may(resource, action, rbac_object)

    async def _identify_token(self, token: str, credential_kind: CredentialKind) -> Caller:
        try:
            claims = signed_tokens.verify_token(token, self.state.key, self._now())
        except BadToken:
            raise BadCredential from None
        await self._refresh_groups(claims)
        try:
            return self._build_caller(claims, credential_kind)
        except BadToken:  # signed by us: perhaps it is newer than the cluster view
            await self._refresh_state(claims)
        try:
            return self._build_caller(signed_tokens.verify_token(token, self.state.key, self._now()), credential_kind)
        except RevokedToken:
            raise RevokedCredential from None
        except BadToken:
            raise BadCredential from None

    async def _refresh_groups(self, claims: TokenClaims) -> None:
        """Read groups from the identity provider, unless the session is invalid anyway."""
        provider = self.state.provider
        if claims.issuer != SSO_ISSUER or provider is None:
            return
        try:
            self._check_sso_session(claims)
        except BadToken:
            return  # the caller of this method finds the same error and refuses
        await self.sso_login.user_info.refresh(provider, claims, self.state.policy.scopes)

    async def _refresh_state(self, claims: TokenClaims) -> None:
        """Read accounts from the cluster, one at a time and rarely per token: revoked tokens may come back."""
        now = self._clock.monotonic()
        if now - self._refreshed_at.get(claims.id, float("-inf")) < REFRESH_INTERVAL_SECONDS:
            return
        if len(self._refreshed_at) >= MAX_REFRESHED_TOKENS:
            self._refreshed_at.clear()
        self._refreshed_at[claims.id] = now
        async with self._refresh_lock:
            role = parse_role_subject(claims.subject)
            await self.state.refresh(self._cluster, role[0] if role else "")

    def _build_caller(self, claims: TokenClaims, credential_kind: CredentialKind) -> Caller:
        """Return the caller of a signed token. Raises BadToken if the token is no longer valid."""
        caller = Caller(
            claims.subject,
            credential_kind=credential_kind,
            id=claims.id,
            issuer=ISSUER,
            expires=claims.expires_at,
            claims=claims,
            key_id=self.state.key_id,
        )
        if claims.issuer == SSO_ISSUER:
            return self._build_sso_caller(claims, caller)
        for parent in claims.parents:
            self._check_parent(parent)
        if role := parse_role_subject(claims.subject):
            self._check_role_token(claims, *role)
            return replace(caller, kind="project")
        name, _, capability = claims.subject.partition(":")
        self._check_account(claims, name, capability or LOGIN)
        return replace(caller, name=name, kind="account")

    def get_token_limits(self, caller: Caller, subjects: RbacRequester) -> TokenLimits:
        """Return the limits of a token that the caller creates. Raises PolicyError if it would have more rights."""
        claims = caller.claims
        if not isinstance(claims, TokenClaims) or not _is_api_token(caller, claims):
            return NO_LIMITS
        permissions = self.state.enforcer.get_permissions
        if subjects != caller.rbac_requester and not permissions(caller.rbac_requester).covers(permissions(subjects)):
            raise PolicyError(
                f"a token cannot create a token with more permissions than its own, and {subjects.name!r} has more; "
                "sign in with a password to create it"
            )
        parents = (*claims.parents, ParentToken(claims.subject, claims.id, claims.issued_at))
        if len(parents) > MAX_PARENTS:
            raise PolicyError(
                f"the chain of tokens that create tokens is longer than {MAX_PARENTS}; sign in with a password"
            )
        return TokenLimits(claims.expires_at, parents)

    def _check_parent(self, parent: ParentToken) -> None:
        """Raises BadToken if the token that created another token is no longer valid."""
        if role := parse_role_subject(parent.subject):
            self._check_token_record(self.state.find_role_tokens(*role) or (), parent.id, parent.issued)
            return
        account = self.state.accounts.get(parent.subject.partition(":")[0])
        if account is None or not account.has_capability(API_KEY) or parent.issued <= account.password_changed_at:
            raise BadToken("the account does not exist or lacks the capability")
        self._check_token_record(account.tokens, parent.id, parent.issued)

    def _check_sso_session(self, claims: TokenClaims) -> None:
        """Raises BadToken if an SSO session is invalid, regardless of its groups."""
        self._check_session(claims)
        if is_reserved(claims.subject) or any(map(is_reserved, claims.groups)):
            raise BadToken("the subject or a group has the name of a role")
        if claims.subject in self.state.accounts:
            raise BadToken("the subject has the name of a local account")
        if not claims.provider or claims.provider != self.provider_id:
            raise BadToken("the identity provider is no longer configured")

    def _build_sso_caller(self, claims: TokenClaims, caller: Caller) -> Caller:
        self._check_sso_session(claims)
        issuer = claims.provider.partition(" ")[0]
        provider = self.state.provider
        groups = self.sso_login.user_info.find_groups(provider, claims) if provider else None
        if groups is None:
            raise BadToken("the groups are older than userInfoCacheExpiration")
        return replace(caller, kind="person", groups=groups, email=claims.email, issuer=issuer)

    def _check_account(self, claims: TokenClaims, name: str, capability: str) -> None:
        account = self.state.accounts.get(name)
        if (
            account is None
            or is_reserved(name)
            or capability not in CAPABILITIES
            or not account.has_capability(capability)
        ):
            raise BadToken("the account does not exist or lacks the capability")
        if claims.issued_at <= account.password_changed_at and not self._has_current_password_mark(
            claims, account, capability
        ):
            raise BadToken("the password was changed after the token was issued")
        if capability == LOGIN:
            self._check_session(claims)
            return
        self._check_token_record(account.tokens, claims.id, claims.issued_at)

    def _check_session(self, claims: TokenClaims) -> None:
        if not claims.expires_at or claims.expires_at - claims.session_started_at > DAY_SECONDS + CLOCK_SKEW_SECONDS:
            raise BadToken("the session lifetime exceeds one day")
        if self.revocations.is_revoked(claims.id, claims.session_started_at, self.state.revoked_sessions):
            raise RevokedToken("the session was revoked")

    def _check_role_token(self, claims: TokenClaims, project: str, role: str) -> None:
        self._check_token_record(self.state.find_role_tokens(project, role) or (), claims.id, claims.issued_at)

    def _check_token_record(self, records: Iterable[TokenRecord], token_id: str, issued: int) -> None:
        """Match by id and time, because an id can be reused after its token was deleted."""
        # argo: reads the clock twice, for the token and for its record, so the times may differ
        matching = [
            record
            for record in records
            if record.id == token_id and abs(record.issued_at - issued) <= CLOCK_SKEW_SECONDS
        ]
        if not matching or any(record.expires_at and record.expires_at <= self._now() for record in matching):
            raise BadToken("the token was deleted, or has expired")

    # -- sessions -----------------------------------------------------------------------------------------------

    async def login(self, name: str, password: str, *, is_browser: bool = False, peer: str = "") -> str:
        """Return a session token. Raises BadLogin; neither the error nor its timing reveals whether the name exists."""
        started = self._clock.monotonic()
        try:
            account = await self._check_password(name, password, peer)
        finally:
            await asyncio.shield(sleep(self._clock, self._min_login_seconds - (self._clock.monotonic() - started)))
        self._login_counts["success" if account else "failure"] += 1
        if account is None:
            raise BadLogin
        return self._create_session(account, is_browser=is_browser)

    def get_login_counts(self) -> dict[str, int]:
        """Return the number of successful and failed logins since this process started."""
        return dict(self._login_counts)

    async def login_with_one_time_code(self, code: str) -> str:
        """Sign in with a one-time code. Raises BadLogin."""
        name = self._codes.redeem(code) if self._codes else None
        account = self.state.accounts.get(name or "")
        if account is None or not account.has_capability(LOGIN):
            raise BadLogin
        return self._create_session(account, is_browser=True)

    def create_sso_session(self, session_id: str, subject: str, groups: tuple[str, ...], email: str) -> str:
        """Return a session for a user whom the identity provider has just authenticated."""
        now = self._now()
        lifetime_seconds = min(IDLE_TIMEOUT_SECONDS, self.state.session_seconds)
        claims = TokenClaims(
            SSO_ISSUER, subject, session_id, now, now + lifetime_seconds, now, groups, self.provider_id, email
        )
        return signed_tokens.sign_token(claims, self.state.key)

    async def logout(self, caller: Caller) -> None:
        claims = caller.claims
        if isinstance(claims, TokenClaims) and not claims.subject.endswith(f":{API_KEY}") and caller.kind != "project":
            self.sso_login.user_info.forget(claims.id)
            await self.revocations.revoke(
                claims.id, claims.session_started_at + DAY_SECONDS + CLOCK_SKEW_SECONDS, self.state.revoked_sessions
            )

    def renew_token(self, caller: Caller) -> str | None:
        """Return a replacement for the token of an active browser session; None if it is not due."""
        claims, now = caller.claims, self._now()
        if caller.credential_kind != "cookie" or not isinstance(claims, TokenClaims) or not self.is_still_valid(caller):
            return None
        if claims.expires_at - claims.issued_at > IDLE_TIMEOUT_SECONDS or now - claims.issued_at < RENEWAL_SECONDS:
            return None
        expires = min(now + IDLE_TIMEOUT_SECONDS, claims.session_started_at + self.state.session_seconds)
        if expires <= claims.expires_at:
            return None
        return signed_tokens.sign_token(replace(claims, issued_at=now, expires_at=expires), self.state.key)

    async def verify_password(self, caller: Caller, password: str, peer: str = "") -> bool:
        """True if it is the caller's own password; rate limited like a login."""
        return caller.kind == "account" and await self._check_password(caller.name, password, peer) is not None

    async def _check_password(self, name: str, password: str, peer: str) -> Account | None:
        account = self.state.accounts.get(name) if len(name) <= MAX_NAME_CHARACTERS else None
        attempt = await self.rate_limiter.count_attempt(account.name if account else UNKNOWN_ACCOUNT, peer)
        if attempt is None:
            return None
        password_hash = account.password_hash if account and account.has_capability(LOGIN) else b""
        if not await self.account_store.hashing.matches(password, password_hash):
            return None
        await self.rate_limiter.remove_attempt(attempt)
        return account

    def _create_session(self, account: Account, *, is_browser: bool) -> str:
        issued, session_id = max(self._now(), account.password_changed_at + 1), generate_token_id()
        if self._has_future_password_time(account):
            issued, session_id = self._now(), f"{self._build_password_prefix(account)}{session_id}"
        lifetime_seconds = (
            min(IDLE_TIMEOUT_SECONDS, self.state.session_seconds) if is_browser else self.state.session_seconds
        )
        claims = TokenClaims(ISSUER, f"{account.name}:{LOGIN}", session_id, issued, issued + lifetime_seconds, issued)
        return signed_tokens.sign_token(claims, self.state.key)

    def _has_current_password_mark(self, claims: TokenClaims, account: Account, capability: str) -> bool:
        """True if the session id contains the password mark, which is used if the password's time is in the future."""
        is_named = claims.id.startswith(self._build_password_prefix(account))
        return capability == LOGIN and self._has_future_password_time(account) and is_named

    def _has_future_password_time(self, account: Account) -> bool:
        """True if the password was set before the clock was set back; every new session would look older than it."""
        return account.password_changed_at > self._now() + CLOCK_SKEW_SECONDS

    def _build_password_prefix(self, account: Account) -> str:
        """Prefix of such session ids, derived from the password hash: they end when the password changes."""
        return f"{hmac.new(self.signing_key, b'password' + account.password_hash, sha256).hexdigest()[:32]}."

    @property
    def provider_id(self) -> str:
        """Id of the configured identity provider: issuer and client id. Empty: none."""
        provider = self.state.provider
        return provider.provider_id if provider else ""

    def _now(self) -> int:
        return int(self._clock.now().timestamp())


def _is_api_token(caller: Caller, claims: TokenClaims) -> bool:
    """True for API tokens, False for sessions."""
    return caller.kind == "project" or (caller.kind == "account" and claims.subject.endswith(f":{API_KEY}"))
