"""A client of gRPC over HTTP/2 on a socket; only the messages use the codec of the server.

In: a port, a method, messages. Out: a Reply, as from gRPC-Web. Never: retries.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, ResponseReceived, StreamEnded, StreamReset, TrailersReceived

from support.deadlines import HANG_SECONDS
from support.grpc_web import Reply, encode_request, frame

NATIVE_MEDIA = "application/grpc"


class NativeClient:
    """One connection. `is_tls`: with ALPN, and without verification."""

    def __init__(self, port: int, *, is_tls: bool = False) -> None:
        self.port = port
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as Go does
        if is_tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            connection = context.wrap_socket(self.socket, server_hostname="127.0.0.1")
            assert connection.selected_alpn_protocol() == "h2"
            self.socket = connection
        self.scheme = "https" if is_tls else "http"
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.flush()

    def __enter__(self) -> NativeClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def flush(self) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # reading tells how the connection ended
            self.socket.sendall(self.h2.data_to_send())

    def begin(self, method: str, headers: Mapping[str, str] | None = None) -> int:
        stream = self.h2.get_next_available_stream_id()
        fields = {"content-type": NATIVE_MEDIA, "te": "trailers", **{k.lower(): v for k, v in (headers or {}).items()}}
        authority = fields.pop("host", f"127.0.0.1:{self.port}")
        pseudo = [(":method", "POST"), (":scheme", self.scheme), (":authority", authority), (":path", method)]
        self.h2.send_headers(stream, [*pseudo, *fields.items()])
        return stream

    def send(self, stream: int, data: bytes, *, is_last: bool = False) -> bool:
        """Send data as far as the server gives room; False if it ended the request before."""
        position = 0
        while position < len(data):
            try:
                room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            except Exception:
                return False
            if not room:
                self.flush()
                if any(isinstance(event, StreamReset | StreamEnded) for event in self._receive()):
                    return False
                continue
            self.h2.send_data(stream, data[position : position + room])
            position += room
        if is_last:
            self.h2.end_stream(stream)
        self.flush()
        return True

    def _receive(self) -> list[Any]:
        data = self.socket.recv(65_536)
        if not data:
            raise EOFError("the server closed the connection")
        events = self.h2.receive_data(data)
        self.kept = [*getattr(self, "kept", []), *events]
        return events

    def read(self, stream: int, method: str) -> Reply:
        """Read the response to its end."""
        answer: dict[str, str] = {}
        trailers: dict[str, str] = {}
        body = bytearray()
        while True:
            kept, self.kept = getattr(self, "kept", []), []
            for event in kept:
                if isinstance(event, ConnectionTerminated):
                    raise EOFError(f"GOAWAY {event.error_code}")
                if getattr(event, "stream_id", None) != stream:
                    continue
                match event:
                    case ResponseReceived():
                        answer = dict(event.headers)
                    case TrailersReceived():
                        trailers = dict(event.headers)
                    case DataReceived():
                        body += event.data
                        if event.flow_controlled_length:
                            self.h2.acknowledge_received_data(event.flow_controlled_length, stream)
                    case StreamEnded():
                        self.flush()
                        return build_reply(method, answer, trailers, bytes(body))
                    case StreamReset():
                        raise EOFError(f"RST_STREAM {event.error_code}")
            self.flush()
            self._receive()


def build_reply(method: str, answer: dict[str, str], trailers: dict[str, str], body: bytes) -> Reply:
    messages = []
    if answer[":status"] == "200":
        assert answer["content-type"].startswith(NATIVE_MEDIA)
        assert ("grpc-status" in answer) != ("grpc-status" in trailers), (answer, trailers)
        while body:
            flag, size = struct.unpack_from(">BI", body)
            assert (flag, len(body) >= 5 + size) == (0, True)
            messages.append(body[5 : 5 + size])
            body = body[5 + size :]
    return Reply(int(answer[":status"]), answer if trailers else {}, messages, trailers or answer, method)


def call_native(port: int, method: str, body: bytes, headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
    with NativeClient(port, **more) as client:
        stream = client.begin(method, headers)
        client.send(stream, body, is_last=True)
        return client.read(stream, method)


def ask_native(port: int, who: str, method: str, documents: Iterable[Any] = ({},), **headers: str) -> Reply:
    """Call as the argocd CLI does: with the token in the header `token`."""
    sent = {name.replace("_", "-"): text for name, text in headers.items()}
    if who:
        sent["token"] = who
    body = b"".join(frame(encode_request(method, document)) for document in documents)
    return call_native(port, method, body, sent)
