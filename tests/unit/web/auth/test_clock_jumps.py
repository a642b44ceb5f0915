"""Logins, sessions and login codes while the clock jumps forward and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.web.auth.caller import BadLogin
from argosy.web.auth.login_codes import LoginCodes
from support.identities import Room

pytestmark = pytest.mark.anyio
PASSWORD = "correct horse"
DAY = 86400.0


async def may_log_in(room: Room, password: str = PASSWORD) -> bool:
    try:
        await room.identities.login("ann", password)
    except BadLogin:
        return False
    return True


async def test_lockout_ends_in_time_although_the_clock_was_set_back(room: Room) -> None:
    await room.account("ann", PASSWORD)
    room.clock.leap(2 * DAY)
    for _ in range(5):
        assert not await may_log_in(room, "wrong")
    assert not await may_log_in(room)
    room.clock.set_by(-DAY)
    room.clock.leap(400)  # longer than an account is locked
    assert await may_log_in(room)


async def test_failed_logins_still_count_after_a_small_clock_step(room: Room) -> None:
    await room.account("ann", PASSWORD)
    room.clock.leap(60)
    for _ in range(5):
        assert not await may_log_in(room, "wrong")
    room.clock.set_by(-30)
    assert not await may_log_in(room)


async def test_ended_session_stays_ended_after_a_temporary_forward_jump(room: Room) -> None:
    await room.account("ann", PASSWORD)
    token, other = await room.identities.login("ann", PASSWORD), await room.identities.login("ann", PASSWORD)
    caller, other_caller = await room.who(token), await room.who(other)
    assert caller is not None and other_caller is not None
    await room.identities.logout(caller)
    await room.glance.look()
    room.clock.set_by(5 * DAY)
    await room.identities.logout(other_caller)  # this write may drop expired revocations
    await room.glance.look()
    room.clock.set_by(-5 * DAY)
    assert await room.is_refused(token)
    fresh = room.server(room.glance)
    await room.glance.look()
    assert not fresh.is_still_valid(caller)


@pytest.mark.parametrize("jump", [-30 * DAY, -3600.0, 3600.0, 30 * DAY])
async def test_session_created_after_a_clock_jump_is_valid(room: Room, jump: float) -> None:
    await room.account("ann", PASSWORD)
    room.clock.leap(60 * DAY)
    room.clock.set_by(jump)
    assert await room.who(await room.identities.login("ann", PASSWORD)) is not None


@pytest.mark.parametrize("jump", [-30 * DAY, -6 * 3600.0, -3600.0, 3600.0, 6 * 3600.0, 30 * DAY])
async def test_session_keeps_its_lifetime_across_clock_jumps(room: Room, jump: float) -> None:
    """A jump may make a session invalid but never extends it; with the right clock it is valid again."""
    await room.account("ann", PASSWORD)
    room.clock.leap(60 * DAY)
    token = await room.identities.login("ann", PASSWORD)
    caller = await room.who(token)
    assert caller is not None and caller.expires
    left = caller.expires - room.clock.now().timestamp()
    room.clock.set_by(jump)
    assert await room.is_refused(token) == (jump < -60 or jump >= left)
    assert await room.who(await room.identities.login("ann", PASSWORD)) is not None, "people can log in anew"
    room.clock.set_by(-jump)
    assert await room.who(token) is not None
    room.clock.leap(left + 1)
    assert await room.is_refused(token)


async def test_session_created_while_the_clock_was_ahead_lasts_no_longer(room: Room) -> None:
    await room.account("ann", PASSWORD)
    room.clock.set_by(30 * DAY)
    ahead = await room.identities.login("ann", PASSWORD)
    caller = await room.who(ahead)
    assert caller is not None and caller.expires
    left = caller.expires - room.clock.now().timestamp()
    room.clock.set_by(-30 * DAY)
    assert await room.is_refused(ahead), "it is not valid yet"
    room.clock.leap(left)
    assert await room.is_refused(ahead)


async def test_login_code_stays_redeemed_after_a_temporary_forward_jump(tmp_path: Path) -> None:
    now = [1_800_000_000.0]
    codes = LoginCodes(tmp_path, lambda: now[0])
    code = codes.create_code()
    assert codes.redeem(code) == "admin"
    now[0] += 3600
    assert codes.redeem(codes.create_code()) == "admin"
    now[0] -= 3600
    assert codes.redeem(code) is None


async def test_password_set_while_the_clock_was_ahead_works_and_ends_older_sessions(room: Room) -> None:
    await room.account("ann", PASSWORD)
    before = await room.identities.login("ann", PASSWORD)
    room.clock.set_by(DAY)
    await room.identities.account_store.set_password("ann", "another horse")
    await room.glance.look()
    ahead = await room.identities.login("ann", "another horse")
    room.clock.set_by(-DAY)
    room.clock.leap(5)
    assert await room.is_refused(before)
    session = await room.identities.login("ann", "another horse")
    assert await room.who(session) is not None
    await room.identities.account_store.set_password("ann", "third horse")
    await room.glance.look()
    for token in (before, ahead, session):
        assert await room.is_refused(token)
    assert await room.who(await room.identities.login("ann", "third horse")) is not None
    room.clock.leap(DAY + 60)
    for token in (before, ahead, session):
        assert await room.is_refused(token)
