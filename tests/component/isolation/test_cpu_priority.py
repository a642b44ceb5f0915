"""CPU priority of confined work: long calls and programs continue at a lower priority."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

import pytest

from argosy.fair_share import Tenant, charge_work_to
from argosy.isolation import CallLimits, WorkerPool, message_frames, worker_connection
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.long_running_program import start_program
from argosy.isolation.untrusted_program_runner import list_python_paths
from argosy.isolation.worker_connection import CallBatch, ConfinedWorker, ConversationEnd
from support.deadlines import HANG_SECONDS, wait_until_async
from support.file_pools import FilePool
from support.loop_clock import LoopClock, turns
from support.open_folders import everyone
from support.unprivileged_user import run_as

HOSTILE = "support.hostile_functions"
PATIENT = CallLimits(wall=HANG_SECONDS, cpu=HANG_SECONDS)
OWN, LOWER = os.getpriority(os.PRIO_PROCESS, 0), min(os.getpriority(os.PRIO_PROCESS, 0) + 5, 19)
POOL = FilePool(workers=2, preload=[HOSTILE])
close_pool = POOL.fixture()
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines more than by rlimits")

# Two threads, because the kernel keeps a priority per thread.
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


@everyone
def test_long_running_program_continues_at_a_lower_priority(who: str, folder: Path) -> None:
    command = (sys.executable, "-I", "-c", WAIT_FOR_LOWER_PRIORITY)
    limits = ProgramLimits(wall=HANG_SECONDS)
    assert run_as(who, command, folder=folder, readable=list_python_paths(), limits=limits).stdout == b"%d" % LOWER


def test_long_call_gets_lower_priority_and_the_next_call_normal_priority(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene(pool: WorkerPool) -> None:
        assert await pool.run(f"{HOSTILE}:wait_for_lower_priority", None, limits=PATIENT) == LOWER
        monkeypatch.setattr(worker_connection, "LONG_SECONDS", HANG_SECONDS)  # a busy machine may be slow
        assert await pool.run(f"{HOSTILE}:own_priority", None, limits=PATIENT) == OWN

    POOL.run(scene)


async def test_program_started_with_start_program_keeps_its_priority(folder: Path) -> None:
    """The program is checked twice a second, and prints its priority after 1.2 s."""
    argv = (sys.executable, "-I", "-S", "-c", SAY_PRIORITY_LATE)
    limits = ProgramLimits(wall=HANG_SECONDS)
    resident = await start_program(argv, folder=folder, readable=list_python_paths(), limits=limits)
    await wait_until_async(lambda: not resident.is_running, "it has ended")
    assert resident.read_output_tail() == str(OWN)
    await resident.kill()


async def test_batch_of_short_calls_does_not_count_as_a_long_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_connection, "LONG_SECONDS", HANG_SECONDS)
    (ours, worker_end), clock, noticed = socket.socketpair(), LoopClock(), list[str]()
    worker = ConfinedWorker(1, ours, generation=1, cpu=HANG_SECONDS)
    batch = CallBatch("any:function", [1, 2, 3, 4], CallLimits(wall=100 * HANG_SECONDS))
    with worker_end:
        conversation_ends = asyncio.create_task(worker.run_batch(batch, lambda: noticed.append("long")))
        for serial in range(3):  # together they take longer than LONG_SECONDS
            await turns()
            clock.leap(0.6 * HANG_SECONDS)
            await turns()
            worker_end.send(message_frames.pack_answer(message_frames.DONE, serial, b"null"))
            await wait_until_async(
                lambda serial=serial: batch.first_unanswered == serial + 1, "the answer has been read"
            )
        assert noticed == [] and worker.has_priority
        clock.leap(HANG_SECONDS)
        await wait_until_async(lambda: noticed == ["long"], "the long call is noticed")
        assert not worker.has_priority
        worker_end.send(message_frames.pack_answer(message_frames.DONE, 3, b"null"))
        assert await conversation_ends is ConversationEnd.COMPLETE
        assert noticed == ["long"]
        worker.close()


async def test_tenants_use_separate_workers_while_the_pool_has_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_connection, "LONG_SECONDS", HANG_SECONDS)
    pool = WorkerPool(workers=2, preload=[HOSTILE])
    try:
        workers: dict[str, set[int]] = {}
        for name in ("shop", "bank", "shop", "bank"):
            with charge_work_to(Tenant(name)):
                facts = await pool.run(f"{HOSTILE}:identity", None)
                workers.setdefault(name, set()).add(facts["pid"])
        assert len(workers["shop"]) == len(workers["bank"]) == 1
        assert workers["shop"] != workers["bank"]
    finally:
        await pool.close()
