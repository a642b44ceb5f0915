"""A connection whose client does not read, over a real socket."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from argosy.sandbox.apiserver import https_server
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.http import request_and_response_io
from argosy.sandbox.apiserver.https_server import open_listener, serve_https
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.apiserver.tls import ensure_certificates
from support.api_client import CONFIGS, TOKEN
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.anyio
SHORT = 0.3
OBJECTS, OBJECT_BYTES, SEND_BUFFER_BYTES = 20, 200_000, 1 << 16


def bind_with_small_buffers(port: int, *, allow_other_port: bool = False) -> socket.socket:
    """Connections inherit the small buffer. Otherwise, the kernel buffers megabytes for a client that does not read,
    and how many varies.
    """
    listener = open_listener(port, allow_other_port=allow_other_port)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    return listener


@pytest.mark.parametrize("path", [CONFIGS, f"{CONFIGS}?watch=true&resourceVersion=0"])
async def test_server_drops_a_connection_whose_client_does_not_read(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(request_and_response_io, "WRITE_TIMEOUT_SECONDS", SHORT)
    monkeypatch.setattr(https_server, "open_listener", bind_with_small_buffers)
    certificates = ensure_certificates(tmp_path)
    async with ControlPlane.open(admin_token=TOKEN) as plane, serve_https(plane, certificates) as url:
        cluster = EmbeddedCluster(plane)
        for number in range(OBJECTS):
            metadata = {"name": f"c{number}", "namespace": "default"}
            data = {"text": "x" * OBJECT_BYTES}
            await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        port = int(url.rpartition(":")[2])
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await asyncio.to_thread(client.connect, ("127.0.0.1", port))
            secure = ssl.create_default_context(cafile=str(certificates.authority))
            wrapped = await asyncio.to_thread(secure.wrap_socket, client, server_hostname="127.0.0.1")
            head = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
            await asyncio.to_thread(wrapped.sendall, head.encode())
            async with asyncio.timeout(HANG_SECONDS):
                while "did not read its response" not in caplog.text:
                    await asyncio.sleep(0.01)
            received = await asyncio.wait_for(asyncio.to_thread(_read_all, wrapped), HANG_SECONDS)
            wrapped.close()
    assert received < OBJECTS * OBJECT_BYTES


def _read_all(client: ssl.SSLSocket) -> int:
    """The number of bytes received before the end."""
    count = 0
    try:
        while data := client.recv(1 << 16):
            count += len(data)
    except OSError:  # dropped, not closed
        pass
    return count
