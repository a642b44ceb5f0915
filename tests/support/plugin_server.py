"""A stand-in for Argo CD's plug-in server: gRPC on a Unix socket, in threads of this process.

In: a folder for the socket, what the plug-in answers. Out: a server; the sources that it got. Never: runs a command.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import socket
import struct
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded

from argosy.kube.schema.protobuf_wire_format import encode_bytes_field, encode_number_field, split_fields

Headers = list[tuple[str, str]]


class PluginFailure(Exception):
    """The plug-in's command failed with this message."""


@dataclass
class ReceivedSource:
    folder: str
    environment: Mapping[str, str]
    entries: Mapping[str, tarfile.TarInfo]
    contents: Mapping[str, bytes]


def _print_nothing(source: ReceivedSource) -> Sequence[str]:
    return ()


@dataclass
class PluginServer:
    has_discovery: bool = False
    is_supported: bool = True
    wants_credentials: bool = False
    generate: Callable[[ReceivedSource], Sequence[str]] = _print_nothing
    answer_late: threading.Event | None = None  # the answer waits for it
    methods: list[str] = field(default_factory=list)  # that were called
    sources: list[ReceivedSource] = field(default_factory=list)

    @contextlib.contextmanager
    def listen(self, folder: Path, name: str) -> Iterator[PluginServer]:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / f"{name}.sock"))
            listener.listen()
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            try:
                yield self
            finally:
                listener.shutdown(socket.SHUT_RDWR)
                (folder / f"{name}.sock").unlink()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        h2, body, method = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8")), b"", ""
        h2.initiate_connection()
        with contextlib.suppress(OSError), connection:
            connection.sendall(h2.data_to_send())
            while data := connection.recv(1 << 16):
                for event in h2.receive_data(data):
                    match event:
                        case RequestReceived(headers=headers):
                            method = dict(headers)[":path"].rpartition("/")[2]
                        case DataReceived(data=part, flow_controlled_length=size, stream_id=stream):
                            body += part
                            h2.acknowledge_received_data(size, stream)
                        case StreamEnded(stream_id=stream):
                            self._answer(h2, stream, method, _split_messages(body))
                connection.sendall(h2.data_to_send())

    def _answer(self, h2: H2Connection, stream: int, method: str, messages: list[bytes]) -> None:
        self.methods.append(method)
        if self.answer_late is not None:
            self.answer_late.wait()
        headers: Headers = [(":status", "200"), ("content-type", "application/grpc")]
        try:
            message = self._run(method, messages)
        except PluginFailure as failure:
            trailers: Headers = [("grpc-status", "2"), ("grpc-message", quote(str(failure)))]
            h2.send_headers(stream, headers + trailers, end_stream=True)
            return
        h2.send_headers(stream, headers)
        h2.send_data(stream, struct.pack(">BI", 0, len(message)) + message)
        h2.send_headers(stream, [("grpc-status", "0")], end_stream=True)

    def _run(self, method: str, messages: list[bytes]) -> bytes:
        if method == "CheckPluginConfiguration":
            return encode_number_field(1, self.has_discovery) + encode_number_field(2, self.wants_credentials)
        source = _read_source(messages)
        self.sources.append(source)
        if method == "MatchRepository":
            return encode_number_field(1, self.is_supported) + encode_number_field(2, self.has_discovery)
        assert method == "GenerateManifest", method
        return b"".join(encode_bytes_field(1, text.encode()) for text in self.generate(source))


def _split_messages(body: bytes) -> list[bytes]:
    messages = []
    while body:
        _, size = struct.unpack_from(">BI", body)
        messages.append(body[5 : 5 + size])
        body = body[5 + size :]
    return messages


def _split_bytes(data: bytes) -> list[tuple[int, bytes]]:
    return [(number, value) for number, _, value in split_fields(data) if isinstance(value, bytes)]


def _read_source(messages: list[bytes]) -> ReceivedSource:
    fields = _split_bytes(_split_bytes(messages[0])[0][1])
    texts = {number: value.decode() for number, value in fields if number in (2, 3)}
    archive = b"".join(_split_bytes(_split_bytes(message)[0][1])[0][1] for message in messages[1:])
    assert hashlib.sha256(archive).hexdigest() == texts[3]
    pairs = [dict(_split_bytes(value)) for number, value in fields if number == 5]
    environment = {pair[1].decode(): pair.get(2, b"").decode() for pair in pairs}
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        entries = {member.name: member for member in tar}
        contents = {name: tar.extractfile(entry).read() for name, entry in entries.items() if entry.isfile()}  # type: ignore[union-attr]
    return ReceivedSource(texts[2], environment, entries, contents)
