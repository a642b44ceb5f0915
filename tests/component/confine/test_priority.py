"""Confined work that takes long lets other processes have the CPU first."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.confine import Limits, Pool, conversation
from argosy.confine.conversation import Worker
from argosy.confine.limits import ProgramLimits
from argosy.confine.program import python_places
from argosy.confine.resident import start
from argosy.model.fairness import Tenant, on_behalf_of
from support.deadlines import HANG_SECONDS, wait_until_async
from support.file_pools import FilePool
from support.unprivileged_user import run_as

HOSTILE = "support.hostile_functions"
PATIENT = Limits(wall=HANG_SECONDS, cpu=HANG_SECONDS)
OWN, LOWER = os.getpriority(os.PRIO_PROCESS, 0), min(os.getpriority(os.PRIO_PROCESS, 0) + 5, 19)
POOL = FilePool(workers=2, preload=[HOSTILE])
close_pool = POOL.fixture()
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines more than by rlimits")

# Two threads, as the kernel keeps a priority for each.
WAIT_FOR_LOWER_PRIORITY = """
import os, threading, time
before = os.getpriority(os.PRIO_PROCESS, 0)
def wait():
    while os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before:
        time.sleep(0.01)
other = threading.Thread(target=wait)
other.start()
wait()
other.join()
print(os.getpriority(os.PRIO_PROCESS, 0), end="")
"""
SAY_PRIORITY_LATE = "import os, time; time.sleep(1.2); print(os.getpriority(os.PRIO_PROCESS, 0), end='')"


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.mark.parametrize("who", ["self", pytest.param("ordinary", marks=only_root)])
def test_a_program_that_takes_long_goes_on_at_a_lower_priority(who: str, folder: Path) -> None:
    command = (sys.executable, "-I", "-c", WAIT_FOR_LOWER_PRIORITY)
    limits = ProgramLimits(wall=HANG_SECONDS)
    assert run_as(who, command, folder=folder, readable=python_places(), limits=limits).stdout == b"%d" % LOWER


def test_a_call_that_takes_long_goes_on_at_a_lower_priority_and_the_next_has_its_own_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene(pool: Pool) -> None:
        assert await pool.run(f"{HOSTILE}:wait_for_lower_priority", None, limits=PATIENT) == LOWER
        monkeypatch.setattr(conversation, "LONG_SECONDS", HANG_SECONDS)  # a busy machine may take long, too
        assert await pool.run(f"{HOSTILE}:own_priority", None, limits=PATIENT) == OWN

    POOL.run(scene)


async def test_a_resident_keeps_its_priority(folder: Path) -> None:
    """It is looked at twice a second, and has said its priority after that."""
    argv = (sys.executable, "-I", "-S", "-c", SAY_PRIORITY_LATE)
    limits = ProgramLimits(wall=HANG_SECONDS)
    resident = await start(argv, folder=folder, readable=python_places(), limits=limits)
    await wait_until_async(lambda: not resident.is_running, "it has ended")
    assert resident.said() == str(OWN)
    await resident.end()


async def test_only_a_call_that_takes_long_counts_not_a_batch_of_quick_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "LONG_SECONDS", HANG_SECONDS)
    loop, ours, theirs = asyncio.get_running_loop(), *socket.socketpair()
    worker, noticed = Worker(1, ours, generation=1, cpu=1.0), list[str]()
    with theirs:
        for call_started, expected in ((loop.time(), []), (loop.time() - HANG_SECONDS, ["long"])):
            worker._since = call_started  # an answer came just now, or long ago
            worker._notice_long_call(lambda: noticed.append("long"))
            assert noticed == expected
        worker._long_timer.cancel()
        worker.close()


async def test_a_tenant_leaves_others_their_workers_while_there_is_room_for_one_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversation, "LONG_SECONDS", HANG_SECONDS)
    pool = Pool(workers=2, preload=[HOSTILE])
    try:
        workers: dict[str, set[int]] = {}
        for name in ("shop", "bank", "shop", "bank"):
            with on_behalf_of(Tenant(name)):
                facts = await pool.run(f"{HOSTILE}:identity", None)
                workers.setdefault(name, set()).add(facts["pid"])
        assert len(workers["shop"]) == len(workers["bank"]) == 1
        assert workers["shop"] != workers["bank"]
    finally:
        await pool.close()
