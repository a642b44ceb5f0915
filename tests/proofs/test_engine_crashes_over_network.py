"""Sync engines are killed while using a cluster over a network: the sandbox over TLS, and a real server.

At any kill point: the outcome is the same, no hook runs twice, none is skipped or left behind.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from argosy.sandbox.apiserver.tls import ensure_certificates
from support.engine import wire
from support.engine_crashes import Opened, killed, straight
from support.engine_histories import SCENES
from support.engine_kills import forget_marks, rehearsed, wrongs
from support.real_server import FEW, WipedServer, wiped_server

pytestmark = [pytest.mark.anyio, pytest.mark.tier("test", "prove")]
POINTS = 200


@pytest.fixture(scope="module")
def real_server() -> Iterator[WipedServer]:
    """A real server without the Job and Deployment controllers: the scenes set those statuses themselves."""
    with wiped_server(controllers=FEW) as server:
        yield server


async def killed_at(count: int, rng: random.Random, opened: Opened, at_once: int) -> None:
    names = rng.sample(sorted(SCENES), min(max(count // 2, 1), len(SCENES)))
    wrong = await wrongs(await rehearsed(names, opened), count, rng, opened, at_once=at_once)
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong[:5])


async def test_engine_killed_over_the_wire_repeats_no_hook_and_skips_none(
    size: Callable[[int], int], rng: random.Random, tmp_path: Path
) -> None:
    ensure_certificates(tmp_path)  # shared by all servers
    await killed_at(size(POINTS, test=2), rng, partial(wire, tmp_path), at_once=4)


async def test_proof_detects_unrecognized_hooks_over_the_wire(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ensure_certificates(tmp_path)
    scene, opened = SCENES["phases"], partial(wire, tmp_path)
    expected, calls = await straight(scene, opened)
    forget_marks(monkeypatch)
    with pytest.raises(AssertionError, match=r"hooks were made too often: \{'pre': 2\}"):
        await killed(scene, expected, [(calls.index("create Job/pre"), True)], opened)


@pytest.mark.tier("realcluster")
async def test_engine_killed_on_a_real_server_repeats_no_hook_and_skips_none(
    size: Callable[[int], int], rng: random.Random, real_server: WipedServer
) -> None:
    await killed_at(size(POINTS), rng, real_server.opened, at_once=1)
