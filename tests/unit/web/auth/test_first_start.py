"""The first start: a key and a password that nobody else has, made once, whoever starts at the same time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import bcrypt
import pytest

from argosy.errors import UserError
from argosy.kube.resource_key import ResourceKey
from argosy.web.auth.account_changes import INITIAL_ADMIN_SECRET
from support.engine import embedded, furnish
from support.identities import NAMESPACE, Room

pytestmark = pytest.mark.anyio


async def test_the_first_start_makes_a_key_and_a_password_and_keeps_a_hash(room: Room) -> None:
    data = await room.secret()
    password = (await room.secret(INITIAL_ADMIN_SECRET))["password"]
    assert len(password) >= 22  # 128 bits
    assert len(data["server.secretkey"]) >= 44
    assert bcrypt.checkpw(password, data["admin.password"])
    assert password not in b"".join(data.values())
    assert not await room.is_refused(await room.identities.login("admin", password.decode()))


async def test_the_second_start_changes_nothing(room: Room) -> None:
    before = [await room.secret(), await room.secret(INITIAL_ADMIN_SECRET)]
    assert await room.server().prepare() is False
    assert [await room.secret(), await room.secret(INITIAL_ADMIN_SECRET)] == before


async def test_what_an_argo_cd_has_set_up_is_used_and_not_replaced(tmp_path: Path) -> None:
    async with embedded(tmp_path) as cluster:
        await furnish(cluster, NAMESPACE)
        room = Room(cluster, tmp_path / "codes")
        password_hash = bcrypt.hashpw(b"as it was", bcrypt.gensalt(4)).decode()
        then = "2024-01-01T00:00:00Z"
        await room.secrets(admin__password=password_hash, admin__passwordMtime=then, server__secretkey="k" * 44)
        before = await room.secret()
        assert await room.identities.prepare() is False
        assert await room.secret() == before
        assert await room.secret(INITIAL_ADMIN_SECRET) == {}
        with pytest.raises(UserError, match="argocd-initial-admin-secret"):
            await room.identities.account_store.load_initial_password()
        assert not await room.is_refused(await room.identities.login("admin", "as it was"))


async def test_several_that_start_at_once_agree(tmp_path: Path) -> None:
    async with embedded(tmp_path) as cluster:
        await furnish(cluster, NAMESPACE)
        room = Room(cluster, tmp_path / "codes")
        results = await asyncio.gather(*(room.server().prepare() for _ in range(6)))
        assert results.count(True) == 1
        await room.glance.look()
        password = (await room.secret(INITIAL_ADMIN_SECRET))["password"].decode()
        assert not await room.is_refused(await room.identities.login("admin", password))


async def test_a_start_that_broke_off_goes_on_with_the_password_that_is_there(tmp_path: Path) -> None:
    async with embedded(tmp_path) as cluster:
        await furnish(cluster, NAMESPACE)
        room = Room(cluster, tmp_path / "codes")
        await room.identities.prepare()
        await room.secrets(admin__password=None)
        assert await room.identities.prepare() is True
        await room.glance.look()
        password = (await room.secret(INITIAL_ADMIN_SECRET))["password"].decode()
        assert not await room.is_refused(await room.identities.login("admin", password))


async def test_no_password_is_made_where_admin_is_off(tmp_path: Path) -> None:
    async with embedded(tmp_path) as cluster:
        await furnish(cluster, NAMESPACE)
        room = Room(cluster, tmp_path / "codes")
        await room.settings(admin__enabled="false")
        assert await room.identities.prepare() is False
        assert await cluster.get(ResourceKey("", "Secret", NAMESPACE, INITIAL_ADMIN_SECRET)) is None
        assert (await room.secret())["server.secretkey"]
