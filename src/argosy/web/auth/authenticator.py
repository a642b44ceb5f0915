"""Authentication: identifies callers, issues sessions, and checks that credentials are still valid.

In: a cluster, a cluster view, and the credentials of requests. Out: Callers, sessions, permissions. Never: treats an
invalid credential as none; reveals why it is invalid; stores a password or a token.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from typing import Final

from argosy.errors import PolicyError
from argosy.gitops.application.sync_policy import seconds_of
from argosy.gitops.policy.rbac import Enforcer, Permissions, Subjects
from argosy.gitops.policy.roles import is_reserved, role_of
from argosy.kube.client import Cluster
from argosy.kube.controller.clock import SYSTEM_CLOCK, Clock, sleep
from argosy.web.auth import tokens
from argosy.web.auth.account_changes import AccountBook, new_id
from argosy.web.auth.account_state import Standing, Watching
from argosy.web.auth.accounts import API_KEY, CAPABILITIES, LOGIN, Account, TokenMark
from argosy.web.auth.caller import BadCredential, BadLogin, Caller, How, Shown
from argosy.web.auth.login_codes import Codes
from argosy.web.auth.login_rate_limit import UNKNOWN, Attempts
from argosy.web.auth.oidc_login import SigningIn
from argosy.web.auth.passwords import Hashing
from argosy.web.auth.session_revocation import Revoking
from argosy.web.auth.token_limits import NO_LIMITS, TokenLimits
from argosy.web.auth.tokens import DAY, ISSUER, MAX_PARENTS, PERSONS, SKEW, BadToken, Claims, ParentToken

IDLE: Final = 3600  # seconds; a browser session ends that long after its last request
RENEWED: Final = 300  # seconds of use after which its token is replaced
PADDING: Final = 0.4  # seconds; every login response takes at least that long, so that timing reveals nothing
BETWEEN_LOOKS: Final = 1.0  # seconds
MOST_LOOKED_FOR: Final = 1_000
ARGOCD_COOKIE: Final = "argocd.token"  # argo
LONGEST_NAME: Final = 64


class Identities:
    def __init__(
        self,
        cluster: Cluster,
        lookout: Watching,
        namespace: str,
        *,
        cookie: str = "argosy",
        codes: Codes | None = None,
        clock: Clock = SYSTEM_CLOCK,
        hashing: Hashing | None = None,
        padding: float = PADDING,
    ) -> None:
        self._cluster, self._clock, self._codes = cluster, clock, codes
        self.cookie, self._padding = cookie, padding
        self.standing = Standing(lookout, namespace)
        self.book = AccountBook(cluster, namespace, clock, hashing)
        self.attempts = Attempts(cluster, namespace, clock)
        self.revoking = Revoking(cluster, namespace, clock)
        self.signing_in = SigningIn(self, clock)
        self._last: tuple[Enforcer | None, Caller | None, Permissions | None] = (None, None, None)
        self._looking = asyncio.Lock()
        self._looked_for: dict[str, float] = {}
        self._logins = {"success": 0, "failure": 0}

    async def prepare(self) -> bool:
        """Prepare for the first request. True if admin has a new password."""
        is_new = await self.book.prepare()
        await self.book.hashing.prepare()
        await self.standing.look_again(self._cluster)
        self.standing.report_provider()
        return is_new

    @property
    def key(self) -> bytes:
        """Signing key, for derived keys. Without one, everything that it would protect is refused."""
        if len(self.standing.key) < tokens.SHORTEST_KEY:
            raise BadCredential
        return self.standing.key

    # -- callers ------------------------------------------------------------------------------------------------

    async def identify(self, shown: Shown) -> Caller | None:
        cookie = shown.cookies.get(self.cookie) or shown.cookies.get(ARGOCD_COOKIE)
        if shown.bearer:
            return await self._of_token(shown.bearer, "bearer")
        if cookie:
            return await self._of_token(cookie, "cookie")
        if self.standing.is_anonymous_allowed:
            return Caller("", how="anonymous")
        return None

    def still(self, caller: Caller) -> bool:
        if caller.how in ("nobody", "anonymous"):
            return caller.how == "anonymous" and self.standing.is_anonymous_allowed
        if caller.signed_by != self.standing.key_name or not isinstance(caller.claims, Claims):
            return False
        if self.is_past(caller):
            return False
        try:
            self._caller(caller.claims, caller.how)
        except BadToken:
            return False
        return True

    def is_past(self, caller: Caller) -> bool:
        """True if the token has expired or was replaced by the browser, or its groups must be read again."""
        return 0 < caller.expires <= self._now() or self._has_old_groups(caller)

    def _has_old_groups(self, caller: Caller) -> bool:
        provider = self.standing.provider
        if caller.kind != "person" or provider is None or not isinstance(caller.claims, Claims):
            return False
        return self.signing_in.user_info.find_groups(provider, caller.claims) != caller.groups

    def permissions(self, caller: Caller) -> Permissions:
        return self.standing.enforcer.permissions(caller.subjects)

    def may(self, caller: Caller, resource: str, action: str, thing: str) -> bool:
        """Check a permission. The last caller's permissions are cached, because lists check thousands of objects."""
        enforcer = self.standing.enforcer
        last, of, known = self._last
        if of is not caller or last is not enforcer or known is None:
            known = enforcer.permissions(caller.subjects)
            self._last = (enforcer, caller, known)
        return known.may(resource, action, thing)

    async def _of_token(self, token: str, how: How) -> Caller:
        try:
            claims = tokens.read(token, self.standing.key, self._now())
        except BadToken:
            raise BadCredential from None
        await self._refresh_groups(claims)
        try:
            return self._caller(claims, how)
        except BadToken:  # signed by us: perhaps it is newer than the cluster view
            await self._look_again(claims)
        try:
            return self._caller(tokens.read(token, self.standing.key, self._now()), how)
        except BadToken:
            raise BadCredential from None

    async def _refresh_groups(self, claims: Claims) -> None:
        """Read groups from the identity provider, unless the session is invalid anyway."""
        provider = self.standing.provider
        if claims.issuer != PERSONS or provider is None:
            return
        try:
            self._check_person(claims)
        except BadToken:
            return  # the caller of this method finds the same error and refuses
        await self.signing_in.user_info.refresh(provider, claims, self.standing.policy.scopes)

    async def _look_again(self, claims: Claims) -> None:
        """Read accounts from the cluster, one at a time and rarely per token: revoked tokens may come back."""
        now = self._clock.monotonic()
        if now - self._looked_for.get(claims.id, float("-inf")) < BETWEEN_LOOKS:
            return
        if len(self._looked_for) >= MOST_LOOKED_FOR:
            self._looked_for.clear()
        self._looked_for[claims.id] = now
        async with self._looking:
            role = role_of(claims.subject)
            await self.standing.look_again(self._cluster, role[0] if role else "")

    def _caller(self, claims: Claims, how: How) -> Caller:
        """Return the caller of a signed token. Raises BadToken if the token is no longer valid."""
        made = Caller(
            claims.subject, how=how, id=claims.id, issuer=ISSUER, expires=claims.expires, claims=claims,
            signed_by=self.standing.key_name,
        )  # fmt: skip
        if claims.issuer == PERSONS:
            return self._person(claims, made)
        for parent in claims.parents:
            self._check_parent(parent)
        if role := role_of(claims.subject):
            self._check_role_token(claims, *role)
            return replace(made, kind="project")
        name, _, capability = claims.subject.partition(":")
        self._check_account(claims, name, capability or LOGIN)
        return replace(made, name=name, kind="account")

    def token_limits(self, caller: Caller, subjects: Subjects) -> TokenLimits:
        """Return the limits of a token that the caller creates. Raises PolicyError if it would have more rights."""
        claims = caller.claims
        if not isinstance(claims, Claims) or not _is_api_token(caller, claims):
            return NO_LIMITS
        permissions = self.standing.enforcer.permissions
        if subjects != caller.subjects and not permissions(caller.subjects).covers(permissions(subjects)):
            raise PolicyError(
                f"a token cannot create a token with more permissions than its own, and {subjects.name!r} has more; "
                "sign in with a password to create it"
            )
        parents = (*claims.parents, ParentToken(claims.subject, claims.id, claims.issued))
        if len(parents) > MAX_PARENTS:
            raise PolicyError(
                f"the chain of tokens that create tokens is longer than {MAX_PARENTS}; sign in with a password"
            )
        return TokenLimits(claims.expires, parents)

    def _check_parent(self, parent: ParentToken) -> None:
        """Raises BadToken if the token that created another token is no longer valid."""
        if role := role_of(parent.subject):
            self._check_marks(self.standing.role_tokens(*role) or (), parent.id, parent.issued)
            return
        account = self.standing.accounts.get(parent.subject.partition(":")[0])
        if account is None or not account.can(API_KEY) or parent.issued <= account.changed:
            raise BadToken("the account does not exist or lacks the capability")
        self._check_marks(account.tokens, parent.id, parent.issued)

    def _check_person(self, claims: Claims) -> None:
        """Raises BadToken if an SSO session is invalid, regardless of its groups."""
        self._check_session(claims)
        if is_reserved(claims.subject) or any(map(is_reserved, claims.groups)):
            raise BadToken("the subject or a group has the name of a role")
        if claims.subject in self.standing.accounts:
            raise BadToken("the subject has the name of a local account")
        if not claims.provider or claims.provider != self.provider:
            raise BadToken("the identity provider is no longer configured")

    def _person(self, claims: Claims, made: Caller) -> Caller:
        self._check_person(claims)
        issuer = claims.provider.partition(" ")[0]
        provider = self.standing.provider
        groups = self.signing_in.user_info.find_groups(provider, claims) if provider else None
        if groups is None:
            raise BadToken("the groups are older than userInfoCacheExpiration")
        return replace(made, kind="person", groups=groups, email=claims.email, issuer=issuer)

    def _check_account(self, claims: Claims, name: str, capability: str) -> None:
        account = self.standing.accounts.get(name)
        if account is None or is_reserved(name) or capability not in CAPABILITIES or not account.can(capability):
            raise BadToken("the account does not exist or lacks the capability")
        if claims.issued <= account.changed and not self._is_of_password(claims, account, capability):
            raise BadToken("the password was changed after the token was issued")
        if capability == LOGIN:
            self._check_session(claims)
            return
        self._check_marks(account.tokens, claims.id, claims.issued)

    def _check_session(self, claims: Claims) -> None:
        if not claims.expires or claims.expires - claims.began > DAY + SKEW:
            raise BadToken("the session lifetime exceeds one day")
        if self.revoking.is_over(claims.id, claims.began, self.standing.revoked):
            raise BadToken("the session was revoked")

    def _check_role_token(self, claims: Claims, project: str, role: str) -> None:
        self._check_marks(self.standing.role_tokens(project, role) or (), claims.id, claims.issued)

    def _check_marks(self, marks: Iterable[TokenMark], token_id: str, issued: int) -> None:
        """Match by id and time, because an id can be reused after its token was deleted."""
        # argo: reads the clock twice, for the token and for its record, so the times may differ
        own = [mark for mark in marks if mark.id == token_id and abs(mark.issued - issued) <= SKEW]
        if not own or any(mark.expires and mark.expires <= self._now() for mark in own):
            raise BadToken("the token was deleted, or has expired")

    # -- sessions -----------------------------------------------------------------------------------------------

    async def login(self, name: str, password: str, *, is_browser: bool = False, peer: str = "") -> str:
        """Return a session token. Raises BadLogin; neither the error nor its timing reveals whether the name exists."""
        began = self._clock.monotonic()
        try:
            account = await self._verified(name, password, peer)
        finally:
            await asyncio.shield(sleep(self._clock, self._padding - (self._clock.monotonic() - began)))
        self._logins["success" if account else "failure"] += 1
        if account is None:
            raise BadLogin
        return self._session(account, is_browser=is_browser)

    def logins(self) -> dict[str, int]:
        """Return the number of successful and failed logins since this process started."""
        return dict(self._logins)

    async def enter(self, code: str) -> str:
        """Sign in with a one-time code. Raises BadLogin."""
        name = self._codes.redeem(code) if self._codes else None
        account = self.standing.accounts.get(name or "")
        if account is None or not account.can(LOGIN):
            raise BadLogin
        return self._session(account, is_browser=True)

    def welcome(self, session_id: str, person: str, groups: tuple[str, ...], email: str) -> str:
        """Return a session for a user whom the identity provider has just authenticated."""
        now = self._now()
        lasts = min(IDLE, self._duration())
        claims = Claims(PERSONS, person, session_id, now, now + lasts, now, groups, self.provider, email)
        return tokens.sign(claims, self.key)

    async def logout(self, caller: Caller) -> None:
        claims = caller.claims
        if isinstance(claims, Claims) and not claims.subject.endswith(f":{API_KEY}") and caller.kind != "project":
            self.signing_in.user_info.forget(claims.id)
            await self.revoking.end(claims.id, claims.began + DAY + SKEW, self.standing.revoked)

    def renewed(self, caller: Caller) -> str | None:
        """Return a replacement for the token of an active browser session; None if it is not due."""
        claims, now = caller.claims, self._now()
        if caller.how != "cookie" or not isinstance(claims, Claims) or not self.still(caller):
            return None
        if claims.expires - claims.issued > IDLE or now - claims.issued < RENEWED:
            return None
        expires = min(now + IDLE, claims.began + self._duration())
        if expires <= claims.expires:
            return None
        return tokens.sign(replace(claims, issued=now, expires=expires), self.key)

    async def verify(self, caller: Caller, password: str, peer: str = "") -> bool:
        """True if it is the caller's own password; rate limited like a login."""
        return caller.kind == "account" and await self._verified(caller.name, password, peer) is not None

    async def _verified(self, name: str, password: str, peer: str) -> Account | None:
        account = self.standing.accounts.get(name) if len(name) <= LONGEST_NAME else None
        guess = await self.attempts.reserve(account.name if account else UNKNOWN, peer)
        if guess is None:
            return None
        kept = account.password if account and account.can(LOGIN) else b""
        if not await self.book.hashing.fits(password, kept):
            return None
        await self.attempts.forgive(guess)
        return account

    def _session(self, account: Account, *, is_browser: bool) -> str:
        issued, session = max(self._now(), account.changed + 1), new_id()
        if self._is_from_future(account):
            issued, session = self._now(), f"{self._password_mark(account)}{session}"
        lasts = min(IDLE, self._duration()) if is_browser else self._duration()
        claims = Claims(ISSUER, f"{account.name}:{LOGIN}", session, issued, issued + lasts, issued)
        return tokens.sign(claims, self.key)

    def _is_of_password(self, claims: Claims, account: Account, capability: str) -> bool:
        """True if the session id contains the password mark, which is used if the password's time is in the future."""
        is_named = claims.id.startswith(self._password_mark(account))
        return capability == LOGIN and self._is_from_future(account) and is_named

    def _is_from_future(self, account: Account) -> bool:
        """True if the password was set before the clock was set back; every new session would look older than it."""
        return account.changed > self._now() + SKEW

    def _password_mark(self, account: Account) -> str:
        """Prefix of such session ids, derived from the password hash: they end when the password changes."""
        return f"{hmac.new(self.key, b'password' + account.password, sha256).hexdigest()[:32]}."

    def _duration(self) -> int:
        """argo: users.session.duration; at most one day."""
        given = self.standing.settings.get("users.session.duration", "").strip()
        try:
            return max(1, min(DAY, int(seconds_of(given)))) if given else DAY
        except ValueError:
            return DAY

    @property
    def provider(self) -> str:
        """Id of the configured identity provider: issuer and client id. Empty: none."""
        found = self.standing.provider
        return found.title if found else ""

    def _now(self) -> int:
        return int(self._clock.now().timestamp())


def _is_api_token(caller: Caller, claims: Claims) -> bool:
    """True for API tokens, False for sessions."""
    return caller.kind == "project" or (caller.kind == "account" and claims.subject.endswith(f":{API_KEY}"))
