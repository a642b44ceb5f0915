"""One deadline for a whole request: resolving the name, connecting, TLS, headers and body.

In: a number of seconds. Out: the seconds that are left, connections that are shut down at the deadline. Never: waits
longer for a name server than for the deadline.

The timeout of a socket is per read: a host that sends a byte per second could hold the connection forever.
"""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Final, TypeVar

from argosy.errors import TransientError

CONNECT_SECONDS: Final = 10.0  # until an address accepts the connection; then the next address is tried
MAX_CONCURRENT_RESOLUTIONS: Final = 32
_resolution_slots: Final = threading.BoundedSemaphore(MAX_CONCURRENT_RESOLUTIONS)
T = TypeVar("T")


class RequestDeadline:
    """Its time starts when it is created. `expire` ends a request early, from any thread."""

    def __init__(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds
        self._expired = threading.Event()
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []

    @property
    def seconds_left(self) -> float:
        return 0.0 if self._expired.is_set() else max(0.0, self._ends_at - time.monotonic())

    @property
    def is_over(self) -> bool:
        return not self.seconds_left

    def expire(self) -> None:
        """Shut down all connections of the request. A thread that reads from one sees its end."""
        with self._lock:
            self._expired.set()
            for connection in self._sockets:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def enforce(self) -> Iterator[None]:
        """Shut down the connections that are opened within the block at the deadline."""
        timer = threading.Timer(self.seconds_left, self.expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            with self._lock:
                for connection in self._sockets:
                    connection.close()
                self._sockets.clear()

    def resolve(self, host: str, resolve_addresses: Callable[[], T]) -> T:
        """Return the result of a function that asks name servers, which no timeout interrupts: in its own thread."""
        if not _resolution_slots.acquire(timeout=self.seconds_left):
            raise TransientError(f"{host}: not found (timed out); try again")
        result: Future[T] = Future()

        def run() -> None:
            try:
                result.set_result(resolve_addresses())
            except BaseException as error:
                result.set_exception(error)
            finally:
                _resolution_slots.release()

        threading.Thread(target=run, name="resolve-host", daemon=True).start()
        try:
            return result.result(self.seconds_left)
        except TimeoutError:
            if result.done():
                raise
            raise TransientError(f"{host}: not found (timed out); try again") from None

    def connect(self, addresses: Sequence[tuple[str, int]], read_seconds: float = math.inf) -> socket.socket:
        """Connect to the first address that accepts. `read_seconds`: timeout of one read. Raises OSError."""
        problem: OSError = TimeoutError("timed out")
        for address in addresses:
            if self.is_over:
                break
            try:
                connection = socket.create_connection(address, min(CONNECT_SECONDS, self.seconds_left))
            except OSError as error:
                problem = error
                continue
            self._watch(connection)
            connection.settimeout(max(0.001, min(read_seconds, self.seconds_left)))
            return connection
        raise problem

    def _watch(self, connection: socket.socket) -> None:
        """Keep a duplicate: TLS takes the descriptor away from the original, and closes it on its own."""
        with self._lock:
            self._sockets.append(connection.dup())
            is_late = self._expired.is_set()
        if is_late:
            self.expire()
