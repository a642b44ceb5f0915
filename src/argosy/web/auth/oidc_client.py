"""OpenID Connect client with PKCE: authenticates users with an identity provider.

In: an OidcProvider, and the parameters that a browser brings back. Out: a login URL, or an OidcUser. Never: uses claims
of a token whose signature, issuer, audience, time and nonce were not checked; connects without checking the
certificate; uses a key or an algorithm that the token itself names.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import jwt

from argosy.errors import TransientError
from argosy.gitops.policy.builtin_and_project_roles import is_reserved
from argosy.http_client.allowed_host_request import OutboundRequest, build_deadline, send_request
from argosy.http_client.anonymous_request import PlainResponse
from argosy.http_client.request_threads import RequestThreads
from argosy.kube.controller.clock import Clock
from argosy.kube.objects.base64url import encode_base64url
from argosy.web.auth.oidc_provider_settings import OidcProvider
from argosy.web.auth.signed_tokens import CLOCK_SKEW_SECONDS

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
METADATA_CACHE_SECONDS: Final = 300.0  # seconds for which provider metadata and keys are cached
KEY_REFRESH_SECONDS: Final = 10.0  # seconds between two requests for unknown keys
MAX_CONCURRENT_REQUESTS: Final = 8
MAX_GROUPS: Final = 1_000
USER_INFO_LABEL: Final = "userinfo endpoint of enableUserInfoGroups"
Headers = tuple[tuple[str, str], ...]


class OidcLoginError(Exception):
    """The provider did not authenticate the user. The reason is for the log only."""


@dataclass(frozen=True, slots=True)
class ProviderLogin:
    """Tokens of a login, to read groups from the provider later."""

    claims: Mapping[str, Any] = field(repr=False)  # of the ID token
    access_token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class OidcUser:
    subject: str
    groups: tuple[str, ...] = ()
    email: str = ""
    login: ProviderLogin | None = None  # if groups come from the userinfo endpoint


@dataclass(frozen=True, slots=True)
class LoginSecrets:
    """Values that bind a response to the browser that started the login."""

    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True)
class ProviderMetadata:
    """Discovery document of a provider."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    algorithms: tuple[str, ...]
    supports_basic_auth: bool


