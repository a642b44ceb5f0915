"""Long-running confined programs (see untrusted_program_runner.py) that serve sockets passed to them.

In: a command, readable paths, listening sockets. Out: a LongRunningProgram: write to it, wait for it, kill it.
Never: lets it outlive this process or `kill`; gives it network access beyond the passed sockets and named ports.
"""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.untrusted_program_runner import build_launcher_order, create_work_folders, spawn_launcher

NO_WALL_LIMIT_SECONDS: Final = 365 * 24 * 3600
LAUNCHER_EXIT_SECONDS: Final = 3.0  # seconds for the launcher to kill all processes
USAGE_CHECK_SECONDS: Final = 0.5  # seconds between two checks of its usage
MAX_OUTPUT_BYTES_PER_SECOND: Final = 4 << 20  # output bytes read per second; a program that prints more is slowed down
KEPT_OUTPUT_BYTES: Final = 16 << 10  # bytes of the end of its output


@dataclass(frozen=True, slots=True)
class ProgramExit:
    """How a program ended: with an exit code (negative: a signal), at a limit, or refused before it started."""

    code: int
    limit: str = ""
    refused: str = ""


class LongRunningProgram:
    """Created by `start_program`. Keeps the end of its output, for error messages."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        control: socket.socket,
        close: Callable[[], None],
        on_output: Callable[[bytes], None] | None = None,
    ) -> None:
        self._process, self._control, self._close, self._on_output = process, control, close, on_output
        self._output_tail = bytearray()
        self._tasks = [
            asyncio.create_task(self._read_output(pipe)) for pipe in (process.stdout, process.stderr) if pipe
        ]
        self._exit_task: asyncio.Task[ProgramExit] = asyncio.create_task(self._watch())

    @property
    def is_running(self) -> bool:
        return not self._exit_task.done()

    @property
    def exit_task(self) -> asyncio.Task[ProgramExit]:
        """A task that is done when the program has ended."""
        return self._exit_task

    def read_output_tail(self) -> str:
        """Return the end of its output."""
        return bytes(self._output_tail[-KEPT_OUTPUT_BYTES:]).decode(errors="replace")

    async def write_line(self, line: bytes) -> None:
        """Write a line to its standard input; ignored if it has ended."""
        await asyncio.to_thread(self._write, line + b"\n")

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):
            while data and self._process.stdin is not None:
                data = data[os.write(self._process.stdin.fileno(), data) :]

    def terminate(self) -> None:
        """Send SIGTERM, which the program may ignore."""
        with contextlib.suppress(OSError):
            self._control.send(b"t")

    async def kill(self) -> None:
        """Close the socket: the launcher kills all processes and then exits."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._exit_task), LAUNCHER_EXIT_SECONDS)
        if self._process.poll() is None:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
        await asyncio.gather(self._exit_task, *self._tasks, return_exceptions=True)

    async def _watch(self) -> ProgramExit:
        report = bytearray()
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while chunk := await loop.sock_recv(self._control, 1 << 16):
                report += chunk
        await asyncio.to_thread(self._process.wait)
        self._control.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._process.stdin:
            self._process.stdin.close()
        self._close()
        if not report:
            return ProgramExit(1, refused="the launcher process ended unexpectedly")
        values = marshal.loads(bytes(report))  # noqa: S302  # from our own launcher
        limit = str(values.get("limit") or "")
        return ProgramExit(int(values.get("code", 1)), "" if limit == "gone" else limit, _find_refusal(values))

    async def _read_output(self, pipe: object) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=KEPT_OUTPUT_BYTES)
        byte_count, second_started_at = 0, loop.time()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        try:
            while chunk := await reader.read(KEPT_OUTPUT_BYTES):
                byte_count += len(chunk)
                if byte_count > MAX_OUTPUT_BYTES_PER_SECOND:  # else endless output would keep this process busy
                    await asyncio.sleep(max(second_started_at + 1.0 - loop.time(), 0.0))
                    byte_count, second_started_at = 0, loop.time()
                if self._on_output is not None:
                    self._on_output(chunk)
                self._output_tail += chunk
                del self._output_tail[: -2 * KEPT_OUTPUT_BYTES]
        finally:
            transport.close()


