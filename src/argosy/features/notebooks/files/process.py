"""Runs a notebook on this machine in a separate process.

In: a run request. Out: its events as they happen; the last one has the results. Never: leaves the process or its kernel
running; runs a cell in this process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from argosy.errors import TransientError, UserError
from argosy.features.notebooks.requirements import check_installed
from argosy.isolation import descendants
from argosy.isolation.scratch_folders import scratch_folder

RUNNER: Final = "argosy.features.notebooks.runner"
PATIENCE: Final = 5.0
_MOST_SAID: Final = 2000
Event = dict[str, Any]


def play(order: str) -> Generator[Event]:
    """`request_json` is the run request as JSON. Raises UserError if it is invalid.

    Ctrl-C ends the run, not this process: the runner still reports its results. Raises KeyboardInterrupt if there are
    none.
    """
    check_installed()
    with scratch_folder("argosy-nb-") as folder, tempfile.TemporaryFile() as said:
        file = folder / "order.json"
        file.write_text(order, encoding="utf-8")
        command = [sys.executable, "-P", "-m", RUNNER, str(file), str(os.getpid())]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, text=True, encoding="utf-8",
            errors="replace", start_new_session=True,
        )  # fmt: skip
        with _ending_well(), _ended(process), _interruptible(process) as interruption:
            is_finished = yield from _events(process)
            code = process.wait(PATIENCE)
        if not is_finished and interruption.is_asked:
            raise KeyboardInterrupt
        if not is_finished:
            said.seek(0)
            raise _unfinished(code, said.read()[-_MOST_SAID:].decode(errors="replace").strip())


def _events(process: subprocess.Popen[str]) -> Generator[Event, None, bool]:
    is_finished = False
    assert process.stdout is not None
    for line in process.stdout:
        try:
            event = json.loads(line)
        except ValueError:
            continue  # printed by a library
        if isinstance(event, dict) and "event" in event:
            is_finished = is_finished or event["event"] == "finished"
            yield event
    return is_finished


def _unfinished(code: int, said: str) -> UserError | TransientError:
    last = said.rpartition("\n")[2]
    if code == 2 and last:
        return UserError(last)
    why = f"signal {-code}" if code < 0 else f"exit code {code}"
    return TransientError(
        f"the runner ended before the notebook finished ({why}{f': {last}' if last else ''}); run it again"
    )


@contextmanager
def _ending_well() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit, so that nothing is left behind."""

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = {each: signal.signal(each, leave) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@dataclass
class _Interruption:
    is_asked: bool = False


@contextmanager
def _interruptible(process: subprocess.Popen[str]) -> Iterator[_Interruption]:
    """The first Ctrl-C asks the runner to end; a second one, or a runner that does not end in time, raises."""
    interruption = _Interruption()
    timer = threading.Timer(PATIENCE, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    timer.daemon = True

    def ask(number: int, frame: object) -> None:
        if interruption.is_asked:
            raise KeyboardInterrupt
        interruption.is_asked = True
        _signal(process.pid, signal.SIGINT)
        timer.start()

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:  # nohup: it cannot be interrupted
        signal.signal(signal.SIGINT, ask)
    try:
        yield interruption
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)


@contextmanager
def _ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """Stop the process and its kernel when the context exits."""
    try:
        yield
    finally:
        if process.poll() is None:
            below = descendants.of(process.pid)
            _signal(process.pid, signal.SIGINT)  # lets the runner stop its kernel
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                pass
            for pid in (*below, process.pid):
                if pid == process.pid or _is_kernel_of(pid):
                    _signal(pid, signal.SIGKILL)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _is_kernel_of(pid: int) -> bool:
    """True if a former child of the runner is still a kernel, and its pid was not reused."""
    try:
        return b"ipykernel" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
