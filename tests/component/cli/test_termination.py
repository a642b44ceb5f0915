"""SIGTERM ends a command cleanly, or forcibly after a grace period."""

from __future__ import annotations

import signal
import subprocess
import sys

from support.deadlines import HANG_SECONDS

BLOCK = """
import asyncio, threading
from argosy.cli import sigterm_shutdown
sigterm_shutdown.GRACE_SECONDS = 0.2

def block():
    print("blocked", flush=True)
    threading.Event().wait()

async def work():
    try:
        await asyncio.to_thread(block)
    finally:
        print("closed", flush=True)

with sigterm_shutdown.raise_on_sigterm():
    asyncio.run(work())
"""


def end_by_sigterm(script: str) -> tuple[int, str]:
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "blocked\n"
            process.terminate()
            output, _ = process.communicate(timeout=HANG_SECONDS)
            return process.returncode, output
        finally:
            process.kill()


def test_blocked_thread_does_not_prevent_termination() -> None:
    assert end_by_sigterm(BLOCK) == (-signal.SIGTERM, "closed\n")


CLOSE = """
import threading
from argosy.cli import sigterm_shutdown
with sigterm_shutdown.raise_on_sigterm():
    try:
        print("blocked", flush=True)
        threading.Event().wait()
    finally:
        print("closed", flush=True)
"""


def test_command_that_closes_in_time_exits_by_the_signal() -> None:
    assert end_by_sigterm(CLOSE) == (-signal.SIGTERM, "closed\n")
