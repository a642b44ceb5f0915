"""A program that stays: confined like any other (see program.py), and serving sockets that were opened for it.

In: a command, what it may read, sockets that listen. Out: a Resident: write to it, wait for its end, end it.
Never: outlives us, or `end`; gives it any network but the sockets that it was passed and the ports that were named.
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
PATIENCE: Final = 3.0  # seconds for the launcher to end all that it started
LOOK: Final = 0.5  # seconds between two looks at what it uses
LOUDEST: Final = 4 << 20  # bytes a second of what it prints that are listened to; it waits meanwhile
KEPT: Final = 16 << 10  # bytes of the end of what it printed


@dataclass(frozen=True, slots=True)
class Ended:
    """How a resident ended: by itself with a code (negative: a signal), or at a limit, or it never began."""

    code: int
    limit: str = ""
    refused: str = ""


class Resident:
    """Made by `start`. Its output's end is kept, for who asks why it ended."""

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
        """Done when it has ended."""
        return self._ended

    def said(self) -> str:
        """The end of what it printed."""
        return bytes(self._said[-KEPT:]).decode(errors="replace")

    async def tell(self, line: bytes) -> None:
        """A line for its standard input, lost where it has ended."""
        await asyncio.to_thread(self._write, line + b"\n")

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):
            while data and self._process.stdin is not None:
                data = data[os.write(self._process.stdin.fileno(), data) :]

    def ask_to_end(self) -> None:
        """SIGTERM, which it may ignore."""
        with contextlib.suppress(OSError):
            self._control.send(b"t")

    async def end(self) -> None:
        """Hang up: the launcher ends everything and then itself."""
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
            return Ended(1, refused="the process that should start it ended")
        found = marshal.loads(bytes(report))  # noqa: S302  # our own launcher's
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
                if heard > LOUDEST:  # or who prints without end would have this process listen to nothing else
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
    """What a resident is given besides: all empty, it has nothing but its files and its sockets."""

    env: Mapping[str, str] = field(default_factory=dict)
    ports: Sequence[int] = ()  # that it may call; then it shares this machine's network, and Landlock refuses the rest
    needs_unix_sockets: bool = False  # it opens some; else they are refused where it could reach those of others
    mounts: Sequence[tuple[str, str, bool]] = ()  # what, under which name, read-only; refused where that cannot be
    extras: Sequence[tuple[str, str, bool]] = ()  # the same, left out where it cannot be
    disposable: Sequence[Path] = ()  # folders that are removed if we are killed and cannot do it
    at_home: bool = False  # works in its own scratch folder
    scratch: Path | None = None  # the scratch folder; None: one that is made for it, and removed after
    counted: Sequence[Path] = ()  # folders of `mounts`, where what it adds counts as scratch
    hear: Callable[[bytes], None] | None = None  # is given all that it prints, in its order


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
    """Of the limits, `wall` and `output` do not count. Raises RefusedError where there is no such program."""
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
        await resident.end()  # nobody else knows of it yet
        raise
    return resident


async def _spawned(*sockets: socket.socket, merged: bool) -> tuple[subprocess.Popen[bytes], bool]:
    """The launcher, and whether we were cancelled meanwhile: a thread goes on, and what it starts must be ended."""
    spawning = asyncio.create_task(asyncio.to_thread(partial(spawn, *sockets, merged=merged)))
    is_cancelled = False
    while not spawning.done():
        try:
            await asyncio.wait({spawning})
        except asyncio.CancelledError:
            is_cancelled = True
    return spawning.result(), is_cancelled
