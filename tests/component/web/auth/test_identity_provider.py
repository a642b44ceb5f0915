"""Login with an OIDC provider that runs beside the test, over TLS, and the cases in which it must be refused."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from argosy.web.auth.caller import BadLogin
from argosy.web.auth.oidc_client import OidcLoginError, read_user
from argosy.web.auth.oidc_provider_settings import read_provider
from support.oidc_login import CALLBACK, Scene
from support.oidc_provider import CLIENT, IdentityProvider

pytestmark = pytest.mark.anyio


@pytest.fixture
async def scene(at_home: Scene) -> Scene:
    at_home.renew()
    await at_home.configure()
    return at_home


async def test_login_creates_a_session_with_the_groups_of_the_provider(scene: Scene) -> None:
    caller = await scene.sign_in()
    assert (caller.name, caller.kind, caller.email) == ("ann-id", "person", "ann@x")
    assert caller.groups == ("devs",)
    assert caller.issuer == scene.provider.url
    await scene.room.settings("argocd-rbac-cm", policy__csv="g, devs, role:readonly")
    assert scene.room.identities.is_allowed(caller, "applications", "get", "ml/a")
    assert not scene.room.identities.is_allowed(caller, "applications", "sync", "ml/a")


async def test_scopes_select_group_claims_and_role_names_are_dropped(scene: Scene) -> None:
    await scene.room.settings("argocd-rbac-cm", scopes="[teams, email]")
    scene.provider.claims |= {"teams": ["crew", "role:admin", "proj:ml:ci", "", 7], "groups": ["devs"]}
    assert (await scene.sign_in()).groups == ("crew",)
    scene.provider.claims["email_verified"] = True
    assert (await scene.sign_in()).groups == ("crew", "ann@x")
    scene.provider.claims |= {"teams": "one", "email_verified": False}
    assert (await scene.sign_in()).groups == ("one",)  # an unverified email address is not a group
    await scene.room.settings("argocd-rbac-cm", scopes=None)


@cache
def another_key() -> rsa.RSAPrivateKey:
    """A key that is not the provider's. Generating one takes longer than a login."""
    return rsa.generate_private_key(65537, 2048)


def signed_by_another(provider: IdentityProvider) -> None:
    provider.signs_with = another_key()


def says(**changes: Any) -> Callable[[IdentityProvider], None]:
    return lambda provider: provider.changes.update(changes)


def publishes(**changes: Any) -> Callable[[IdentityProvider], None]:
    return lambda provider: provider.publishes.update(changes)


def by(algorithm: str) -> Callable[[IdentityProvider], None]:
    return lambda provider: setattr(provider, "algorithm", algorithm)


def both(*changes: Callable[[IdentityProvider], None]) -> Callable[[IdentityProvider], None]:
    return lambda provider: [one(provider) for one in changes] and None


NOW = int(time.time())
ANY = publishes(id_token_signing_alg_values_supported=["RS256", "none", "HS256"])
WRONG: dict[str, tuple[Callable[[IdentityProvider], None], str]] = {
    "another nonce": (says(nonce="x"), "nonce"),
    "no nonce": (says(nonce=None), "nonce"),
    "another audience": (says(aud="other"), "InvalidAudience"),
    "no audience": (says(aud=None), "MissingRequiredClaim"),
    "several audiences, and another asked": (says(aud=[CLIENT, "other"], azp="other"), "several"),
    "several audiences, and nobody asked": (says(aud=[CLIENT, "other"]), "several"),
    "another issuer": (says(iss="https://evil.example"), "InvalidIssuer"),
    "over": (says(exp=NOW - 60, iat=NOW - 120), "has expired"),
    "no end": (says(exp=None), "MissingRequiredClaim"),
    "an end that is no time": (says(exp="soon"), "is not a number"),
    "not yet": (says(nbf=NOW + 36000), "not valid yet"),
    "from the future": (says(iat=NOW + 36000, exp=NOW + 37000), "not valid yet"),
    "no subject": (says(sub=None), "MissingRequiredClaim"),
    "an empty subject": (says(sub=" "), "invalid or reserved"),
    "a subject like an account": (says(sub="admin"), "name of a local account"),
    "a subject like a role": (says(sub="role:admin"), "invalid or reserved"),
    "a subject like a role of a project": (says(sub="proj:ml:ci"), "invalid or reserved"),
    "signed by nobody": (by("none"), "algorithm"),
    "signed by nobody, and published so": (both(by("none"), ANY), "algorithm"),
    "signed with the public key": (by("HS256"), "algorithm"),
    "signed with the public key, and published so": (both(by("HS256"), ANY), "algorithm"),
    "signed by another key": (signed_by_another, "InvalidSignature"),
    "an algorithm that it does not publish": (by("RS512"), "algorithm"),
    "published as another": (publishes(issuer="https://evil.example"), "the issuer differs"),
    "a token address without TLS": (publishes(token_endpoint="http://127.0.0.1:1/token"), "https://"),
    "keys without TLS": (publishes(jwks_uri="http://127.0.0.1:1/keys"), "https://"),
    "no PKCE": (publishes(code_challenge_methods_supported=["plain"]), "PKCE"),
}