def _find_refusal(report: Mapping[str, object]) -> str:
    return str(report.get("unconfined") or report.get("refused") or "")


@dataclass(frozen=True, slots=True)
class ProgramAccess:
    """Additional access of a long-running program; by default it has only its files and its sockets."""

    env: Mapping[str, str] = field(default_factory=dict)
    ports: Sequence[int] = ()  # it may connect to; then it shares the host network, and Landlock refuses other ports
    needs_unix_sockets: bool = False  # else they are refused if sockets of other processes could be reached
    mounts: Sequence[tuple[str, str, bool]] = ()  # (source, target, read-only); required
    extras: Sequence[tuple[str, str, bool]] = ()  # the same, but skipped if mounting is not possible
    disposable: Sequence[Path] = ()  # folders that the launcher removes if this process is killed
    starts_in_scratch: bool = False  # its working folder is its scratch folder
    scratch: Path | None = None  # the scratch folder; None: a temporary one
    counted: Sequence[Path] = ()  # folders of `mounts` whose growth counts as scratch
    on_output: Callable[[bytes], None] | None = None  # called with all of its output, in order


NO_EXTRA_ACCESS: Final = ProgramAccess()


async def start_program(
    argv: Sequence[str],
    *,
    folder: Path,
    readable: Sequence[Path] = (),
    sockets: Sequence[socket.socket] = (),
    limits: ProgramLimits,
    access: ProgramAccess = NO_EXTRA_ACCESS,
) -> LongRunningProgram:
    """Start a program; the limits `wall` and `output` are not enforced. Raises RefusedError if it does not exist."""
    stack = contextlib.ExitStack()
    scratch, root_folder = stack.enter_context(create_work_folders(access.scratch))
    try:
        order = {
            **build_launcher_order(argv, folder, readable, scratch, root_folder, access.env, limits),
            "look": USAGE_CHECK_SECONDS,
        }
        order.update(is_resident=True, ports=list(access.ports), mounts=list(access.mounts), extras=list(access.extras))
        order.update(needs_unix_sockets=access.needs_unix_sockets)
        order.update(counted=list(map(os.path.abspath, access.counted)))
        order["leftovers"] += map(str, access.disposable)
        if access.starts_in_scratch:
            order["folder"] = scratch
        control, launcher_socket = socket.socketpair()
        stack.callback(control.close)
        with launcher_socket:
            process, is_cancelled = await _spawn_uncancelled(
                launcher_socket, *sockets, merge_stderr=access.on_output is not None
            )
    except BaseException:
        stack.close()
        raise
    control.setblocking(False)
    program = LongRunningProgram(process, control, stack.close, access.on_output)
    encoded_order = marshal.dumps(order)
    try:
        if is_cancelled:
            raise asyncio.CancelledError
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().sock_sendall(
                control, len(encoded_order).to_bytes(8, "big") + encoded_order
            )
    except BaseException:
        await program.kill()  # no caller knows it yet
        raise
    return program


async def _spawn_uncancelled(*sockets: socket.socket, merge_stderr: bool) -> tuple[subprocess.Popen[bytes], bool]:
    """Start the launcher in a thread; returns whether the caller was cancelled meanwhile, so that it can be killed."""
    spawn_task = asyncio.create_task(asyncio.to_thread(partial(spawn_launcher, *sockets, merge_stderr=merge_stderr)))
    is_cancelled = False
    while not spawn_task.done():
        try:
            await asyncio.wait({spawn_task})
        except asyncio.CancelledError:
            is_cancelled = True
    return spawn_task.result(), is_cancelled
