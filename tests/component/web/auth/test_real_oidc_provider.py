"""Login with npm's oidc-provider, a third-party server: code flow, PKCE, groups, key rotation, replays."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from argosy.web.auth.caller import BadLogin
from support.identities import identity_room
from support.oidc_login import CALLBACK, LoginScene
from support.real_oidc_provider import (
    CLIENT,
    CLIENT_SECRET,
    RealProvider,
    is_installed,
    real_oidc_provider,
    signing_key,
)
from support.tiers import in_test_all

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not is_installed, reason="no oidc-provider in .venv/oidc: make install found no npm"),
]
IN_ID_TOKEN = {"groups": {"essential": True}, "email": None, "email_verified": None}


Scene = LoginScene[RealProvider]


def visit_anew(provider: RealProvider, url: str) -> str:
    provider.cookies.clear()
    return provider.visit(url)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def at_home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    folder: Path = tmp_path_factory.mktemp("oidc")
    with real_oidc_provider(folder / "tls") as provider:
        async with identity_room(folder / "room") as room:
            yield LoginScene(
                room, provider, functools.partial(visit_anew, provider), client=CLIENT, secret=CLIENT_SECRET,
                requestedIDTokenClaims=IN_ID_TOKEN,
            )  # fmt: skip


@pytest.fixture
async def scene(at_home: Scene) -> Scene:
    """Reset what the last test changed, also in the server."""
    at_home.provider.change(
        jwks={"keys": [signing_key("one")]}, conformIdTokenClaims=True, subject="ann-id",
        claims={"email": "ann@x", "email_verified": True, "groups": ["devs"]},
    )  # fmt: skip
    # The provider uses the clock of this machine, so the server must too.
    at_home.room.clock._ahead = 0.0
    at_home.room.identities = at_home.room.server(at_home.room.glance)
    await at_home.configure()
    await at_home.room.settings("argocd-rbac-cm", scopes=None, policy__csv="g, devs, role:readonly")
    return at_home


async def test_groups_requested_as_id_token_claims_give_roles(scene: Scene) -> None:
    caller = await scene.sign_in()
    assert (caller.name, caller.kind, caller.email, caller.groups) == ("ann-id", "person", "ann@x", ("devs",))
    assert scene.room.identities.is_allowed(caller, "applications", "get", "ml/a")
    assert not scene.room.identities.is_allowed(caller, "applications", "sync", "ml/a")


@pytest.mark.tier("all")
async def test_groups_that_the_provider_adds_to_the_id_token_are_read(scene: Scene) -> None:
    await scene.configure(requestedIDTokenClaims=None)
    assert (await scene.sign_in()).groups == ()  # by the standard, scopes are for userinfo
    scene.provider.change(conformIdTokenClaims=False)
    assert (await scene.sign_in()).groups == ("devs",)


async def test_code_is_valid_once_and_only_in_its_browser(scene: Scene) -> None:
    cookie, brought = await scene.go()
    other_cookie, other = await scene.go()
    for wrong_cookie, wrong in ((other_cookie, brought), (cookie, {**brought, "state": other["state"]}),
                                (cookie, {**brought, "iss": "https://evil.example"})):  # fmt: skip
        with pytest.raises(BadLogin):
            await scene.back(wrong_cookie, wrong)
    await scene.back(cookie, brought)
    with pytest.raises(BadLogin):  # replayed; below, also at a server that has not seen it
        await scene.back(cookie, brought)
    scene.room.identities = scene.room.server(scene.room.glance)
    with pytest.raises(BadLogin):
        await scene.back(cookie, brought)


@pytest.mark.tier("all")
async def test_code_of_another_browser_does_not_match_the_pkce_verifier(scene: Scene) -> None:
    """Login CSRF and code injection: state and cookie are the victim's, the code is the attacker's."""
    cookie, brought = await scene.go()
    _, attackers = await scene.go()
    with pytest.raises(BadLogin):
        await scene.back(cookie, {**brought, "code": attackers["code"]})


async def test_rotated_key_is_fetched_without_a_restart(scene: Scene) -> None:
    await scene.sign_in()
    scene.provider.change(jwks={"keys": [signing_key("two")]})
    with pytest.raises(BadLogin):  # unknown keys are fetched at most every ten seconds
        await scene.sign_in()
    scene.room.clock.leap(11)
    assert (await scene.sign_in()).name == "ann-id"


@pytest.mark.parametrize("changes", [
    {"clientSecret": "another secret"}, in_test_all({"clientID": "other", "allowedAudiences": [CLIENT]}),
    in_test_all({"allowedAudiences": ["somebody else"]}),
])  # fmt: skip
async def test_wrong_client_secret_or_audience_is_refused(scene: Scene, changes: dict[str, Any]) -> None:
    await scene.configure(**changes)
    with pytest.raises(BadLogin):
        await scene.sign_in()


@pytest.mark.tier("all")
async def test_issuer_mismatch_and_untrusted_ca_are_refused(scene: Scene) -> None:
    elsewhere = scene.provider.url.replace("127.0.0.1", "localhost")
    for changes in ({"issuer": f"{scene.provider.url}/"}, {"issuer": elsewhere}, {"rootCA": None}):
        await scene.configure(**changes)
        scene.room.identities = scene.room.server(scene.room.glance)
        with pytest.raises(BadLogin):
            await scene.room.identities.sso_login.start_login(CALLBACK, "/")


@pytest.mark.tier("all")
async def test_provider_refuses_another_callback_and_a_request_without_pkce(scene: Scene) -> None:
    going = await scene.room.identities.sso_login.start_login(CALLBACK, "/")
    query = {name: values[0] for name, values in parse_qs(urlsplit(going.location).query).items()}
    elsewhere = await scene.room.identities.sso_login.start_login("https://evil.example/auth/callback", "/")
    assert scene.provider.ask(elsewhere.location)[0] == 400
    del query["code_challenge"], query["code_challenge_method"]
    back = scene.provider.visit(f"{going.location.partition('?')[0]}?{urlencode(query)}")
    assert "error=invalid_request" in back and "code=" not in back.replace("code_challenge", "")


@pytest.mark.tier("all")
async def test_session_ends_at_logout_and_when_the_provider_is_removed(scene: Scene) -> None:
    token = await scene.back(*await scene.go())
    caller = await scene.room.who(token, "argosy-1")
    assert caller is not None
    await scene.room.identities.logout(caller)
    await scene.room.glance.look()
    assert await scene.room.is_refused(token, "argosy-1")
    token = await scene.back(*await scene.go())
    await scene.room.settings(oidc__config=None)
    assert await scene.room.is_refused(token, "argosy-1")


@pytest.mark.tier("all")
async def test_idle_session_ends_after_an_hour(scene: Scene) -> None:
    token = await scene.back(*await scene.go())
    scene.room.clock.leap(3601)
    assert await scene.room.is_refused(token, "argosy-1")


async def test_userinfo_groups_give_roles_only_if_enabled(scene: Scene) -> None:
    await scene.configure(requestedIDTokenClaims=None, enableUserInfoGroups=True, userInfoPath="/me")
    caller = await scene.sign_in()
    assert caller.groups == ("devs",)
    assert scene.room.identities.is_allowed(caller, "applications", "get", "ml/a")
    await scene.configure(requestedIDTokenClaims=None, enableUserInfoGroups=False, userInfoPath="/me")
    assert not scene.room.identities.is_still_valid(caller)  # its groups no longer match the setting
    assert (await scene.sign_in()).groups == ()


@pytest.mark.tier("all")
async def test_userinfo_groups_are_fetched_again_when_the_cache_expires(scene: Scene) -> None:
    usual = {"requestedIDTokenClaims": None, "enableUserInfoGroups": True, "userInfoPath": "/me"}
    await scene.configure(**usual, userInfoCacheExpiration="20s")
    token = await scene.back(*await scene.go())
    scene.provider.change(claims={"groups": ["guests"]})
    assert (await scene.room.who(token, "argosy-1")).groups == ("devs",)  # type: ignore[union-attr]
    scene.room.clock.leap(21)
    assert (await scene.room.who(token, "argosy-1")).groups == ("guests",)  # type: ignore[union-attr]


async def test_login_fails_if_the_userinfo_path_is_wrong(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    await scene.configure(requestedIDTokenClaims=None, enableUserInfoGroups=True, userInfoPath="/no-such-path")
    with pytest.raises(BadLogin):
        await scene.sign_in()
    assert "enableUserInfoGroups" in caplog.text
