"""An outpost: what ends behind it is not left unseen."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from argosy.apiserver.embedded import EmbeddedCluster
from argosy.apiserver.plane import Plane
from argosy.app import outpost
from argosy.cluster.connection import Connection
from argosy.live import Tracking
from argosy.policy.clusters import KnownCluster
from argosy.runtime import Cache
from argosy.runtime.clock import SYSTEM_CLOCK
from argosy.runtime.pulse import Pulse


class Unreadable:
    """Settings of which nobody can tell what is watched."""

    def rules(self) -> Any:
        return SimpleNamespace(tracking=Tracking())

    def localised(self, *_: object) -> NoReturn:
        raise KeyError("rules")


def made() -> outpost.Outpost:
    known, nothing = KnownCluster("far", "https://far.example", "far"), lambda *_: None
    settings: Any = Unreadable()
    assembler: Any = None
    return outpost.Outpost(
        known, lambda: Connection(known.server), settings, assembler, Cache(), SYSTEM_CLOCK, nothing
    )


async def test_a_cache_that_nobody_fills_any_more_is_no_ground() -> None:
    async with Plane.open() as plane:
        with pytest.raises(KeyError, match="rules"):
            await asyncio.wait_for(made()._hold(EmbeddedCluster(plane)), 30)


async def test_a_cluster_that_nobody_asks_any_more_is_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ends(self: Pulse) -> None:
        raise RuntimeError("no clock")

    monkeypatch.setattr(Pulse, "run", ends)
    post = made()
    running = asyncio.create_task(post.run())
    async with asyncio.timeout(30):
        while not post.said:
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait({running})
    assert post.said == (
        "cluster far (https://far.example): something unexpected went wrong; see the log of the controller"
    )