class OidcClient:
    """OIDC requests to the provider that is configured now."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._threads = RequestThreads("oidc", MAX_CONCURRENT_REQUESTS)
        self._metadata: dict[str, tuple[float, ProviderMetadata]] = {}
        self._keys: dict[str, tuple[float, list[jwt.PyJWK]]] = {}

    async def build_login_url(self, provider: OidcProvider, secrets: LoginSecrets, callback: str) -> str:
        """Return the login URL for the browser."""
        metadata = await self._load_metadata(provider)
        challenge = encode_base64url(sha256(secrets.verifier.encode()).digest())
        parameters = {
            "response_type": "code",
            "client_id": provider.client_id,
            "redirect_uri": callback,
            "scope": " ".join(provider.scopes),
            "state": secrets.state,
            "nonce": secrets.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        if provider.id_token_claims:
            parameters["claims"] = provider.id_token_claims
        separator = "&" if "?" in metadata.authorization_endpoint else "?"
        return f"{metadata.authorization_endpoint}{separator}{urlencode(parameters)}"

    async def fetch_user(
        self, provider: OidcProvider, secrets: LoginSecrets, callback: str, code: str, scopes: Sequence[str]
    ) -> OidcUser:
        """Exchange a code for a user. Raises OidcLoginError, or TransientError if the provider is unavailable."""
        metadata = await self._load_metadata(provider)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback,
            "code_verifier": secrets.verifier,
            "client_id": provider.client_id,
        }
        headers = [("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json")]
        if provider.client_secret and metadata.supports_basic_auth:
            basic_credentials = f"{quote(provider.client_id, safe='')}:{quote(provider.client_secret, safe='')}"
            headers.append(("Authorization", f"Basic {base64.b64encode(basic_credentials.encode()).decode()}"))
        elif provider.client_secret:
            form["client_secret"] = provider.client_secret
        response = await self._fetch_json(
            provider, metadata.token_endpoint, "POST", tuple(headers), urlencode(form).encode()
        )
        token = response.get("id_token")
        if not isinstance(token, str):
            raise OidcLoginError("the provider returned no id_token")
        claims = await self._verify_token(provider, metadata, token)
        if not hmac.compare_digest(str(claims.get("nonce") or "").encode(), secrets.nonce.encode()):
            raise OidcLoginError("the nonce does not match")
        if not provider.user_info_url:
            return read_user(claims, scopes)
        access_token = response.get("access_token")
        if not isinstance(access_token, str) or not access_token.isascii() or not access_token.isprintable():
            raise OidcLoginError("enableUserInfoGroups requires an access token, and the provider returned none")
        claim_names = {"sub", "email", "email_verified", *scopes}
        login = ProviderLogin({name: value for name, value in claims.items() if name in claim_names}, access_token)
        return await self.fetch_user_with_groups(provider, login, scopes)

    async def fetch_user_with_groups(
        self, provider: OidcProvider, login: ProviderLogin, scopes: Sequence[str]
    ) -> OidcUser:
        """argo: `groups` of the userinfo endpoint replace those of the ID token.

        Raises OidcLoginError only if the access token is refused (401) or belongs to another subject. Every other
        response (429, a redirect, the page of a proxy) says nothing about the user and is a TransientError.
        """
        headers = (("Authorization", f"Bearer {login.access_token}"), ("Accept", "application/json"))
        response = await self._send(provider, OutboundRequest("GET", provider.user_info_url, headers))
        if response.code == 401:
            raise OidcLoginError(f"{USER_INFO_LABEL}: the provider returned 401")
        info = response.read_json()
        if response.code != 200 or not isinstance(info, dict):
            problem = f"returned {response.code}" if response.code != 200 else "returned no JSON object"
            raise TransientError(f"{USER_INFO_LABEL}: {problem}; try again later")
        if not isinstance(info.get("sub"), str):
            raise TransientError(f"{USER_INFO_LABEL}: returned no subject; try again later")
        if info["sub"] != login.claims.get("sub"):
            raise OidcLoginError(f"{USER_INFO_LABEL}: the subject differs from that of the ID token")
        return replace(read_user({**login.claims, "groups": info.get("groups")}, scopes), login=login)

    async def _verify_token(self, provider: OidcProvider, metadata: ProviderMetadata, token: str) -> Mapping[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError as error:
            raise OidcLoginError("the ID token is malformed") from error
        algorithm = header.get("alg")
        if algorithm not in ALGORITHMS or algorithm not in metadata.algorithms or "crit" in header:
            raise OidcLoginError("the provider does not list the signing algorithm")
        key = await self._find_key(provider, metadata, str(header.get("kid") or ""), algorithm)
        audiences = provider.audiences or (provider.client_id,)
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=list(audiences),
                issuer=provider.issuer,
                leeway=CLOCK_SKEW_SECONDS,
                options={
                    "require": ["exp", "iat", "aud", "iss", "sub"],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.PyJWTError as error:
            raise OidcLoginError(f"{type(error).__name__}") from error
        self._check_times(claims)
        if isinstance(claims["aud"], list) and len(claims["aud"]) > 1 and claims.get("azp") != provider.client_id:
            raise OidcLoginError("the token has several audiences, and azp is not our client id")
        return claims

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        """Check times with our clock, as everywhere."""
        now = self._clock.now().timestamp()
        times = {name: claims.get(name, now) for name in ("exp", "iat", "nbf")}
        if any(isinstance(time, bool) or not isinstance(time, int | float) for time in times.values()):
            raise OidcLoginError("exp, iat or nbf is not a number")
        if times["exp"] <= now - CLOCK_SKEW_SECONDS or max(times["iat"], times["nbf"]) > now + CLOCK_SKEW_SECONDS:
            raise OidcLoginError("the token has expired or is not valid yet")

    async def _find_key(
        self, provider: OidcProvider, metadata: ProviderMetadata, kid: str, algorithm: str
    ) -> jwt.PyJWK:
        for is_again in (False, True):
            for key in await self._load_keys(provider, metadata, is_retry=is_again):
                has_key_id = key.key_id == kid if kid else True
                if has_key_id and key.key_type in _list_key_types(algorithm):
                    return key
        raise OidcLoginError("the provider does not publish the signing key")

    async def _load_keys(
        self, provider: OidcProvider, metadata: ProviderMetadata, *, is_retry: bool
    ) -> list[jwt.PyJWK]:
        fetched_at, cached = self._keys.get(provider.provider_id, (float("-inf"), []))
        age = self._clock.monotonic() - fetched_at
        if age < (KEY_REFRESH_SECONDS if is_retry else METADATA_CACHE_SECONDS):
            return cached
        response = await self._fetch_json(provider, metadata.jwks_uri)
        keys = []
        for entry in response.get("keys") or () if isinstance(response.get("keys"), list) else ():
            if (
                isinstance(entry, dict)
                and entry.get("kty") in ("RSA", "EC", "OKP")
                and entry.get("use", "sig") == "sig"
            ):
                try:
                    keys.append(jwt.PyJWK.from_dict(entry))
                except (jwt.PyJWTError, TypeError, ValueError):
                    continue  # unsupported or invalid key
        self._keys = {provider.provider_id: (self._clock.monotonic(), keys)}
        return keys

    async def _load_metadata(self, provider: OidcProvider) -> ProviderMetadata:
        fetched_at, cached = self._metadata.get(provider.provider_id, (float("-inf"), None))
        if cached is not None and self._clock.monotonic() - fetched_at < METADATA_CACHE_SECONDS:
            return cached
        url = f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration"
        metadata = _read_metadata(provider, await self._fetch_json(provider, url))
        self._metadata = {provider.provider_id: (self._clock.monotonic(), metadata)}
        return metadata

    async def _fetch_json(
        self, provider: OidcProvider, url: str, method: str = "GET", headers: Headers = (), body: bytes = b""
    ) -> Mapping[str, Any]:
        response = await self._send(provider, OutboundRequest(method, url, headers, body))
        document = response.read_json()
        if response.code >= 500:
            raise TransientError(f"{urlsplit(url).hostname}: returned {response.code}; try again later")
        if response.code != 200 or not isinstance(document, dict):
            raise OidcLoginError(f"the provider returned {response.code}")
        return document

    async def _send(self, provider: OidcProvider, request: OutboundRequest) -> PlainResponse:
        request = replace(request, ca_certificates=provider.root_ca)
        deadline = build_deadline(request)
        host = urlsplit(request.url).hostname or ""
        return await self._threads.run(host, deadline, partial(send_request, request, deadline=deadline))


def _read_metadata(provider: OidcProvider, document: Mapping[str, Any]) -> ProviderMetadata:
    if document.get("issuer") != provider.issuer:
        raise OidcLoginError("the issuer differs from that of the provider's discovery document")
    urls = [document.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
    if not all(isinstance(url, str) and url.startswith("https://") for url in urls):
        raise OidcLoginError("the provider's discovery document lacks https:// endpoints")
    methods = document.get("code_challenge_methods_supported")
    if isinstance(methods, list) and "S256" not in methods:
        raise OidcLoginError("the provider does not support PKCE with S256")
    listed_algorithms = document.get("id_token_signing_alg_values_supported")
    algorithms = (
        tuple(url for url in listed_algorithms if isinstance(url, str))
        if isinstance(listed_algorithms, list)
        else ("RS256",)
    )
    auth_methods = document.get("token_endpoint_auth_methods_supported")
    authorize, token, keys = map(str, urls)
    return ProviderMetadata(
        authorize, token, keys, algorithms, not isinstance(auth_methods, list) or "client_secret_basic" in auth_methods
    )


def read_user(claims: Mapping[str, Any], scopes: Sequence[str]) -> OidcUser:
    """Read a user from claims. A subject that is a role name is refused; groups that are role names are dropped."""
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject.strip() or not subject.isprintable() or is_reserved(subject):
        raise OidcLoginError("the subject is invalid or reserved")
    email = claims.get("email")
    is_unverified = claims.get("email_verified") in (False, "false")
    is_verified = claims.get("email_verified") in (True, "true")  # absent: the provider may not have verified it
    groups: list[str] = []
    for scope in scopes:  # argo: argocd-rbac-cm's `scopes`
        if scope == "email" and not is_verified:
            continue
        value = claims.get(scope)
        groups += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]
    valid_groups = [group for group in dict.fromkeys(groups) if group.strip() and not is_reserved(group)]
    return OidcUser(
        subject, tuple(valid_groups[:MAX_GROUPS]), email if isinstance(email, str) and not is_unverified else ""
    )


def _list_key_types(algorithm: str) -> tuple[str, ...]:
    return {"E": ("EC",), "R": ("RSA",), "P": ("RSA",)}[algorithm[0]] if algorithm != "EdDSA" else ("OKP",)
