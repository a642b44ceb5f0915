"""A user at a terminal: a real pseudo-terminal with a shell.

In: typed lines. Out: the screen output, the exit code, and the duration. Never: leaves a process behind.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from support.deadlines import HANG_SECONDS

LINES, COLUMNS = 50, 160
PROMPT = re.compile(r"<<(\d+)>> $")
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][A-Z0-9]|[=>])")


class Seen(NamedTuple):
    text: str  # without colour codes
    code: int
    seconds: float


def _own_terminal() -> None:
    """Make stdin the controlling terminal, so that Ctrl-C sends a signal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._screen, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        env = {**environment, "TERM": "xterm-256color", "PS1": "<<$?>> ", "LC_ALL": "C.UTF-8", "HISTFILE": ""}
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"], stdin=inside, stdout=inside, stderr=inside, cwd=folder, env=env,
            start_new_session=True, preexec_fn=_own_terminal,  # noqa: PLW1509 - nothing else runs in a test's process
        )  # fmt: skip
        os.close(inside)
        self._until(PROMPT)

    def type(self, line: str, *, answers: Mapping[str, str] | None = None) -> Seen:
        """Run a command until it ends; `answers` are typed when the screen prompts for them."""
        began = time.monotonic()
        self.begin(line)
        output = ""
        for question, answer in (answers or {}).items():
            output += self.until(question)
            os.write(self._screen, f"{answer}\n".encode())
        output += self._until(PROMPT)
        match = PROMPT.search(output)
        assert match is not None
        return Seen(plain(output[: match.start()]), int(match[1]), time.monotonic() - began)

    def begin(self, line: str) -> None:
        """Start a command that keeps running."""
        os.write(self._screen, f"{line}\n".encode())

    def until(self, pattern: str) -> str:
        return plain(self._until(re.compile(pattern)))

    def interrupt(self) -> Seen:
        """Press Ctrl-C and wait for the shell prompt."""
        began = time.monotonic()
        os.write(self._screen, b"\x03")
        output = self._until(PROMPT)
        match = PROMPT.search(output)
        assert match is not None
        return Seen(plain(output[: match.start()]), int(match[1]), time.monotonic() - began)

    def _until(self, pattern: re.Pattern[str]) -> str:
        output, ends = "", time.monotonic() + HANG_SECONDS
        while not pattern.search(ESCAPES.sub("", output)):
            seconds_left = ends - time.monotonic()
            assert seconds_left > 0, f"{pattern.pattern} never came; the screen shows\n{output}"
            if select.select([self._screen], [], [], seconds_left)[0]:
                try:
                    output += os.read(self._screen, 65536).decode(errors="replace")
                except OSError:
                    raise AssertionError(f"the shell has ended; the screen shows\n{output}") from None
        return ESCAPES.sub("", output)

    def close(self) -> None:
        """End the shell and all processes that it started."""
        for number in (signal.SIGHUP, signal.SIGKILL):
            try:
                os.killpg(self._shell.pid, number)
            except ProcessLookupError:
                break
        self._shell.wait()
        os.close(self._screen)


def plain(text: str) -> str:
    """Text as the screen shows it: without escape sequences; an overwritten line has only its last state."""
    lines = ESCAPES.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
