"""Hosts that answer slowly on purpose: a request ends, whatever its host does."""

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
    """Sends the beginning, and then a byte now and then until the other side has had enough."""
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
def test_an_answer_of_a_byte_now_and_then_ends(beginning: bytes) -> None:
    with dribbling(beginning) as url, pytest.raises(DeliveryUnknown, match="no response"):
        send_request(OutboundRequest("GET", url, timeout_seconds=0.3))
