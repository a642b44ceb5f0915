"""Sessions and API tokens: how they begin, and everything that ends them."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.kube.resource_key import ResourceKey
from argosy.web.auth import signed_tokens
from argosy.web.auth.caller import BadLogin, RevokedCredential
from argosy.web.auth.session_revocation import MAX_REVOKED_SESSIONS
from support.identities import NAMESPACE, Room

pytestmark = pytest.mark.anyio
PASSWORD = "correct horse"


async def test_password_login_lasts_a_day_for_programs_and_an_idle_hour_for_browsers(room: Room) -> None:
    await room.account("ann", PASSWORD)
    for is_browser, seconds in ((False, 86400), (True, 3600)):
        token = await room.identities.login("ann", PASSWORD, is_browser=is_browser)
        caller = await room.who(token)
        assert caller is not None
        assert (caller.name, caller.kind, caller.groups) == ("ann", "account", ())
        assert caller.expires - caller.claims.issued_at == seconds


@pytest.mark.parametrize(
    ("name", "password"),
    [("ann", "wrong horse"), ("ann", ""), ("nobody", PASSWORD), ("", PASSWORD), ("Ann", PASSWORD), ("robot", PASSWORD),
     ("role:admin", PASSWORD), ("ann", "x" * 100), ("ann", f"{PASSWORD}\0"), ("ann\0", PASSWORD), ("ann", "\ud800")],
)  # fmt: skip
async def test_invalid_logins_are_rejected_alike(room: Room, name: str, password: str) -> None:
    await room.account("ann", PASSWORD)
    await room.account("robot", PASSWORD, "apiKey")
    with pytest.raises(BadLogin):
        await room.identities.login(name, password)


async def test_active_browser_session_ends_after_a_day(room: Room) -> None:
    await room.account("ann", PASSWORD)
    token = await room.identities.login("ann", PASSWORD, is_browser=True)
    for _ in range(27):
        caller = await room.who(token, "argosy-1")
        assert caller is not None
        token = room.identities.renew_token(caller) or token
        room.clock.leap(3200)
    assert await room.is_refused(token, "argosy-1")


async def test_session_duration_setting_limits_sessions_and_renewals(room: Room) -> None:
    await room.account("ann", PASSWORD)
    await room.settings(users__session__duration="30m")
    for is_browser in (True, False):  # a program may present its token as a cookie, too
        token = await room.identities.login("ann", PASSWORD, is_browser=is_browser)
        room.clock.leap(1000)
        caller = await room.who(token, "argosy-1")
        assert caller is not None and caller.expires - caller.claims.issued_at == 1800
        assert room.identities.renew_token(caller) is None
        room.clock.leap(801)
        assert await room.is_refused(token, "argosy-1")
    await room.settings(users__session__duration="2h")
    token = await room.identities.login("ann", PASSWORD, is_browser=True)
    for _ in range(2):
        room.clock.leap(3500)
        caller = await room.who(token, "argosy-1")
        assert caller is not None
        token = room.identities.renew_token(caller) or token
    room.clock.leap(300)
    assert await room.is_refused(token, "argosy-1")


async def test_idle_browser_session_ends_after_an_hour(room: Room) -> None:
    await room.account("ann", PASSWORD)
    token = await room.identities.login("ann", PASSWORD, is_browser=True)
    caller = await room.who(token, "argosy-1")
    assert caller is not None
    assert room.identities.renew_token(caller) is None  # the token is too new to be renewed
    assert room.identities.is_still_valid(caller)
    room.clock.leap(3601)
    assert not room.identities.is_still_valid(caller)
    assert await room.is_refused(token, "argosy-1")


async def test_stream_with_a_renewed_token_is_expired_not_revoked(room: Room) -> None:
    """The browser reconnects with the newer token; a caller that logged out cannot."""
    await room.account("ann", PASSWORD)
    token = await room.identities.login("ann", PASSWORD, is_browser=True)
    room.clock.leap(3000)
    opened = await room.who(token, "argosy-1")
    assert opened is not None
    later = room.identities.renew_token(opened)
    assert later is not None and not room.identities.is_expired(opened)
    room.clock.leap(700)
    assert not room.identities.is_still_valid(opened) and room.identities.is_expired(opened)
    again = await room.who(later, "argosy-1")
    assert again is not None and room.identities.is_still_valid(again)
    await room.identities.logout(again)
    assert not room.identities.is_still_valid(again) and not room.identities.is_expired(again)


async def test_logout_ends_the_session_and_renewed_tokens_on_every_server(room: Room) -> None:
    await room.account("ann", PASSWORD)
    token = await room.identities.login("ann", PASSWORD, is_browser=True)
    room.clock.leap(400)
    caller = await room.who(token, "argosy-1")
    assert caller is not None
    later = room.identities.renew_token(caller)
    assert later is not None
    await room.identities.logout(caller)
    assert not room.identities.is_still_valid(caller)
    other = room.server(room.glance)  # reads from the cluster what the first server wrote
    await room.glance.look()
    assert not other.is_still_valid(caller)
    with pytest.raises(RevokedCredential):
        await room.who(later, "argosy-1")
    assert await room.is_refused(token)


async def end_by_password(room: Room) -> None:
    await room.identities.account_store.set_password("ann", "another horse")


async def end_by_disabling(room: Room) -> None:
    await room.settings(accounts__ann__enabled="false")


async def end_by_removing(room: Room) -> None:
    await room.settings(accounts__ann=None)


async def end_by_taking_login_away(room: Room) -> None:
    await room.settings(accounts__ann="")


async def end_by_another_key(room: Room) -> None:
    await room.secrets(server__secretkey=base64.b64encode(b"y" * 32).decode())


async def end_by_no_key(room: Room) -> None:
    await room.secrets(server__secretkey=None)


ENDINGS = [
    end_by_password, end_by_disabling, end_by_removing, end_by_taking_login_away, end_by_another_key, end_by_no_key
]  # fmt: skip


async def test_signing_key_that_is_too_short_is_named(room: Room) -> None:
    await room.account("ann", PASSWORD)
    before = await room.secret()
    await room.secrets(server__secretkey="short")
    expected = r"server.secretkey of Secret argocd-secret has 5 bytes; at least 16 are needed; remove that field"
    with pytest.raises(UserError, match=expected):
        await room.identities.login("ann", PASSWORD)
    with pytest.raises(UserError, match=expected):
        await room.identities.account_store.add_token("ann")
    assert await room.secret() == {**before, "server.secretkey": b"short"}, "no token is recorded"


@pytest.mark.parametrize("ending", ENDINGS)
async def test_account_changes_end_open_sessions_and_tokens(room: Room, ending: Any) -> None:
    await room.account("ann", PASSWORD)
    token = await room.identities.login("ann", PASSWORD)
    api = await room.identities.account_store.add_token("ann")
    callers = [await room.who(token), await room.who(api)]
    assert all(room.identities.is_still_valid(caller) for caller in callers if caller)
    await ending(room)
    await room.glance.look()
    assert [room.identities.is_still_valid(caller) for caller in callers if caller] == [False, False]
    assert await room.is_refused(token)
    assert await room.is_refused(api)


async def test_token_is_valid_when_issued_and_invalid_after_deletion(room: Room) -> None:
    await room.account("ann", PASSWORD)
    token = await room.identities.account_store.add_token("ann", lifetime_seconds=3600, token_id="ci")
    caller = await room.who(token)  # the cluster view has not seen it yet
    assert caller is not None
    assert caller.id == "ci"
    assert b"ci" in (await room.secret())["accounts.ann.tokens"]
    assert token.encode() not in b"".join((await room.secret()).values())
    with pytest.raises(UserError, match="already has a token"):
        await room.identities.account_store.add_token("ann", token_id="ci")
    await room.identities.account_store.remove_token("ann", "ci")
    await room.glance.look()
    assert not room.identities.is_still_valid(caller)
    assert await room.is_refused(token)


async def test_token_expires_at_its_expiry_and_never_without_one(room: Room) -> None:
    await room.account("ann", PASSWORD)
    short = await room.identities.account_store.add_token("ann", lifetime_seconds=60)
    endless = await room.identities.account_store.add_token("ann")
    room.clock.leap(61)
    assert await room.is_refused(short)
    room.clock.leap(10 * 365 * 86400)
    assert not await room.is_refused(endless)


async def test_reused_token_id_does_not_revive_a_deleted_token(room: Room) -> None:
    await room.account("ann", PASSWORD)
    book = room.identities.account_store
    leaked = await book.add_token("ann", token_id="ci")
    caller = await room.who(leaked)
    assert caller is not None
    child = await book.add_token("ann", limits=room.identities.get_token_limits(caller, caller.rbac_requester))
    assert not await room.is_refused(child)
    await book.remove_token("ann", "ci")
    room.clock.leap(60)
    fresh = await book.add_token("ann", token_id="ci")
    await room.glance.look()
    assert not await room.is_refused(fresh)
    assert await room.is_refused(leaked) and await room.is_refused(child)


async def test_token_issued_in_the_second_of_a_password_change_is_valid(room: Room) -> None:
    await room.settings(accounts__ann="apiKey, login")
    await room.identities.account_store.set_password("ann", PASSWORD)
    await room.glance.look()
    assert not await room.is_refused(await room.identities.account_store.add_token("ann"))
    assert not await room.is_refused(await room.identities.login("ann", PASSWORD))


async def test_password_changes_within_a_second_end_tokens_issued_in_between(room: Room) -> None:
    await room.settings(accounts__ann="apiKey, login")
    tokens = []
    for number in range(4):
        await room.identities.account_store.set_password("ann", f"{PASSWORD} {number}")
        await room.glance.look()
        assert [await room.is_refused(token) for token in tokens] == [True] * len(tokens)
        tokens += [await room.identities.account_store.add_token("ann")]
        tokens += [await room.identities.login("ann", f"{PASSWORD} {number}")]
        assert [await room.is_refused(token) for token in tokens[-2:]] == [False, False]


async def test_concurrent_token_creation_on_two_servers_loses_no_token(room: Room) -> None:
    await room.account("ann", PASSWORD)
    other = room.server(room.glance)
    tokens = await asyncio.gather(*(server.account_store.add_token("ann") for server in [room.identities, other] * 6))
    assert [await room.is_refused(token) for token in tokens] == [False] * 12


async def test_admin_can_be_disabled(room: Room) -> None:
    password = await room.identities.account_store.load_initial_password()
    token = await room.identities.login("admin", password)
    await room.settings(admin__enabled="false")
    assert await room.is_refused(token)
    with pytest.raises(BadLogin):
        await room.identities.login("admin", password)


async def test_project_role_token_is_valid_while_the_project_lists_it(room: Room) -> None:
    now = int(room.clock.now().timestamp())
    key = ResourceKey("argoproj.io", "AppProject", NAMESPACE, "ml")
    role = {"name": "ci", "policies": ["p, proj:ml:ci, applications, sync, ml/*, allow"]}
    listed = {**role, "jwtTokens": [{"iat": now, "id": "one"}, {"iat": now, "id": "two", "exp": now + 60}]}
    metadata = {"name": "ml", "namespace": NAMESPACE}
    await room.cluster.create(
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": {"roles": [listed]}}
    )
    signing_key = (await room.secret())["server.secretkey"]
    claims = [signed_tokens.TokenClaims("argocd", "proj:ml:ci", name, now, 0, now) for name in ("one", "two", "three")]
    one, two, three = (signed_tokens.sign_token(payload, signing_key) for payload in claims)
    caller = await room.who(one)
    await room.glance.look()
    assert caller is not None
    assert caller.kind == "project"
    assert room.identities.is_allowed(caller, "applications", "sync", "ml/a")
    assert not room.identities.is_allowed(caller, "applications", "sync", "other/a")
    assert not await room.is_refused(two)
    assert await room.is_refused(three)
    room.clock.leap(61)
    assert await room.is_refused(two)
    await room.cluster.patch(key, {"spec": {"roles": [role]}})
    await room.glance.look()
    assert not room.identities.is_still_valid(caller)
    assert await room.is_refused(one)


async def test_policy_changes_apply_to_open_sessions_immediately(room: Room) -> None:
    await room.account("ann", PASSWORD)
    caller = await room.who(await room.identities.login("ann", PASSWORD))
    assert caller is not None
    assert not room.identities.is_allowed(caller, "applications", "get", "ml/a")
    await room.settings("argocd-rbac-cm", **{"policy__csv": "p, ann, applications, get, ml/*, allow"})
    assert room.identities.is_allowed(caller, "applications", "get", "ml/a")
    digest = room.identities.permissions(caller).digest
    await room.settings("argocd-rbac-cm", **{"policy__csv": ""})
    assert not room.identities.is_allowed(caller, "applications", "get", "ml/a")
    assert room.identities.permissions(caller).digest != digest


async def test_exceeding_the_revocation_limit_ends_all_sessions(room: Room) -> None:
    await room.account("ann", PASSWORD)
    first, second = [await room.identities.login("ann", PASSWORD) for _ in range(2)]
    far = str(int(room.clock.now().timestamp()) + 86400)
    await room.settings("argosy-sessions", **{f"{number:040d}": far for number in range(MAX_REVOKED_SESSIONS)})
    caller = await room.who(first)
    assert caller is not None
    await room.identities.logout(caller)
    await room.glance.look()
    assert await room.is_refused(second)
    assert len(room.identities.state.revoked_sessions) < 10
    room.clock.leap(2)
    assert not await room.is_refused(await room.identities.login("ann", PASSWORD))
