"""Login rate limit: few password guesses count, for any user, rate, address, server or restart."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable

import pytest

from argosy.kube.controller.clock import Timer
from argosy.kube.resource_key import ResourceKey
from argosy.web.auth.authenticator import Authenticator
from argosy.web.auth.caller import BadLogin
from argosy.web.auth.login_rate_limit import CONFIG_MAP_NAME, MAX_FAILURES_PER_ADDRESS
from argosy.web.auth.passwords import PasswordHasher
from support.identities import CHEAP, NAMESPACE, Glance, Room
from support.paths import ROOT

pytestmark = pytest.mark.anyio
PASSWORD = "correct horse"
SOURCE = ROOT / "src" / "argosy"


async def try_login(identities: Authenticator, name: str, password: str = "wrong", peer: str = "") -> bool:
    try:
        await identities.login(name, password, peer=peer)
    except BadLogin:
        return False
    return True


async def test_five_failed_logins_lock_an_account_for_five_minutes(room: Room) -> None:
    await room.account("ann", PASSWORD)
    hashing = room.identities.account_store.hashing
    before = hashing.comparison_count
    for _ in range(9):
        assert not await try_login(room.identities, "ann")
    assert hashing.comparison_count - before == 5
    assert not await try_login(room.identities, "ann", PASSWORD)
    room.clock.leap(290)
    assert not await try_login(room.identities, "ann", PASSWORD)
    room.clock.leap(12)
    assert await try_login(room.identities, "ann", PASSWORD)


async def test_successful_logins_neither_count_nor_reset_failures(room: Room) -> None:
    await room.account("ann", PASSWORD)
    for _ in range(8):
        assert await try_login(room.identities, "ann", PASSWORD)
    for _ in range(4):
        assert not await try_login(room.identities, "ann")
    assert await try_login(room.identities, "ann", PASSWORD)
    assert not await try_login(room.identities, "ann")
    assert not await try_login(room.identities, "ann", PASSWORD)


async def test_failures_from_one_address_do_not_lock_out_another(room: Room) -> None:
    await room.account("ann", PASSWORD)
    hashing, before = room.identities.account_store.hashing, room.identities.account_store.hashing.comparison_count
    for _ in range(20):
        assert not await try_login(room.identities, "ann", peer="203.0.113.9")
    assert hashing.comparison_count - before == MAX_FAILURES_PER_ADDRESS
    assert not await try_login(room.identities, "ann", PASSWORD, "203.0.113.9")
    assert await try_login(room.identities, "ann", PASSWORD, "198.51.100.1")


async def test_strangers_cannot_lock_out_an_account_from_its_known_address(room: Room) -> None:
    await room.account("ann", PASSWORD)
    home = "198.51.100.1"
    assert await try_login(room.identities, "ann", PASSWORD, home)
    for number in range(40):
        assert not await try_login(room.identities, "ann", peer=f"203.0.113.{number}")
    assert not await try_login(room.identities, "ann", PASSWORD, "203.0.113.200")
    again = room.server()  # known addresses survive a restart
    await again.state.refresh(room.cluster)
    assert await try_login(again, "ann", PASSWORD, home)
    hashing, before = room.identities.account_store.hashing, room.identities.account_store.hashing.comparison_count
    for _ in range(9):
        await try_login(room.identities, "ann", peer=home)  # the limit of five applies there too
    assert hashing.comparison_count - before == 5
    room.clock.leap(31 * 86400)
    for number in range(40):
        await try_login(room.identities, "ann", peer=f"203.0.113.{number}")
    assert not await try_login(room.identities, "ann", PASSWORD, home)  # known addresses expire after a month


async def test_expired_address_counts_are_removed(room: Room) -> None:
    await room.account("ann", PASSWORD)
    for number in range(20):
        await try_login(room.identities, "ann", peer=f"203.0.113.{number}")
        room.clock.leap(301)
    config_map = await room.cluster.get(ResourceKey("", "ConfigMap", NAMESPACE, CONFIG_MAP_NAME))
    assert config_map is not None and len(config_map["data"]) == 2


async def test_account_names_do_not_collide_with_internal_counters(room: Room) -> None:
    for name in ("strangers", "_unknown"):
        await room.account(name, PASSWORD)
    for number in range(9):
        await try_login(room.identities, f"nobody-{number}")
    assert await try_login(room.identities, "strangers", PASSWORD)
    assert await try_login(room.identities, "_unknown", PASSWORD)


async def test_unknown_accounts_share_one_counter_and_evict_no_other(room: Room) -> None:
    await room.account("ann", PASSWORD)
    for _ in range(5):
        await try_login(room.identities, "ann")
    for number in range(50):
        await try_login(room.identities, f"nobody-{number}")
    assert not await try_login(room.identities, "ann", PASSWORD)
    rate_limiter = room.identities.rate_limiter
    assert await rate_limiter.count_attempt("") is None
    assert await try_login(room.identities, "admin", await room.identities.account_store.load_initial_password())


async def test_two_hundred_concurrent_logins_on_two_servers_allow_five_guesses(room: Room) -> None:
    await room.account("ann", PASSWORD)
    hashing = PasswordHasher(CHEAP)
    servers = []
    for _ in range(2):
        glance = Glance(room.cluster)
        servers.append(room.server(glance, hashing))
        await glance.look()
    await asyncio.gather(*(try_login(servers[number % 2], "ann") for number in range(200)))
    assert 1 <= hashing.comparison_count <= 5


async def test_failed_login_waits_the_minimum_time_for_unknown_accounts_too(room: Room) -> None:
    """Does not measure time: both cases compare one hash of the same cost and wait until the same moment."""
    await room.account("ann", PASSWORD)
    waits: list[float] = []
    identities = room.server(room.glance)
    identities._min_login_seconds = 60.0
    later = room.clock.call_later

    def at_once(seconds: float, callback: Callable[[], None]) -> Timer:
        waits.append(seconds)
        return later(0.0, callback)

    room.clock.call_later = at_once  # type: ignore[method-assign,assignment]
    for name in ("ann", "nobody", *["nobody"] * 9):
        await try_login(identities, name)
    assert len(waits) == 11
    assert all(0 < seconds <= 60.0 for seconds in waits)


def test_auth_code_does_not_import_random_or_uuid() -> None:
    folders = [SOURCE / "web" / "auth", SOURCE / "features" / "accounts", SOURCE / "gitops" / "policy"]
    files = [file for folder in folders for file in folder.rglob("*.py")]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {"random", "uuid"} & set(names), file
    assert len(files) > 30
