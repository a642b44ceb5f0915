"""The parent's client of the fork server: starts it, requests modules and workers, and receives exit codes.

In: module names, limits. Out: sockets to workers. Never: blocks the event loop for longer than a process start.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

import argosy
from argosy.errors import TransientError
from argosy.isolation import message_frames
from argosy.isolation.confinement_requirement import is_required
from argosy.isolation.errors import RefusedError

_BOOT_CODE = (
    "import sys; sys.path.append(sys.argv[2]); from argosy.isolation.fork_server import main; main(int(sys.argv[1]))"
)
_START_SECONDS = 30.0
_STATUS_SECONDS = 5.0
_MAX_DESCRIPTORS = 8


class ForkServerClient:
    """One fork server. `loaded` maps each module to the first generation of workers that has it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._control, server_socket = socket.socketpair()
        with server_socket:
            self._process = _spawn(server_socket)
        self._control.setblocking(False)
        self._inbox = message_frames.FrameBuffer(1 << 20)
        self._descriptors: deque[int] = deque()
        self._replies: deque[asyncio.Future[dict[str, Any]]] = deque()
        self._deaths: dict[int, asyncio.Future[int | None]] = {}
        self._hung_up = loop.create_future()
        self._last_number = 0
        self.is_alive = True
        self.loaded: dict[str, int] = {}
        self.generation = 0
        loop.add_reader(self._control.fileno(), self._read)
        path = [os.path.abspath(entry) for entry in sys.path]
        self._write({"parent": os.getpid(), "path": path, "required": is_required()})

    async def load(self, modules: Sequence[str]) -> None:
        """Load modules for all future workers; RefusedError if one cannot be loaded."""
        reply = await self._request({"do": "load", "modules": list(modules)})
        if "failed" in reply:
            raise RefusedError(f"confine: cannot load {reply['failed']}")
        self.generation += 1
        for module in modules:
            self.loaded.setdefault(module, self.generation)

    async def fork(self, needs: Mapping[str, float]) -> tuple[int, socket.socket]:
        """Fork a worker; returns its number and the socket to it. `needs` are memory, cpu_budget and output."""
        self._last_number += 1
        number = self._last_number
        self._deaths[number] = self._loop.create_future()
        reply = await self._request({"do": "fork", "number": number, "needs": needs})
        if "failed" in reply:
            del self._deaths[number]
            raise TransientError(f"confine: {reply['failed']}")
        if reply["descriptor"] is None:
            self.kill(number)
            raise TransientError("confine: this process has too many open files")
        return number, socket.socket(fileno=reply["descriptor"])

    def lower_priority(self, number: int) -> None:
        """Lower the CPU priority of a worker; this cannot be undone."""
        if self.is_alive:
            self._write({"do": "lower", "number": number})

    def kill(self, number: int) -> None:
        """Kill a worker through the fork server, because only its parent can be sure that the pid was not reused."""
        self._deaths.pop(number, None)
        if self.is_alive:
            self._write({"do": "kill", "number": number})

    async def find_exit_code(self, number: int) -> int | None:
        """Return the exit code of an ended worker (negative: the signal), or None if it is unknown."""
        death = self._deaths.get(number)
        if death is None:
            return None
        try:
            async with asyncio.timeout(_STATUS_SECONDS):
                return await asyncio.shield(death)
        except TimeoutError:
            return None

    async def close(self) -> None:
        """Close the socket and wait for the end of the fork server, which first kills its workers."""
        if self.is_alive:
            self._control.shutdown(socket.SHUT_WR)
            try:
                async with asyncio.timeout(_STATUS_SECONDS):
                    await asyncio.shield(self._hung_up)
            except TimeoutError:
                self._process.kill()  # its workers end with their parent
        self.abandon()

    def abandon(self) -> None:
        """Release everything without an event loop: the fork server notices the closed socket and ends."""
        self._mark_ended()
        if self._control.fileno() >= 0 and not self._loop.is_closed():
            self._loop.remove_reader(self._control.fileno())
        self._control.close()
        while self._descriptors:
            os.close(self._descriptors.popleft())
        try:
            self._process.wait(_STATUS_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()  # last resort: its workers end with it, but init must reap them
            self._process.wait()

    def _mark_ended(self) -> None:
        self.is_alive = False
        if self._loop.is_closed():
            return
        if not self._hung_up.done():
            self._hung_up.set_result(None)
        for reply in self._replies:
            if not reply.done():
                reply.set_exception(TransientError("confine: the fork server ended"))
        self._replies.clear()
        for death in self._deaths.values():
            if not death.done():
                death.set_result(None)
        self._deaths.clear()

    async def _request(self, order: dict[str, Any]) -> dict[str, Any]:
        if not self.is_alive:
            raise TransientError("confine: the fork server ended")
        reply: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._replies.append(reply)
        self._write(order)
        try:
            async with asyncio.timeout(_START_SECONDS):
                return await reply
        except TimeoutError:
            self._process.kill()
            raise TransientError(f"confine: the fork server gave no answer for {_START_SECONDS:g} s") from None
        except asyncio.CancelledError:
            if reply.done() and not reply.cancelled() and reply.exception() is None:
                self._discard_reply(reply.result())
            raise

    def _write(self, message: dict[str, Any]) -> None:
        # A frame is far smaller than the socket buffer, and only a few per worker are in flight.
        try:
            self._control.sendall(message_frames.pack_message(message))
        except OSError:
            self._process.kill()  # the reader notices the end and informs all waiters

    def _read(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, 1 << 16, _MAX_DESCRIPTORS)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        self._descriptors.extend(descriptors)
        if not data:
            self._loop.remove_reader(self._control.fileno())
            self._mark_ended()
            return
        self._inbox.feed(data)
        for frame in self._inbox.read_frames():
            self._handle_message(orjson.loads(frame))

    def _handle_message(self, message: dict[str, Any]) -> None:
        if "ended" in message:
            death = self._deaths.get(message["ended"])
            if death is not None and not death.done():
                death.set_result(message["status"])
            return
        if "forked" in message:  # None: this process has no free descriptor
            message["descriptor"] = self._descriptors.popleft() if self._descriptors else None
        reply = self._replies.popleft()
        if not reply.done():
            reply.set_result(message)
        else:
            self._discard_reply(message)

    def _discard_reply(self, message: dict[str, Any]) -> None:
        """Discard a reply whose caller was cancelled: close the socket and kill the worker."""
        if "forked" in message:
            if message["descriptor"] is not None:
                os.close(message["descriptor"])
            self.kill(message["forked"])


def _spawn(control: socket.socket) -> subprocess.Popen[bytes]:
    descriptor = control.fileno()
    package_root = os.path.dirname(os.path.dirname(os.path.abspath(argosy.__file__)))
    return subprocess.Popen(
        [sys.executable, "-I", "-X", "utf8", "-c", _BOOT_CODE, str(descriptor), package_root],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(descriptor,),
        env={},
        cwd="/",
        start_new_session=True,  # Ctrl-C must only reach the parent
    )
