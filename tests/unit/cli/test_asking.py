"""Questions at a terminal: Ctrl-C ends the command at once, also while an event loop runs."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time

PROGRAM = """
import asyncio
from argosy.cli.asking import read_line
async def main():
    print("question", flush=True)
    answer = read_line()
    print("wrote", repr(answer), flush=True)
asyncio.run(main())
"""


def test_ctrl_c_at_a_question_ends_the_command_before_anything_is_written() -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "question\n"
    deadline = time.monotonic() + 30
    while child.poll() is None and time.monotonic() < deadline:  # it may not be reading yet
        child.send_signal(signal.SIGINT)
        time.sleep(0.1)
    os.close(ours)
    os.close(theirs)
    assert child.wait(30) != 0
    assert child.stdout.read() == ""


def test_an_answer_is_given_back_and_the_signal_handler_is_restored() -> None:
    before = signal.getsignal(signal.SIGINT)
    read, write = os.pipe()
    os.write(write, b"y\n")
    os.close(write)
    program = "from argosy.cli.asking import read_line\nprint(repr(read_line()), repr(read_line()))"
    done = subprocess.run([sys.executable, "-c", program], stdin=read, capture_output=True, text=True, check=True)
    os.close(read)
    assert done.stdout == "'y\\n' ''\n"
    assert signal.getsignal(signal.SIGINT) is before
