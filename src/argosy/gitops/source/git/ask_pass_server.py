"""Tells one Git credential to `argocd-git-ask-pass`, which git runs in a plug-in's container.

In: a username and a password. Out: a gRPC service on a Unix socket, and the nonce that its callers must send. Never:
answers without the nonce; serves after the block ends.

The service is Argo CD's askpass.AskPassService: only the nonce is in the environment of the plug-in.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, RequestReceived, StreamEnded
from h2.exceptions import ProtocolError

from argosy.errors import ManifestError
from argosy.kube.schema.protobuf_wire_format import encode_bytes_field, split_fields

METHOD: Final = "/askpass.AskPassService/GetCredentials"
MAX_REQUEST_BYTES: Final = 1024
MAX_CONNECTIONS: Final = 20
MAX_CONNECTION_BYTES: Final = 1 << 16
_PREFIX: Final = struct.Struct(">BI")  # whether the message is compressed, and its length
_NOT_FOUND, _UNIMPLEMENTED = "5", "12"


@dataclass(frozen=True)
class AskPassCredential:
    username: str
    password: str = field(repr=False)
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)


@contextlib.asynccontextmanager
async def serve_credential(path: Path, credential: AskPassCredential) -> AsyncIterator[None]:
    """Serve the credential on a socket at the path, which must be in a private folder."""
    transports: set[asyncio.Transport] = set()
    loop = asyncio.get_running_loop()
    server = await loop.create_unix_server(lambda: _AskPassProtocol(credential, transports), str(path))
    try:
        yield
    finally:
        server.close()
        for transport in list(transports):
            transport.abort()


class _AskPassProtocol(asyncio.Protocol):
    def __init__(self, credential: AskPassCredential, transports: set[asyncio.Transport]) -> None:
        self._credential, self._transports = credential, transports
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self._requests: dict[int, tuple[str, bytearray]] = {}  # method and body, by stream
        self._received_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._transports.add(transport)
        if len(self._transports) > MAX_CONNECTIONS:
            transport.abort()
            return
        self._h2.initiate_connection()
        self._flush()

    def connection_lost(self, error: Exception | None) -> None:
        self._transports.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._received_bytes += len(data)
        try:
            for event in self._h2.receive_data(data):
                self._handle_event(event)
        except ProtocolError:
            self._received_bytes = MAX_CONNECTION_BYTES + 1
        self._flush()
        if self._received_bytes > MAX_CONNECTION_BYTES:
            self._transport.close()

    def _flush(self) -> None:
        self._transport.write(self._h2.data_to_send())

    def _handle_event(self, event: Event) -> None:
        match event:
            case RequestReceived(stream_id=int(stream_id), headers=headers):
                path = next((str(value) for name, value in headers or () if str(name) == ":path"), "")
                self._requests[stream_id] = path, bytearray()
            case DataReceived(stream_id=int(stream_id), data=data, flow_controlled_length=size):
                if stream_id in self._requests and len(self._requests[stream_id][1]) <= MAX_REQUEST_BYTES:
                    self._requests[stream_id][1].extend(data or b"")
                self._h2.acknowledge_received_data(size or 0, stream_id)
            case StreamEnded(stream_id=int(stream_id)):
                path, body = self._requests.pop(stream_id, ("", bytearray()))
                self._answer(stream_id, path, bytes(body))

    def _answer(self, stream_id: int, path: str, body: bytes) -> None:
        headers = [(":status", "200"), ("content-type", "application/grpc")]
        if path != METHOD or not self._has_nonce(body):
            code, text = (_NOT_FOUND, "unknown nonce") if path == METHOD else (_UNIMPLEMENTED, "unknown method")
            trailers = [("grpc-status", code), ("grpc-message", text)]
            self._h2.send_headers(stream_id, headers + trailers, end_stream=True)
            return
        texts = ((1, self._credential.username), (2, self._credential.password))
        message = b"".join(encode_bytes_field(number, text.encode()) for number, text in texts)
        self._h2.send_headers(stream_id, headers)
        self._h2.send_data(stream_id, _PREFIX.pack(0, len(message)) + message)
        self._h2.send_headers(stream_id, [("grpc-status", "0")], end_stream=True)

    def _has_nonce(self, body: bytes) -> bool:
        try:
            values = [value for number, _, value in split_fields(body[_PREFIX.size :]) if number == 1]
        except ManifestError:
            return False
        nonce = values[-1] if values and isinstance(values[-1], bytes) else b""
        return hmac.compare_digest(nonce, self._credential.nonce.encode())
