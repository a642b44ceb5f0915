"""First start: the signing key and the admin password are created once, even by concurrent starts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import bcrypt
import pytest

from argosy.errors import UserError
from argosy.kube.resource_key import ResourceKey
from argosy.web.auth.account_password_token_store import INITIAL_ADMIN_SECRET
from support.engine import embedded, furnish
from support.identities import NAMESPACE, Room

pytestmark = pytest.mark.anyio


async def test_first_start_creates_a_key_a_password_and_its_hash(room: Room) -> None:
    data = await room.secret()
    password = (await room.secret(INITIAL_ADMIN_SECRET))["password"]
    assert len(password) >= 22  # 128 bits
    assert len(data["server.secretkey"]) >= 44
    assert bcrypt.checkpw(password, data["admin.password"])
    assert password not in b"".join(data.values())
    assert not await room.is_refused(await room.identities.login("admin", password.decode()))


async def test_second_start_changes_nothing(room: Room) -> None:
    before = [await room.secret(), await room.secret(INITIAL_ADMIN_SECRET)]
    assert await room.server().prepare() is False
    assert [await room.secret(), await room.secret(INITIAL_ADMIN_SECRET)] == before


async def test_existing_argo_cd_secrets_are_used_and_not_replaced(tmp_path: Path) -> None:
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


async def test_concurrent_first_starts_agree_on_one_password(tmp_path: Path) -> None:
    async with embedded(tmp_path) as cluster:
        await furnish(cluster, NAMESPACE)
        room = Room(cluster, tmp_path / "codes")
        results = await asyncio.gather(*(room.server().prepare() for _ in range(6)))
        assert results.count(True) == 1
        await room.glance.look()
        password = (await room.secret(INITIAL_ADMIN_SECRET))["password"].decode()
        assert not await room.is_refused(await room.identities.login("admin", password))


async def test_interrupted_first_start_resumes_with_the_existing_password(tmp_path: Path) -> None:
    async with embedded(tmp_path) as cluster:
        await furnish(cluster, NAMESPACE)
        room = Room(cluster, tmp_path / "codes")
        await room.identities.prepare()
        await room.secrets(admin__password=None)
        assert await room.identities.prepare() is True
        await room.glance.look()
        password = (await room.secret(INITIAL_ADMIN_SECRET))["password"].decode()
        assert not await room.is_refused(await room.identities.login("admin", password))


async def test_no_password_is_created_if_admin_is_disabled(tmp_path: Path) -> None:
    async with embedded(tmp_path) as cluster:
        await furnish(cluster, NAMESPACE)
        room = Room(cluster, tmp_path / "codes")
        await room.settings(admin__enabled="false")
        assert await room.identities.prepare() is False
        assert await cluster.get(ResourceKey("", "Secret", NAMESPACE, INITIAL_ADMIN_SECRET)) is None
        assert (await room.secret())["server.secretkey"]
