"""Makes one gRPC call through a Unix socket, in the calling thread.

In: a socket's path, a method, messages. Out: the message of the answer. Never: waits longer than the deadline; keeps
more of an answer than the limit; retries.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final
from urllib.parse import unquote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

MAX_HEADER_LIST_BYTES: Final = 1 << 20  # the message of a failed call is a header
_WINDOW_BYTES: Final = 1 << 20
_DEFAULT_WINDOW_BYTES: Final = 65_535
_READ_BYTES: Final = 1 << 16
_MAX_FRAMES: Final = 100_000  # of one answer
_PREFIX: Final = struct.Struct(">BI")  # whether the message is compressed, and its length


class CallCode(IntEnum):
    """The codes of gRPC that this client gives or that its callers tell apart."""

    UNKNOWN = 2
    DEADLINE_EXCEEDED = 4
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class FailedCall(Exception):
    """The call failed. `message` is the server's, or says why there is no answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True)
class AnswerLimits:
    deadline: float  # of time.monotonic
    answer_bytes: int


def call_method(socket_path: str, method: str, messages: Iterable[bytes], limits: AnswerLimits) -> bytes:
    """Send the messages and return the only message of the answer. `method`: /service/name. Raises FailedCall."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            call = _Call(connection, limits)
            connection.settimeout(call.seconds_left())
            connection.connect(socket_path)
            return call.run(method, messages)
    except TimeoutError:
        raise FailedCall(CallCode.DEADLINE_EXCEEDED, "no answer in time") from None
    except OSError as error:
        raise FailedCall(CallCode.UNAVAILABLE, (error.strerror or str(error)).lower()) from None
    except ProtocolError as error:
        raise FailedCall(CallCode.INTERNAL, f"invalid HTTP/2: {error}") from None


@dataclass
class _Answer:
    body: bytearray = field(default_factory=bytearray)
    headers: dict[str, str] = field(default_factory=dict)  # the header and the trailers
    is_complete: bool = False


class _Call:
    def __init__(self, connection: socket.socket, limits: AnswerLimits) -> None:
        self._connection, self._limits, self._answer = connection, limits, _Answer()
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._h2.local_settings = Settings(client=True, initial_values={
            SettingCodes.ENABLE_PUSH: 0,
            SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW_BYTES,
            SettingCodes.MAX_HEADER_LIST_SIZE: MAX_HEADER_LIST_BYTES,
        })  # fmt: skip
        self._h2.decoder.max_header_list_size = MAX_HEADER_LIST_BYTES
        self._stream = 1  # the only one
        self._event_count = 0

    def seconds_left(self) -> float:
        seconds = self._limits.deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    def run(self, method: str, messages: Iterable[bytes]) -> bytes:
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_WINDOW_BYTES - _DEFAULT_WINDOW_BYTES)
        self._h2.send_headers(self._stream, [
            (":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", method),
            ("content-type", "application/grpc"), ("te", "trailers"), ("user-agent", "argosy"),
            ("grpc-timeout", f"{max(1, int(self.seconds_left() * 1000))}m"),
        ])  # fmt: skip
        for message in messages:
            self._send(_PREFIX.pack(0, len(message)) + message)
            if self._answer.is_complete:  # the server does not want the rest
                break
        else:
            self._h2.end_stream(self._stream)
        self._flush()
        while not self._answer.is_complete:
            self._receive()
        return self._read_answer()

    def _send(self, data: bytes) -> None:
        for frame in self._split_into_frames(memoryview(data)):
            self._h2.send_data(self._stream, bytes(frame))
            self._flush()

    def _split_into_frames(self, rest: memoryview) -> Iterator[memoryview]:
        """Yield parts as large as the server permits at each moment; none after the server has ended the call."""
        while rest and not self._answer.is_complete:
            size = min(self._h2.local_flow_control_window(self._stream), self._h2.max_outbound_frame_size, len(rest))
            if size <= 0:
                self._receive()
                continue
            yield rest[:size]
            rest = rest[size:]

    def _flush(self) -> None:
        if data := self._h2.data_to_send():
            self._connection.settimeout(self.seconds_left())
            self._connection.sendall(data)

    def _receive(self) -> None:
        self._connection.settimeout(self.seconds_left())
        data = self._connection.recv(_READ_BYTES)
        if not data:
            raise FailedCall(CallCode.UNAVAILABLE, "the connection was closed before the end of the call")
        for event in self._h2.receive_data(data):
            self._handle_event(event)
        if not self._answer.is_complete:
            self._flush()

    def _handle_event(self, event: Event) -> None:
        self._event_count += 1
        if self._event_count > _MAX_FRAMES:
            raise FailedCall(CallCode.RESOURCE_EXHAUSTED, "the answer has too many frames")
        match event:
            case ResponseReceived(headers=headers) | TrailersReceived(headers=headers):
                self._answer.headers |= {str(name): str(value) for name, value in headers or ()}
            case DataReceived(data=data, flow_controlled_length=size):
                self._answer.body += data or b""
                if len(self._answer.body) > self._limits.answer_bytes + _PREFIX.size:
                    text = f"the answer exceeds {self._limits.answer_bytes >> 20} MiB"
                    raise FailedCall(CallCode.RESOURCE_EXHAUSTED, text)
                self._h2.acknowledge_received_data(size or 0, self._stream)
            case StreamEnded():
                self._answer.is_complete = True
            case StreamReset(error_code=code) | ConnectionTerminated(error_code=code):
                if not self._answer.is_complete:
                    raise FailedCall(CallCode.UNAVAILABLE, f"the server ended the call with HTTP/2 error {code}")

    def _read_answer(self) -> bytes:
        headers, body = self._answer.headers, bytes(self._answer.body)
        if headers.get(":status") != "200":
            raise FailedCall(CallCode.UNAVAILABLE, f"not a gRPC server: HTTP status {headers.get(':status')}")
        code = headers.get("grpc-status", "")
        if code != "0":
            raise FailedCall(
                int(code) if code.isdecimal() else CallCode.UNKNOWN, unquote(headers.get("grpc-message", ""))
            )
        if len(body) < _PREFIX.size:
            raise FailedCall(CallCode.INTERNAL, "the answer has no message")
        is_compressed, length = _PREFIX.unpack_from(body)
        if is_compressed or length != len(body) - _PREFIX.size:
            raise FailedCall(CallCode.INTERNAL, "the answer is not one uncompressed message")
        return body[_PREFIX.size :]
