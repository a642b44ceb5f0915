"""A request ends at its timeout even if the host sends its response one byte at a time."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from argosy.http_client.allowed_host_request import DeliveryUnknown, OutboundRequest, send_request

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"


@contextlib.contextmanager
def dribbling(beginning: bytes) -> Iterator[str]:
    """Serve the beginning of a response, then one byte every 20 ms until the client closes the connection."""
    listener, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve() -> None:
        with contextlib.suppress(OSError):
            line, _ = listener.accept()
            with line:
                line.sendall(beginning)
                while not over.wait(0.02):
                    line.sendall(b"x")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        over.set()
        listener.close()
        thread.join()


@pytest.mark.parametrize("beginning", [HEAD, b"HTTP/1.1 200 OK\r\nX-", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_request_to_a_slowly_dripping_host_times_out(beginning: bytes) -> None:
    with dribbling(beginning) as url, pytest.raises(DeliveryUnknown, match="no response"):
        send_request(OutboundRequest("GET", url, timeout_seconds=0.3))
