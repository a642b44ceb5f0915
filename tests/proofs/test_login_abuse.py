"""Passwords cannot be guessed: not with concurrent logins, changing user names, or killed servers.

100,000 guesses for 20 names at three servers of one cluster. At most five passwords of an account are compared in any
five minutes, even if its server is killed between counting and comparing.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from argosy.kube.objects import Manifest
from argosy.web.auth.authenticator import Authenticator
from argosy.web.auth.caller import BadLogin
from argosy.web.auth.login_rate_limit import MAX_FAILURES, WINDOW_SECONDS, LoginRateLimiter
from argosy.web.auth.passwords import PasswordHasher
from support.identities import CHEAP, Glance, Room, identity_room

pytestmark = [pytest.mark.anyio, pytest.mark.tier("test", "prove")]
REAL = [f"sailor-{number}" for number in range(12)]
NOBODY = [f"ghost-{number}" for number in range(8)]
GUESSES, SERVERS, RACE = 100_000, 3, 200


class Noting(PasswordHasher):
    """Records which password hash was compared, and when."""

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__(CHEAP)
        self.now = now
        self.noted: dict[bytes, list[float]] = {}

    async def matches(self, password: str, password_hash: bytes) -> bool:
        if password_hash:
            self.noted.setdefault(password_hash, []).append(self.now())
        return await super().matches(password, password_hash)


async def guess(server: Authenticator, name: str, password: str) -> None:
    with pytest.raises(BadLogin):
        await server.login(name, password)


async def fleet(room: Room, hashing: PasswordHasher) -> list[Authenticator]:
    servers = []
    for _ in range(SERVERS):
        glance = Glance(room.cluster)
        servers.append(room.server(glance, hashing))
        await glance.look()
    return servers


async def killed(tasks: list[asyncio.Task[None]], moments: int) -> None:
    """Cancel the tasks midway; what a server had in memory is lost."""
    for _ in range(moments):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def worst(times: list[float], lag: float) -> int:
    """The most comparisons within one window, less the possible delay between counting and comparing."""
    return max(sum(1 for later in times[at:] if later - begin < WINDOW_SECONDS - lag) for at, begin in enumerate(times))


async def most_compared(tmp_path: Path, rng: random.Random, attempt_count: int) -> tuple[int, int]:
    """The maximum comparisons of one account in any five minutes, and the total of all accounts."""
    async with identity_room(tmp_path) as room:
        await room.settings(**{f"accounts__{name}": "login" for name in REAL})
        await room.identities.account_store.set_password(REAL[0], "never guessed")
        password_hash = (await room.secret())[f"accounts.{REAL[0]}.password"].decode()
        # Each account gets a unique hash, to tell them apart; no password needs to match it.
        hashes = {name: password_hash[:-2] + f"{number:02d}" for number, name in enumerate(REAL)}
        await room.secrets(**{f"accounts__{name}__password": text for name, text in hashes.items()})
        hashing = Noting(lambda: room.clock.now().timestamp())
        servers = await fleet(room, hashing)
        attempts, slowest = 0, 0.0
        while attempts < attempt_count:
            began = time.monotonic()
            names = rng.choices([*REAL, *NOBODY], k=RACE) if rng.random() < 0.5 else [rng.choice(REAL)] * RACE
            tasks = [asyncio.create_task(guess(rng.choice(servers), name, f"g{attempts}")) for name in names]
            attempts += len(tasks)
            if rng.random() < 0.2:
                await killed(tasks, rng.randrange(40))
                servers = await fleet(room, hashing)
            await asyncio.gather(*tasks, return_exceptions=True)
            slowest = max(slowest, time.monotonic() - began)
            room.clock.leap(rng.choice([0.0, 0.0, 1.5, 20.0, 120.0, 299.0, 301.0]))
        counts_by_name = {
            name: worst(hashing.noted.get(text.encode(), [0.0]), slowest) for name, text in hashes.items()
        }
        return max(counts_by_name.values()), sum(len(times) for times in hashing.noted.values())


async def test_no_account_has_more_than_five_guesses_in_five_minutes(
    tmp_path: Path, size: Callable[..., int], rng: random.Random
) -> None:
    most, compared = await most_compared(tmp_path, rng, size(GUESSES, test=3 * RACE))
    assert most <= MAX_FAILURES
    assert compared > MAX_FAILURES  # some were compared, or nothing is proven


async def test_proof_detects_a_server_that_loses_failure_counts(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Validates the proof: a count that lost a write conflict is treated as written."""
    write = LoginRateLimiter._write

    async def careless(self: LoginRateLimiter, config_map: Manifest | None, data: Mapping[str, list[str]]) -> bool:
        await write(self, config_map, data)
        return True

    monkeypatch.setattr(LoginRateLimiter, "_write", careless)
    for turn in range(10):  # chance can hide the bug in one race, but not in all of them
        folder = tmp_path / str(turn)
        folder.mkdir()
        if (await most_compared(folder, rng, RACE))[0] > MAX_FAILURES:
            return
    pytest.fail("the proof does not find it")
