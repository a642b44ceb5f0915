"""OpenID Connect client with PKCE: authenticates users with an identity provider.

In: an OidcProvider, and the parameters that a browser brings back. Out: a login URL, or an OidcUser. Never: uses claims
of a token whose signature, issuer, audience, time and nonce were not checked; connects without checking the
certificate; uses a key or an algorithm that the token itself names.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import jwt

from argosy.errors import TransientError
from argosy.gitops.policy.roles import is_reserved
from argosy.http_client.checked_request import Request, send
from argosy.http_client.plain_request import Answered
from argosy.kube.controller.clock import Clock
from argosy.web.auth.identity_provider import Provider

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
KEPT: Final = 300.0  # seconds for which provider metadata and keys are cached
BETWEEN_LOOKS: Final = 10.0  # seconds between two requests for unknown keys
SKEW: Final = 5
AT_ONCE: Final = 8
MOST_GROUPS: Final = 1_000
USER_INFO: Final = "userinfo endpoint of enableUserInfoGroups"
Headers = tuple[tuple[str, str], ...]


class NotVouched(Exception):
    """The provider did not authenticate the user. The reason is for the log only."""


@dataclass(frozen=True, slots=True)
class ProviderLogin:
    """Tokens of a login, to read groups from the provider later."""

    claims: Mapping[str, Any] = field(repr=False)  # of the ID token
    access_token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Person:
    subject: str
    groups: tuple[str, ...] = ()
    email: str = ""
    login: ProviderLogin | None = None  # if groups come from the userinfo endpoint


@dataclass(frozen=True, slots=True)
class Secrets:
    """Values that bind a response to the browser that started the login."""

    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True)
class Published:
    """Discovery document of a provider."""

    authorize: str
    token: str
    keys: str
    algorithms: tuple[str, ...]
    takes_basic: bool


class Conversation:
    """OIDC requests to the provider that is configured now."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._published: dict[str, tuple[float, Published]] = {}
        self._keys: dict[str, tuple[float, list[jwt.PyJWK]]] = {}

    async def address(self, provider: Provider, secrets: Secrets, callback: str) -> str:
        """Return the login URL for the browser."""
        published = await self._publication(provider)
        challenge = base64.urlsafe_b64encode(sha256(secrets.verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code",
            "client_id": provider.client,
            "redirect_uri": callback,
            "scope": " ".join(provider.scopes),
            "state": secrets.state,
            "nonce": secrets.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        if provider.id_token_claims:
            asked["claims"] = provider.id_token_claims
        return f"{published.authorize}{'&' if '?' in published.authorize else '?'}{urlencode(asked)}"

    async def person(
        self, provider: Provider, secrets: Secrets, callback: str, code: str, scopes: Sequence[str]
    ) -> Person:
        """Exchange a code for a user. Raises OidcLoginError, or TransientError if the provider is unavailable."""
        published = await self._publication(provider)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback,
            "code_verifier": secrets.verifier,
            "client_id": provider.client,
        }
        headers = [("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json")]
        if provider.secret and published.takes_basic:
            pair = f"{quote(provider.client, safe='')}:{quote(provider.secret, safe='')}"
            headers.append(("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
        elif provider.secret:
            form["client_secret"] = provider.secret
        answer = await self._ask(provider, published.token, "POST", tuple(headers), urlencode(form).encode())
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise NotVouched("the provider returned no id_token")
        said = await self._verified(provider, published, token)
        if not hmac.compare_digest(str(said.get("nonce") or "").encode(), secrets.nonce.encode()):
            raise NotVouched("the nonce does not match")
        if not provider.user_info_url:
            return person_of(said, scopes)
        access_token = answer.get("access_token")
        if not isinstance(access_token, str) or not access_token.isascii() or not access_token.isprintable():
            raise NotVouched("enableUserInfoGroups requires an access token, and the provider returned none")
        kept = {"sub", "email", "email_verified", *scopes}
        login = ProviderLogin({name: value for name, value in said.items() if name in kept}, access_token)
        return await self.person_with_groups(provider, login, scopes)

    async def person_with_groups(self, provider: Provider, login: ProviderLogin, scopes: Sequence[str]) -> Person:
        """argo: `groups` of the userinfo endpoint replace those of the ID token.

        Raises OidcLoginError only if the access token is refused (401) or belongs to another subject. Every other
        response (429, a redirect, the page of a proxy) says nothing about the user and is a TransientError.
        """
        headers = (("Authorization", f"Bearer {login.access_token}"), ("Accept", "application/json"))
        answered = await self._send(provider, Request("GET", provider.user_info_url, headers))
        if answered.code == 401:
            raise NotVouched(f"{USER_INFO}: the provider returned 401")
        info = answered.document()
        if answered.code != 200 or not isinstance(info, dict):
            what = f"returned {answered.code}" if answered.code != 200 else "returned no JSON object"
            raise TransientError(f"{USER_INFO}: {what}; try again later")
        if not isinstance(info.get("sub"), str):
            raise TransientError(f"{USER_INFO}: returned no subject; try again later")
        if info["sub"] != login.claims.get("sub"):
            raise NotVouched(f"{USER_INFO}: the subject differs from that of the ID token")
        return replace(person_of({**login.claims, "groups": info.get("groups")}, scopes), login=login)

    async def _verified(self, provider: Provider, published: Published, token: str) -> Mapping[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError as error:
            raise NotVouched("the ID token is malformed") from error
        algorithm = header.get("alg")
        if algorithm not in ALGORITHMS or algorithm not in published.algorithms or "crit" in header:
            raise NotVouched("the provider does not list the signing algorithm")
        key = await self._key(provider, published, str(header.get("kid") or ""), algorithm)
        audiences = provider.audiences or (provider.client,)
        try:
            said: dict[str, Any] = jwt.decode(
                token, key, algorithms=[algorithm], audience=list(audiences), issuer=provider.issuer, leeway=SKEW,
                options={"require": ["exp", "iat", "aud", "iss", "sub"], "verify_exp": False, "verify_nbf": False,
                         "verify_iat": False},
            )  # fmt: skip
        except jwt.PyJWTError as error:
            raise NotVouched(f"{type(error).__name__}") from error
        self._check_times(said)
        if isinstance(said["aud"], list) and len(said["aud"]) > 1 and said.get("azp") != provider.client:
            raise NotVouched("the token has several audiences, and azp is not our client id")
        return said

    def _check_times(self, said: Mapping[str, Any]) -> None:
        """Check times with our clock, as everywhere."""
        now = self._clock.now().timestamp()
        times = {name: said.get(name, now) for name in ("exp", "iat", "nbf")}
        if any(isinstance(time, bool) or not isinstance(time, int | float) for time in times.values()):
            raise NotVouched("exp, iat or nbf is not a number")
        if times["exp"] <= now - SKEW or max(times["iat"], times["nbf"]) > now + SKEW:
            raise NotVouched("the token has expired or is not valid yet")

    async def _key(self, provider: Provider, published: Published, kid: str, algorithm: str) -> jwt.PyJWK:
        for is_again in (False, True):
            for key in await self._known_keys(provider, published, is_again=is_again):
                fits = key.key_id == kid if kid else True
                if fits and key.key_type in _types(algorithm):
                    return key
        raise NotVouched("the provider does not publish the signing key")

    async def _known_keys(self, provider: Provider, published: Published, *, is_again: bool) -> list[jwt.PyJWK]:
        at, known = self._keys.get(provider.title, (float("-inf"), []))
        age = self._clock.monotonic() - at
        if age < (BETWEEN_LOOKS if is_again else KEPT):
            return known
        answer = await self._ask(provider, published.keys)
        made = []
        for each in answer.get("keys") or () if isinstance(answer.get("keys"), list) else ():
            if isinstance(each, dict) and each.get("kty") in ("RSA", "EC", "OKP") and each.get("use", "sig") == "sig":
                try:
                    made.append(jwt.PyJWK.from_dict(each))
                except (jwt.PyJWTError, TypeError, ValueError):
                    continue  # unsupported or invalid key
        self._keys = {provider.title: (self._clock.monotonic(), made)}
        return made

    async def _publication(self, provider: Provider) -> Published:
        at, known = self._published.get(provider.title, (float("-inf"), None))
        if known is not None and self._clock.monotonic() - at < KEPT:
            return known
        url = f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration"
        made = _publication(provider, await self._ask(provider, url))
        self._published = {provider.title: (self._clock.monotonic(), made)}
        return made

    async def _ask(
        self, provider: Provider, url: str, method: str = "GET", headers: Headers = (), body: bytes = b""
    ) -> Mapping[str, Any]:
        answered = await self._send(provider, Request(method, url, headers, body))
        found = answered.document()
        if answered.code >= 500:
            raise TransientError(f"{urlsplit(url).hostname}: returned {answered.code}; try again later")
        if answered.code != 200 or not isinstance(found, dict):
            raise NotVouched(f"the provider returned {answered.code}")
        return found

    async def _send(self, provider: Provider, request: Request) -> Answered:
        async with self._turns:
            return await asyncio.to_thread(send, replace(request, authorities=provider.authorities))


def _publication(provider: Provider, found: Mapping[str, Any]) -> Published:
    if found.get("issuer") != provider.issuer:
        raise NotVouched("the issuer differs from that of the provider's discovery document")
    addresses = [found.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
    if not all(isinstance(each, str) and each.startswith("https://") for each in addresses):
        raise NotVouched("the provider's discovery document lacks https:// endpoints")
    methods = found.get("code_challenge_methods_supported")
    if isinstance(methods, list) and "S256" not in methods:
        raise NotVouched("the provider does not support PKCE with S256")
    named = found.get("id_token_signing_alg_values_supported")
    algorithms = tuple(each for each in named if isinstance(each, str)) if isinstance(named, list) else ("RS256",)
    ways = found.get("token_endpoint_auth_methods_supported")
    authorize, token, keys = map(str, addresses)
    return Published(authorize, token, keys, algorithms, not isinstance(ways, list) or "client_secret_basic" in ways)


def person_of(said: Mapping[str, Any], scopes: Sequence[str]) -> Person:
    """Read a user from claims. A subject that is a role name is refused; groups that are role names are dropped."""
    subject = said.get("sub")
    if not isinstance(subject, str) or not subject.strip() or not subject.isprintable() or is_reserved(subject):
        raise NotVouched("the subject is invalid or reserved")
    email = said.get("email")
    is_doubtful = said.get("email_verified") in (False, "false")
    is_verified = said.get("email_verified") in (True, "true")  # absent: the provider may not have verified it
    groups: list[str] = []
    for scope in scopes:  # argo: argocd-rbac-cm's `scopes`
        if scope == "email" and not is_verified:
            continue
        found = said.get(scope)
        groups += [each for each in (found if isinstance(found, list) else [found]) if isinstance(each, str)]
    kept = [group for group in dict.fromkeys(groups) if group.strip() and not is_reserved(group)]
    return Person(subject, tuple(kept[:MOST_GROUPS]), email if isinstance(email, str) and not is_doubtful else "")


def _types(algorithm: str) -> tuple[str, ...]:
    return {"E": ("EC",), "R": ("RSA",), "P": ("RSA",)}[algorithm[0]] if algorithm != "EdDSA" else ("OKP",)
