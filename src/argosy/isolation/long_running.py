"""Long-running confined programs (see program.py) that serve sockets passed to them.

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

from argosy.isolation.limits import ProgramLimits
from argosy.isolation.program import order_for, spawn, workshop

DAYS: Final = 365 * 24 * 3600
PATIENCE: Final = 3.0  # seconds for the launcher to kill all processes
LOOK: Final = 0.5  # seconds between two checks of its usage
LOUDEST: Final = 4 << 20  # output bytes read per second; a program that prints more is slowed down
KEPT: Final = 16 << 10  # bytes of the end of its output


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: with an exit code (negative: a signal), at a limit, or refused before it started."""

    code: int
    limit: str = ""
    refused: str = ""


class Resident:
    """Created by `start_program`. Keeps the end of its output, for error messages."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        control: socket.socket,
        close: Callable[[], None],
        hear: Callable[[bytes], None] | None = None,
    ) -> None:
        self._process, self._control, self._close, self._hears = process, control, close, hear
        self._said = bytearray()
        self._tasks = [asyncio.create_task(self._hear(pipe)) for pipe in (process.stdout, process.stderr) if pipe]
        self._ended: asyncio.Task[Ended] = asyncio.create_task(self._watch())

    @property
    def is_running(self) -> bool:
        return not self._ended.done()

    @property
    def ended(self) -> asyncio.Task[Ended]:
        """A task that is done when the program has ended."""
        return self._ended

    def said(self) -> str:
        """Return the end of its output."""
        return bytes(self._said[-KEPT:]).decode(errors="replace")

    async def tell(self, line: bytes) -> None:
        """Write a line to its standard input; ignored if it has ended."""
        await asyncio.to_thread(self._write, line + b"\n")

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):
            while data and self._process.stdin is not None:
                data = data[os.write(self._process.stdin.fileno(), data) :]

    def ask_to_end(self) -> None:
        """Send SIGTERM, which the program may ignore."""
        with contextlib.suppress(OSError):
            self._control.send(b"t")

    async def end(self) -> None:
        """Close the socket: the launcher kills all processes and then exits."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._ended), PATIENCE)
        if self._process.poll() is None:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
        await asyncio.gather(self._ended, *self._tasks, return_exceptions=True)

    async def _watch(self) -> Ended:
        report = bytearray()
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while more := await loop.sock_recv(self._control, 1 << 16):
                report += more
        await asyncio.to_thread(self._process.wait)
        self._control.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._process.stdin:
            self._process.stdin.close()
        self._close()
        if not report:
            return Ended(1, refused="the launcher process ended unexpectedly")
        found = marshal.loads(bytes(report))  # noqa: S302  # from our own launcher
        limit = str(found.get("limit") or "")
        return Ended(int(found.get("code", 1)), "" if limit == "gone" else limit, _refusal(found))

    async def _hear(self, pipe: object) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=KEPT)
        heard, since = 0, loop.time()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        try:
            while more := await reader.read(KEPT):
                heard += len(more)
                if heard > LOUDEST:  # else endless output would keep this process busy
                    await asyncio.sleep(max(since + 1.0 - loop.time(), 0.0))
                    heard, since = 0, loop.time()
                if self._hears is not None:
                    self._hears(more)
                self._said += more
                del self._said[: -2 * KEPT]
        finally:
            transport.close()


def _refusal(report: Mapping[str, object]) -> str:
    return str(report.get("unconfined") or report.get("refused") or "")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Additional access of a long-running program; by default it has only its files and its sockets."""

    env: Mapping[str, str] = field(default_factory=dict)
    ports: Sequence[int] = ()  # it may connect to; then it shares the host network, and Landlock refuses other ports
    needs_unix_sockets: bool = False  # else they are refused if sockets of other processes could be reached
    mounts: Sequence[tuple[str, str, bool]] = ()  # (source, target, read-only); required
    extras: Sequence[tuple[str, str, bool]] = ()  # the same, but skipped if mounting is not possible
    disposable: Sequence[Path] = ()  # folders that the launcher removes if this process is killed
    at_home: bool = False  # its working folder is its scratch folder
    scratch: Path | None = None  # the scratch folder; None: a temporary one
    counted: Sequence[Path] = ()  # folders of `mounts` whose growth counts as scratch
    hear: Callable[[bytes], None] | None = None  # called with all of its output, in order


NOTHING_MORE: Final = Surroundings()


async def start(
    argv: Sequence[str],
    *,
    folder: Path,
    readable: Sequence[Path] = (),
    sockets: Sequence[socket.socket] = (),
    limits: ProgramLimits,
    around: Surroundings = NOTHING_MORE,
) -> Resident:
    """Start a program; the limits `wall` and `output` are not enforced. Raises RefusedError if it does not exist."""
    stack = contextlib.ExitStack()
    place, room = stack.enter_context(workshop(around.scratch))
    try:
        order = {**order_for(argv, folder, readable, place, room, around.env, limits), "look": LOOK}
        order.update(is_resident=True, ports=list(around.ports), mounts=list(around.mounts), extras=list(around.extras))
        order.update(needs_unix_sockets=around.needs_unix_sockets)
        order.update(counted=list(map(os.path.abspath, around.counted)))
        order["leftovers"] += map(str, around.disposable)
        if around.at_home:
            order["folder"] = place
        ours, theirs = socket.socketpair()
        stack.callback(ours.close)
        with theirs:
            process, is_cancelled = await _spawned(theirs, *sockets, merged=around.hear is not None)
    except BaseException:
        stack.close()
        raise
    ours.setblocking(False)
    resident = Resident(process, ours, stack.close, around.hear)
    text = marshal.dumps(order)
    try:
        if is_cancelled:
            raise asyncio.CancelledError
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().sock_sendall(ours, len(text).to_bytes(8, "big") + text)
    except BaseException:
        await resident.end()  # no caller knows it yet
        raise
    return resident


async def _spawned(*sockets: socket.socket, merged: bool) -> tuple[subprocess.Popen[bytes], bool]:
    """Start the launcher in a thread; returns whether the caller was cancelled meanwhile, so that it can be killed."""
    spawning = asyncio.create_task(asyncio.to_thread(partial(spawn, *sockets, merged=merged)))
    is_cancelled = False
    while not spawning.done():
        try:
            await asyncio.wait({spawning})
        except asyncio.CancelledError:
            is_cancelled = True
    return spawning.result(), is_cancelled