WRONG_IN_MAKE_TEST = {
    "another nonce", "another audience", "another issuer", "over", "a subject like an account",
    "signed with the public key, and published so", "signed by nobody, and published so", "signed by another key",
    "keys without TLS", "no PKCE",
}  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [pytest.param(wrong, marks=() if wrong in WRONG_IN_MAKE_TEST else pytest.mark.tier("all")) for wrong in WRONG],
)
async def test_invalid_provider_or_id_token_is_refused_and_the_reason_logged(
    scene: Scene, wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    change, why = WRONG[wrong]
    change(scene.provider)
    with pytest.raises(BadLogin):
        await scene.sign_in()
    assert why in caplog.text


async def test_login_response_is_valid_once_and_only_in_its_browser(scene: Scene) -> None:
    cookie, brought = await scene.go()
    other_cookie, other = await scene.go()
    for sent_cookie, with_what in (
        ("", brought),
        (other_cookie, brought),
        (cookie, other),
        (cookie[:-1], brought),
        (cookie, {**brought, "state": ""}),
        (cookie, {**brought, "code": ""}),
        (cookie, {**brought, "iss": "https://evil.example"}),
    ):
        with pytest.raises(BadLogin):
            await scene.back(sent_cookie, with_what)
    assert await scene.back(cookie, {**brought, "iss": scene.provider.url})
    scene.provider.codes[brought["code"]] = scene.provider.codes.get(brought["code"], {})  # if it accepted it again
    with pytest.raises(BadLogin):
        await scene.back(cookie, brought)


async def test_login_attempt_expires_after_five_minutes(scene: Scene) -> None:
    cookie, brought = await scene.go()
    scene.room.clock.leap(301)
    scene.provider.clock_ahead = scene.room.clock._ahead
    with pytest.raises(BadLogin):
        await scene.back(cookie, brought)


async def test_code_of_another_login_is_refused(scene: Scene) -> None:
    _, caught = await scene.go()
    cookie, own = await scene.go()
    with pytest.raises(BadLogin):  # own state, code of another login: PKCE fails
        await scene.back(cookie, {**own, "code": caught["code"]})


async def test_provider_with_an_untrusted_certificate_gets_no_request(scene: Scene) -> None:
    await scene.configure(rootCA=None)
    scene.provider.seen.clear()
    with pytest.raises(BadLogin):
        await scene.room.identities.sso_login.start_login(CALLBACK, "/apps")
    assert scene.provider.seen == []


async def test_rotated_signing_key_is_fetched(scene: Scene) -> None:
    await scene.sign_in()
    scene.provider.key = another_key()
    scene.room.clock.leap(301)
    scene.provider.clock_ahead = scene.room.clock._ahead
    assert await scene.sign_in()


async def test_sessions_end_when_the_provider_is_changed_or_removed(scene: Scene) -> None:
    for changes in ({"clientID": "other"}, None):
        await scene.configure()
        caller = await scene.sign_in()
        assert scene.room.identities.is_still_valid(caller)
        if changes:
            await scene.configure(**changes)
        else:
            await scene.room.settings(oidc__config=None)
        assert not scene.room.identities.is_still_valid(caller)


@pytest.mark.tier("all")
async def test_too_many_groups_are_reduced_to_those_in_rbac_rules(scene: Scene) -> None:
    scene.provider.claims["groups"] = [f"a-group-with-a-long-name-{number:04d}" for number in range(400)]
    await scene.room.settings("argocd-rbac-cm", policy__csv="g, a-group-with-a-long-name-0399, role:readonly")
    assert (await scene.sign_in()).groups == ("a-group-with-a-long-name-0399",)


def test_unusable_subjects_are_refused() -> None:
    for claims in ({}, {"sub": 7}, {"sub": ""}, {"sub": "a\nb"}, {"sub": "role:x"}):
        with pytest.raises(OidcLoginError):
            read_user(claims, ["groups"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("issuer: http://x\nclientID: a", "https://"),
        ("issuer: https://user@x\nclientID: a", "https://"),
        ("issuer: https://x", "clientID is missing"),
        ("issuer: https://x\nclientID: a\nclientSecret: $no.such", "refers to a missing Secret key"),
        ("issuer: [x]", "issuer is not a string"),
        ("- x", "is not a map"),
        ("issuer: {", "oidc.config"),
        ("issuer: https://x\nclientID: a\nrequestedScopes: openid", "not a list of strings"),
    ],
)
def test_invalid_provider_setting_is_reported(text: str, said: str) -> None:
    provider, fault = read_provider({"oidc.config": text}, {"$oidc.clientSecret": "x"}.get)
    assert provider is None
    assert said in fault


def test_provider_setting_resolves_secret_references() -> None:
    text = json.dumps({"issuer": "https://x", "clientID": "$id", "clientSecret": "$other:key"})
    provider, fault = read_provider({"oidc.config": text}, {"$id": "a", "$other:key": "b"}.get)
    assert fault == ""
    assert provider is not None
    assert (provider.client_id, provider.client_secret, provider.name) == ("a", "b", "x")
    assert "b" not in repr(provider).split("secret")[0]


async def test_malformed_keys_beside_a_valid_one_are_ignored(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    good = scene.provider.keys()["keys"]
    nonsense = [{"kty": "RSA", "n": "AQAB", "e": "AQAB", "alg": ["x"]}, {"kty": "RSA", "n": 5}, 7,
                {"kty": "EC", "crv": 5}, {"kty": "OKP", "crv": ["x"], "x": "AA"}, {"kty": ["RSA"]}]  # fmt: skip
    monkeypatch.setattr(IdentityProvider, "keys", lambda self: {"keys": [*nonsense, *good]})
    assert (await scene.sign_in()).name == "ann-id"
