"""One-time login codes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from argosy.web.auth.caller import BadLogin
from argosy.web.auth.login_codes import KEY_FILE_NAME, LoginCodes
from support.identities import Room

pytestmark = pytest.mark.anyio


async def test_code_opens_an_admin_session_once(room: Room) -> None:
    code = room.codes.create_code()
    caller = await room.who(await room.identities.login_with_one_time_code(code), "argosy-1")
    assert caller is not None
    assert (caller.name, caller.credential_kind) == ("admin", "cookie")
    with pytest.raises(BadLogin):
        await room.identities.login_with_one_time_code(code)
    with pytest.raises(BadLogin):
        await room.server().login_with_one_time_code(code)


async def test_code_expires_after_a_minute_and_future_codes_are_rejected(room: Room) -> None:
    code = room.codes.create_code()
    room.clock.leap(61)
    with pytest.raises(BadLogin):
        await room.identities.login_with_one_time_code(code)
    early = LoginCodes(room.folder, lambda: room.clock.now().timestamp() + 3600).create_code()
    with pytest.raises(BadLogin):
        await room.identities.login_with_one_time_code(early)


async def test_code_of_a_user_who_may_not_log_in_is_rejected(room: Room) -> None:
    await room.settings(admin__enabled="false")
    for code in (room.codes.create_code(), room.codes.create_code("eve")):
        with pytest.raises(BadLogin):
            await room.identities.login_with_one_time_code(code)


def test_code_of_another_folder_or_with_changed_text_is_rejected(tmp_path: Path) -> None:
    codes, other = LoginCodes(tmp_path / "a"), LoginCodes(tmp_path / "b")
    code = codes.create_code()
    assert other.redeem(code) is None
    assert codes.redeem(code.replace("admin", "bdmin")) is None
    assert codes.redeem(code[:-1]) is None
    assert codes.redeem("") is None
    assert codes.redeem("x" * 10_000) is None
    assert codes.redeem(code) == "admin"


def test_key_file_is_private_and_shared_by_concurrent_starts(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    codes: list[str] = []
    threads = [threading.Thread(target=lambda: codes.append(LoginCodes(folder).create_code())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [LoginCodes(folder).redeem(code) for code in codes] == ["admin"] * 8
    assert (folder / KEY_FILE_NAME).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_concurrent_redeems_of_a_code_succeed_once(tmp_path: Path) -> None:
    code = LoginCodes(tmp_path).create_code()
    redeemed: list[str | None] = []
    threads = [threading.Thread(target=lambda: redeemed.append(LoginCodes(tmp_path).redeem(code))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert redeemed.count("admin") == 1
