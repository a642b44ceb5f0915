"""Runs the program of Argo CD's end-to-end tests.

In: names of tests, and the environment. Out: a result as soon as each test ends. Never: waits for a test without end.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.argocd.e2e.test_record import TestResult
from support.argocd.programs import Installation
from support.control_plane import die_with_parent

TEST_SECONDS: Final = 300.0  # for one test; their own limits for a state are 20 to 60 seconds
KEPT_LINES: Final = 400
MESSAGE_LENGTH: Final = 1500
_END: Final = re.compile(r"^--- (PASS|FAIL|SKIP): (Test\w+) \((\d+\.\d+)s\)")
_START: Final = re.compile(r"^=== RUN +(Test\w+)$")
_ERROR: Final = re.compile(r"Error( Trace)?:|Messages:|panic:|expected|actual|level=fatal")


@dataclass
class OutputReader:
    """Reads the output of a process until its end, or until a deadline, which may move while it reads."""

    process: subprocess.Popen[bytes]
    deadline: float

    def read_lines(self) -> Iterator[str]:
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while selector.select(max(0.0, self.deadline - time.monotonic())):
                data = os.read(descriptor, 1 << 16)
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    yield line.decode(errors="replace") + "\n"
                if not data:
                    return


def list_tests(installation: Installation, environment: Mapping[str, str]) -> list[str]:
    """Return the names of all tests, in the order in which they run."""
    done = subprocess.run(
        [_find_program(installation), "-test.list", "^Test"],
        cwd=installation.source / "test/e2e", env=dict(environment), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"the tests cannot be listed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return [line for line in done.stdout.splitlines() if line.startswith("Test")]


def run_tests(
    installation: Installation, names: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator[TestResult]:
    """Run the tests one after the other. A test that hangs or that ends the program fails; the others still run."""
    left = list(names)
    while left:
        for result in _run_program(installation, left, environment, log):
            left.remove(result.name)
            yield result


def _run_program(
    installation: Installation, names: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator[TestResult]:
    """Yield at least one result."""
    process = subprocess.Popen(
        [_find_program(installation), "-test.v", "-test.timeout", "0", "-test.run", f"^({'|'.join(names)})$"],
        cwd=installation.source / "test/e2e", env=dict(environment), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - it takes no lock that another thread could hold
    )  # fmt: skip
    lines: list[str] = []
    running, unfinished = "", set(names)
    reader = OutputReader(process, time.monotonic() + TEST_SECONDS)
    try:
        with open(log, "a", buffering=1) as copy:
            for line in reader.read_lines():
                copy.write(line)
                lines = [*lines[-KEPT_LINES:], line]
                if match := _START.match(line):
                    running, lines, reader.deadline = match[1], [], time.monotonic() + TEST_SECONDS
                elif (match := _END.match(line)) and match[2] in unfinished:
                    unfinished.discard(match[2])
                    outcome = {"PASS": "pass", "FAIL": "fail", "SKIP": "skip"}[match[1]]
                    message = summarize_failure(lines) if outcome == "fail" else ""
                    yield TestResult(match[2], outcome, float(match[3]), message)
                    running, reader.deadline = "", time.monotonic() + TEST_SECONDS
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if unfinished:
        seconds = TEST_SECONDS + time.monotonic() - reader.deadline
        failed = running if running in unfinished else next(name for name in names if name in unfinished)
        cause = f"no end after {seconds:.0f} s" if seconds >= TEST_SECONDS else f"exit code {process.returncode}"
        yield TestResult(failed, "fail", round(seconds, 2), f"{cause}\n{summarize_failure(lines)}")


def summarize_failure(lines: Sequence[str]) -> str:
    """Return the lines from the first error on, without the commands that the tests log."""
    plain = [line for line in lines if not line.startswith(("time=", "level=")) or "level=fatal" in line]
    first = next((number for number, line in enumerate(plain) if _ERROR.search(line)), max(0, len(plain) - 20))
    return "".join(plain[first:])[-MESSAGE_LENGTH:].strip()


def _find_program(installation: Installation) -> Path:
    return installation.folder / "e2e.test"
