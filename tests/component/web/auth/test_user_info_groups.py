"""Groups of the userinfo endpoint: which responses are accepted, for how long, and for which sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from argosy.web.auth.caller import BadLogin
from argosy.web.auth.oidc_provider_settings import read_provider
from argosy.web.auth.signed_tokens import CLOCK_SKEW_SECONDS, DAY_SECONDS
from argosy.web.auth.userinfo_groups import RETRY_SECONDS
from support.oidc_login import Scene
from support.oidc_provider import IdentityProvider
from support.tiers import in_test_all

pytestmark = pytest.mark.anyio
EXPIRY_SECONDS = 60


@pytest.fixture
async def scene(at_home: Scene) -> Scene:
    at_home.renew()
    at_home.provider.changes["groups"] = ["of-the-id-token"]
    await at_home.configure(
        enableUserInfoGroups=True, userInfoPath="/userinfo", userInfoCacheExpiration=f"{EXPIRY_SECONDS}s"
    )
    return at_home


async def test_userinfo_groups_replace_id_token_groups(scene: Scene) -> None:
    assert (await scene.sign_in()).groups == ("devs",)
    assert scene.provider.seen.count("/userinfo") == 1
    scene.provider.user_info = {"sub": "ann-id"}
    assert (await scene.sign_in()).groups == ()


WRONG: dict[str, Callable[[IdentityProvider], Any]] = {
    "another subject": lambda provider: setattr(provider, "user_info", {"sub": "bob", "groups": ["admins"]}),
    "no subject": lambda provider: setattr(provider, "user_info", {"groups": ["admins"]}),
    "a list": lambda provider: setattr(provider, "user_info", [{"sub": "ann-id"}]),
    "a text": lambda provider: setattr(provider, "user_info", "eyJhbGciOiJub25lIn0.e30."),
    "refused": lambda provider: setattr(provider, "user_info_code", 401),
    "forbidden": lambda provider: setattr(provider, "user_info_code", 403),
    "redirected": lambda provider: setattr(provider, "user_info_code", 302),
    "broken": lambda provider: setattr(provider, "user_info_code", 500),
}


@pytest.mark.parametrize("wrong", [*list(WRONG)[:3], *map(in_test_all, list(WRONG)[3:])])
async def test_login_fails_on_an_invalid_userinfo_response(scene: Scene, wrong: str) -> None:
    WRONG[wrong](scene.provider)
    with pytest.raises(BadLogin):
        await scene.sign_in()


async def test_groups_are_fetched_again_only_after_they_expire(scene: Scene) -> None:
    token = await scene.back(*await scene.go())
    caller = await scene.room.who(token, "argosy-1")
    assert caller is not None
    scene.provider.claims["groups"] = ["guests"]
    scene.room.clock.leap(EXPIRY_SECONDS - 1)
    assert await scene.room.who(token, "argosy-1") == caller
    assert scene.provider.seen.count("/userinfo") == 1
    scene.room.clock.leap(2)
    assert not scene.room.identities.is_still_valid(caller)  # its streams end; the browser reconnects
    assert scene.room.identities.is_expired(caller)
    renewed = await scene.room.who(token, "argosy-1")
    assert renewed is not None
    assert renewed.groups == ("guests",)
    assert scene.room.identities.is_still_valid(renewed)
    assert not scene.room.identities.is_still_valid(caller)


async def test_session_ends_when_the_provider_rejects_its_access_token(scene: Scene) -> None:
    token = await scene.back(*await scene.go())
    scene.provider.access_tokens.clear()
    scene.room.clock.leap(EXPIRY_SECONDS + 1)
    assert await scene.room.is_refused(token, "argosy-1")
    scene.room.clock.leap(-EXPIRY_SECONDS)  # the clock is set back: the session stays ended
    assert await scene.room.is_refused(token, "argosy-1")
    assert scene.provider.seen.count("/userinfo") == 2


async def test_session_ends_when_userinfo_returns_another_subject(scene: Scene) -> None:
    token = await scene.back(*await scene.go())
    scene.provider.user_info = {"sub": "bob", "groups": ["admins"]}
    scene.room.clock.leap(EXPIRY_SECONDS + 1)
    assert await scene.room.is_refused(token, "argosy-1")
    scene.provider.user_info = None
    scene.room.clock.leap(EXPIRY_SECONDS)
    assert await scene.room.is_refused(token, "argosy-1")
    assert scene.provider.seen.count("/userinfo") == 2


PASSING: dict[str, dict[str, Any]] = {
    "unavailable": {"user_info_code": 503},
    "too many requests": {"user_info_code": 429},
    "a redirect": {"user_info_code": 302},
    "forbidden": {"user_info_code": 403},
    "a time-out": {"user_info_code": 408},
    "not found": {"user_info_code": 404},
    "no content": {"user_info_code": 204},
    "a page": {"user_info": b"<html>Down for maintenance</html>"},
    "a list": {"user_info": []},
    "no subject": {"user_info": {"groups": ["admins"]}},
}


@pytest.mark.parametrize("answer", [*list(PASSING)[:2], *map(in_test_all, list(PASSING)[2:])])
async def test_session_is_refused_during_a_provider_outage_and_works_afterwards(scene: Scene, answer: str) -> None:
    token = await scene.back(*await scene.go())
    vars(scene.provider).update(PASSING[answer])
    scene.room.clock.leap(EXPIRY_SECONDS + 1)
    for _ in range(3):
        assert await scene.room.is_refused(token, "argosy-1")
    assert scene.provider.seen.count("/userinfo") == 2  # one at login, one for all three requests
    vars(scene.provider).update(user_info_code=200, user_info=None)
    scene.room.clock.leap(RETRY_SECONDS + 1)
    caller = await scene.room.who(token, "argosy-1")
    assert caller is not None
    assert caller.groups == ("devs",)


async def test_retry_pause_starts_when_a_slow_userinfo_request_fails(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await scene.back(*await scene.go())

    def fail_slowly(self: IdentityProvider, authorization: str) -> tuple[int, Any]:
        scene.room.clock.leap(RETRY_SECONDS * 2)
        return 503, {}

    monkeypatch.setattr(IdentityProvider, "user_information", fail_slowly)
    scene.room.clock.leap(EXPIRY_SECONDS + 1)
    for _ in range(3):
        assert await scene.room.is_refused(token, "argosy-1")
    assert scene.provider.seen.count("/userinfo") == 2


async def test_session_ends_at_expiry_in_a_process_without_its_access_token(scene: Scene) -> None:
    token = await scene.back(*await scene.go())
    scene.room.identities = scene.room.server(scene.room.glance)  # a restart, or another replica
    caller = await scene.room.who(token, "argosy-1")
    assert caller is not None
    assert caller.groups == ("devs",)
    scene.room.clock.leap(EXPIRY_SECONDS + 1)
    assert await scene.room.is_refused(token, "argosy-1")


async def test_cache_expiration_without_userinfo_groups_ends_no_session(scene: Scene) -> None:
    await scene.configure(enableUserInfoGroups=False, userInfoCacheExpiration=f"{EXPIRY_SECONDS}s")
    token = await scene.back(*await scene.go())
    scene.room.clock.leap(EXPIRY_SECONDS + 1)
    caller = await scene.room.who(token, "argosy-1")
    assert caller is not None
    assert caller.groups == ("of-the-id-token",)
    assert scene.room.identities.is_still_valid(caller)
    assert "/userinfo" not in scene.provider.seen


async def test_access_token_is_in_no_cookie_and_no_log(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    token = await scene.back(*await scene.go())
    scene.provider.user_info_code = 503
    scene.room.clock.leap(EXPIRY_SECONDS + 1)
    assert await scene.room.is_refused(token, "argosy-1")
    (access_token,) = scene.provider.access_tokens
    assert access_token not in token
    assert access_token not in caplog.text
    assert access_token not in repr(scene.room.identities.sso_login.user_info._sessions)


async def test_refused_login_keeps_no_access_token(scene: Scene) -> None:
    groups = [f"a-group-with-a-long-name-{number:04d}" for number in range(400)]
    scene.provider.claims["groups"] = groups
    await scene.room.settings("argocd-rbac-cm", policy__csv="\n".join(f"g, {group}, role:readonly" for group in groups))
    with pytest.raises(BadLogin):  # more groups with roles than a session can hold
        await scene.sign_in()
    await scene.room.settings("argocd-rbac-cm", policy__csv=None)
    assert scene.provider.access_tokens
    assert not scene.room.identities.sso_login.user_info._sessions


async def test_access_tokens_are_dropped_when_their_sessions_expire(scene: Scene) -> None:
    sessions = scene.room.identities.sso_login.user_info._sessions
    first = await scene.sign_in()
    scene.room.clock.leap(DAY_SECONDS - EXPIRY_SECONDS)
    scene.provider.clock_ahead = scene.room.clock._ahead
    token = await scene.back(*await scene.go())
    assert len(sessions) == 2
    scene.room.clock.leap(
        EXPIRY_SECONDS + CLOCK_SKEW_SECONDS + 1
    )  # a day after the first login: a request of another session
    assert not await scene.room.is_refused(token, "argosy-1")
    assert len(sessions) == 1
    assert first.id not in sessions
    scene.room.clock.leap(DAY_SECONDS)  # or another login
    scene.provider.clock_ahead = scene.room.clock._ahead
    second = await scene.sign_in()
    assert list(sessions) == [second.id]


async def test_ended_session_causes_no_userinfo_request(scene: Scene) -> None:
    token = await scene.back(*await scene.go())
    caller = await scene.room.who(token, "argosy-1")
    assert caller is not None
    await scene.room.server(scene.room.glance).logout(caller)  # at a replica without its access token
    await scene.room.glance.look()
    scene.room.clock.leap(EXPIRY_SECONDS + 1)
    assert await scene.room.is_refused(token, "argosy-1")
    assert scene.provider.seen.count("/userinfo") == 1


@pytest.mark.parametrize(("changes", "sentence"), [
    ("enableUserInfoGroups: yes please", "enableUserInfoGroups is neither true nor false"),
    ("enableUserInfoGroups: true", "enableUserInfoGroups needs userInfoPath"),
    ("enableUserInfoGroups: true\nuserInfoPath: .evil.example/me", "userInfoPath with a slash"),
    ("enableUserInfoGroups: true\nuserInfoPath: '@evil.example/me'", "userInfoPath with a slash"),
    ("enableUserInfoGroups: true\nuserInfoPath: /me\nuserInfoBaseURL: http://x", "must begin with https://"),
    ("enableUserInfoGroups: true\nuserInfoPath: /me\nuserInfoCacheExpiration: soon", "userInfoCacheExpiration"),
    ("enableUserInfoGroups: true\nuserInfoPath: /me\nuserInfoCacheExpiration: 5", "Expiration is not a string"),
])  # fmt: skip
def test_invalid_userinfo_settings_are_named(changes: str, sentence: str) -> None:
    text = f"issuer: https://x\nclientID: a\n{changes}"
    provider, fault = read_provider({"oidc.config": text}, {}.get)
    assert provider is None
    assert sentence in fault


def test_userinfo_url_is_below_the_issuer_or_its_own_base_url() -> None:
    text = "issuer: https://x/realm\nclientID: a\nenableUserInfoGroups: true\nuserInfoPath: /me\n"
    provider, _ = read_provider({"oidc.config": text}, {}.get)
    assert provider is not None
    assert (provider.user_info_url, provider.user_info_cache_seconds) == ("https://x/realm/me", 0.0)
    provider, _ = read_provider(
        {"oidc.config": text + "userInfoBaseURL: https://y\nuserInfoCacheExpiration: 5m"}, {}.get
    )
    assert provider is not None
    assert (provider.user_info_url, provider.user_info_cache_seconds) == ("https://y/me", 300.0)


@pytest.mark.parametrize("expiration", ["5m", "soon"])
def test_userinfo_settings_are_ignored_while_it_is_disabled(expiration: str) -> None:
    text = f"issuer: https://x\nclientID: a\nuserInfoPath: /me\nuserInfoCacheExpiration: {expiration}\n"
    for switch in ("", "enableUserInfoGroups: false"):
        provider, fault = read_provider({"oidc.config": text + switch}, {}.get)
        assert provider is not None, fault
        assert (provider.user_info_url, provider.user_info_cache_seconds) == ("", 0.0)
