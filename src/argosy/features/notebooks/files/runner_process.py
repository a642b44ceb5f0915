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
from argosy.features.notebooks.jupyter_package_check import check_installed
from argosy.isolation import descendants
from argosy.isolation.scratch_folders import create_scratch_folder

RUNNER_MODULE: Final = "argosy.features.notebooks.runner"
STOP_TIMEOUT_SECONDS: Final = 5.0
_MAX_STDERR_BYTES: Final = 2000
RunnerEvent = dict[str, Any]


def run_in_subprocess(request_json: str) -> Generator[RunnerEvent]:
    """`request_json` is the run request as JSON. Raises UserError if it is invalid.

    Ctrl-C ends the run, not this process: the runner still reports its results. Raises KeyboardInterrupt if there are
    none.
    """
    check_installed()
    with create_scratch_folder("argosy-nb-") as folder, tempfile.TemporaryFile() as stderr_file:
        file = folder / "order.json"
        file.write_text(request_json, encoding="utf-8")
        command = [sys.executable, "-P", "-m", RUNNER_MODULE, str(file), str(os.getpid())]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr_file, text=True, encoding="utf-8",
            errors="replace", start_new_session=True,
        )  # fmt: skip
        with _exit_on_signals(), _stop_on_exit(process), _handle_interrupts(process) as interruption:
            is_finished = yield from _read_events(process)
            exit_code = process.wait(STOP_TIMEOUT_SECONDS)
        if not is_finished and interruption.is_requested:
            raise KeyboardInterrupt
        if not is_finished:
            stderr_file.seek(0)
            raise _build_unfinished_error(
                exit_code, stderr_file.read()[-_MAX_STDERR_BYTES:].decode(errors="replace").strip()
            )


def _read_events(process: subprocess.Popen[str]) -> Generator[RunnerEvent, None, bool]:
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


def _build_unfinished_error(exit_code: int, stderr_text: str) -> UserError | TransientError:
    last_line = stderr_text.rpartition("\n")[2]
    if exit_code == 2 and last_line:
        return UserError(last_line)
    exit_text = f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
    return TransientError(
        f"the runner ended before the notebook finished ({exit_text}{f': {last_line}' if last_line else ''}); "
        "run it again"
    )


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit, so that nothing is left behind."""

    def raise_system_exit(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    old_handlers = {
        signal_number: signal.signal(signal_number, raise_system_exit)
        for signal_number in (signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for signal_number, handler in old_handlers.items():
            signal.signal(signal_number, handler)


@dataclass
class _Interruption:
    is_requested: bool = False


@contextmanager
def _handle_interrupts(process: subprocess.Popen[str]) -> Iterator[_Interruption]:
    """The first Ctrl-C asks the runner to end; a second one, or a runner that does not end in time, raises."""
    interruption = _Interruption()
    timer = threading.Timer(STOP_TIMEOUT_SECONDS, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    timer.daemon = True

    def interrupt_runner(number: int, frame: object) -> None:
        if interruption.is_requested:
            raise KeyboardInterrupt
        interruption.is_requested = True
        _send_signal(process.pid, signal.SIGINT)
        timer.start()

    old_handler = signal.getsignal(signal.SIGINT)
    if old_handler is not signal.SIG_IGN:  # nohup: it cannot be interrupted
        signal.signal(signal.SIGINT, interrupt_runner)
    try:
        yield interruption
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, old_handler)


@contextmanager
def _stop_on_exit(process: subprocess.Popen[str]) -> Iterator[None]:
    """Stop the process and its kernel when the context exits."""
    try:
        yield
    finally:
        if process.poll() is None:
            child_pids = descendants.list_descendants(process.pid)
            _send_signal(process.pid, signal.SIGINT)  # lets the runner stop its kernel
            try:
                process.wait(STOP_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                pass
            for pid in (*child_pids, process.pid):
                if pid == process.pid or _is_kernel(pid):
                    _send_signal(pid, signal.SIGKILL)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _is_kernel(pid: int) -> bool:
    """True if a former child of the runner is still a kernel, and its pid was not reused."""
    try:
        return b"ipykernel" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _send_signal(pid: int, signal_number: int) -> None:
    try:
        os.kill(pid, signal_number)
    except ProcessLookupError:
        pass
