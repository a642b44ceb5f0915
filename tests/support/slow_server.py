"""A host that accepts connections and then sends a byte every 20 ms, until its clients close.

In: what it sends first. Out: its port, the number of open connections. Never: listens beyond loopback.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

BYTE_INTERVAL_SECONDS = 0.02


class SlowServer:
    def __init__(self, beginning: bytes, repeated: bytes) -> None:
        self.beginning, self.repeated = beginning, repeated
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = int(self.listener.getsockname()[1])
        self.is_over = threading.Event()
        self._lock = threading.Lock()
        self.open_connections = 0

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._send_slowly, args=(connection,), daemon=True).start()

    def _send_slowly(self, connection: socket.socket) -> None:
        with self._lock:
            self.open_connections += 1
        with connection, contextlib.suppress(OSError):
            connection.sendall(self.beginning)
            while not self.is_over.wait(BYTE_INTERVAL_SECONDS):
                connection.sendall(self.repeated)
        with self._lock:
            self.open_connections -= 1


@contextlib.contextmanager
def slow_server(beginning: bytes = b"", repeated: bytes = b"x") -> Iterator[SlowServer]:
    server = SlowServer(beginning, repeated)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.is_over.set()
        with contextlib.suppress(OSError):
            server.listener.shutdown(socket.SHUT_RDWR)
        server.listener.close()
        thread.join()
