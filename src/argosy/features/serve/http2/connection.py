"""One HTTP/2 connection for gRPC: hands each request to the ASGI application, within limits.

In: bytes of a client. Out: ASGI requests; frames for the client. Never: serves requests that are not gRPC; keeps a
connection that floods, stalls or idles.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import MutableSet
from dataclasses import dataclass
from typing import Any, Final

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError, StreamClosedError
from h2.settings import SettingCodes, Settings

from argosy.features.serve.http2.frame_budget import FrameBudget
from argosy.features.serve.http2.preface import PREFACE
from argosy.features.serve.http2.request_scope import ConnectionAddresses, InvalidRequest, build_scope, is_grpc_request
from argosy.features.serve.http2.stream import STALLED_STREAM_SECONDS, Application, Headers, Http2Stream

MAX_STREAMS_PER_CONNECTION: Final = 100  # those whose client is gone, but whose work has not ended, included
MAX_REQUESTS_PER_CONNECTION: Final = 10_000  # a client then opens another connection
MAX_HEADER_LIST_BYTES: Final = 64 << 10  # decompressed; fewer are permitted by the limits on each request
STREAM_WINDOW_BYTES: Final = 256 << 10  # of a request that are not read yet
CONNECTION_WINDOW_BYTES: Final = 1 << 20
HANDSHAKE_SECONDS: Final = 10.0  # until the client has sent its settings
HEADER_SECONDS: Final = 32.0  # until the first request, and until the header of one is complete, as over HTTP/1.1
IDLE_SECONDS: Final = 300.0  # after the last request
SILENCE_SECONDS: Final = 60.0  # with requests, but without a byte of the client; then a PING must be answered in time
PING_SECONDS: Final = 20.0
LAST_WORDS_SECONDS: Final = 1.0  # in which a client that is turned away can read why
CHECK_SECONDS: Final = 5.0
_DEFAULT_WINDOW_BYTES: Final = 65_535
_GO_AWAY: Final = 7
_TEXT: Final = "this server speaks HTTP/2 for gRPC only; use HTTP/1.1 for other requests\n"


@dataclass
class _Times:
    opened: float
    received: float  # when the client sent something
    used: float  # when the last request began or ended
    headers_begun: float = 0.0
    pinged: float = 0.0
    closes: float = 0.0  # when the connection is aborted, if the client does not read the last bytes


class Http2Connection:
    def __init__(
        self,
        transport: asyncio.Transport,
        application: Application,
        addresses: ConnectionAddresses,
        tasks: MutableSet[Any],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._transport, self._application, self._addresses = transport, application, addresses
        self._tasks, self._loop = tasks, loop
        self._streams: dict[int, Http2Stream] = {}
        self._requests = 0
        self._budget = FrameBudget(loop.time)
        self._unread_preface = len(PREFACE)
        self._has_settings = self._is_write_paused = self._is_draining = self._is_over = False
        now = loop.time()
        self._times = _Times(now, now, now)
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self._h2.local_settings = Settings(client=False, initial_values={
            SettingCodes.MAX_CONCURRENT_STREAMS: MAX_STREAMS_PER_CONNECTION,
            SettingCodes.MAX_HEADER_LIST_SIZE: MAX_HEADER_LIST_BYTES,
            SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW_BYTES,
        })  # fmt: skip
        self._h2.decoder.max_header_list_size = MAX_HEADER_LIST_BYTES
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(CONNECTION_WINDOW_BYTES - _DEFAULT_WINDOW_BYTES)
        self._timer = loop.call_later(CHECK_SECONDS, self._check_times)
        self._flush()

    # -- called by the protocol ----------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        if self._is_over:
            return
        self._times.received, self._times.pinged = self._loop.time(), 0.0
        frames = data[self._unread_preface :]
        self._unread_preface = max(0, self._unread_preface - len(data))
        self._budget.count_received(frames)
        if self._budget.is_exceeded:
            self._end(ErrorCodes.ENHANCE_YOUR_CALM)
            return
        if not self._budget.is_in_headers:
            self._times.headers_begun = 0.0
        elif not self._times.headers_begun:
            self._times.headers_begun = self._times.received
        try:
            for event in self._h2.receive_data(data):
                self._handle_event(event)
        except ProtocolError:  # h2 has written the GOAWAY
            self._end(None)
        self._flush()

    def pause_writing(self) -> None:
        """Read nothing, either: the answers to what is read would have to be kept."""
        self._is_write_paused = True
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._is_write_paused = False
        if not self._is_over:
            self._transport.resume_reading()
        self._wake_streams()

    def shut_down(self) -> None:
        """Accept no more requests, and close the connection after the open ones."""
        if self._is_draining or self._is_over:
            return
        self._is_draining = True
        payload = struct.pack(">II", self._h2.highest_inbound_stream_id, ErrorCodes.NO_ERROR)
        self._flush()
        # by hand: after a GOAWAY of its own, h2 sends nothing more for the open requests
        self._transport.write(len(payload).to_bytes(3) + struct.pack(">BBI", _GO_AWAY, 0, 0) + payload)
        self._close_if_drained()

    def lose(self) -> None:
        """End all requests: the connection is closed."""
        self._is_over = True
        self._timer.cancel()
        for stream in list(self._streams.values()):
            stream.cancel()

    # -- events of the client ------------------------------------------------------------------------------------

    def _handle_event(self, event: Event) -> None:
        match event:
            case RequestReceived(stream_id=int(stream_id), headers=headers):
                self._begin_request(stream_id, [(bytes(name), bytes(value)) for name, value in headers or ()])
            case DataReceived(stream_id=int(stream_id)):
                size = event.flow_controlled_length or 0
                if stream := self._streams.get(stream_id):
                    stream.take_data(bytes(event.data or b""), size)
                else:
                    self.acknowledge(stream_id, size)
            case StreamEnded(stream_id=int(stream_id)):
                if stream := self._streams.get(stream_id):
                    stream.end_request()
            case StreamReset(stream_id=int(stream_id)):
                if stream := self._streams.get(stream_id):
                    stream.cancel()
            case WindowUpdated():
                self._wake_streams()
            case RemoteSettingsChanged():
                self._has_settings = True
                self._wake_streams()
            case ConnectionTerminated():
                self._end(None)

    def _begin_request(self, stream_id: int, headers: list[tuple[bytes, bytes]]) -> None:
        if self._is_draining or len(self._streams) >= MAX_STREAMS_PER_CONNECTION:
            self._budget.count_refusal()
            self._reset(stream_id, ErrorCodes.REFUSED_STREAM)
            return
        try:
            scope = build_scope(headers, self._addresses)
        except InvalidRequest:
            self._refuse(stream_id, 400, "invalid path\n")
            return
        if not is_grpc_request(scope):
            self._refuse(stream_id, 505, _TEXT)
            return
        self._times.used = self._loop.time()
        stream = self._streams[stream_id] = Http2Stream(stream_id, scope, self)
        stream.task = task = self._loop.create_task(stream.run(self._application))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._end_request(stream))
        self._requests += 1
        if self._requests >= MAX_REQUESTS_PER_CONNECTION:
            self.shut_down()

    def _refuse(self, stream_id: int, code: int, text: str) -> None:
        self._budget.count_refusal()
        headers = [
            (b":status", b"%d" % code),
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"x-content-type-options", b"nosniff"),
            (b"content-length", b"%d" % len(text)),
        ]
        with contextlib.suppress(StreamClosedError):
            self._h2.send_headers(stream_id, headers)
            if self._h2.local_flow_control_window(stream_id) >= len(text):
                self._h2.send_data(stream_id, text.encode(), end_stream=True)
        self._reset(stream_id, ErrorCodes.NO_ERROR)

    def _end_request(self, stream: Http2Stream) -> None:
        stream.finish()
        self._streams.pop(stream.stream_id, None)
        self._times.used = self._loop.time()
        self._close_if_drained()

    def _close_if_drained(self) -> None:
        if self._is_draining and not self._streams and not self._is_over:
            self._close(STALLED_STREAM_SECONDS)

    # -- StreamWriter --------------------------------------------------------------------------------------------

    def acknowledge(self, stream_id: int, size: int) -> None:
        if size and not self._is_over:
            self._h2.acknowledge_received_data(size, stream_id)
            self._flush()

    def send_headers(self, stream_id: int, headers: Headers, *, is_last: bool) -> None:
        if not self._is_over:
            self._h2.send_headers(stream_id, list(headers), end_stream=is_last)
            self._flush()

    def send_data(self, stream_id: int, data: memoryview) -> int:
        if self._is_over or self._is_write_paused:
            return 0
        room = min(self._h2.local_flow_control_window(stream_id), self._h2.max_outbound_frame_size)
        size = max(0, min(room, len(data)))
        if size:
            self._h2.send_data(stream_id, bytes(data[:size]))
            self._budget.count_sent_data()
            self._flush()
        return size

    def end(self, stream_id: int) -> None:
        if not self._is_over:
            self._h2.end_stream(stream_id)
            self._flush()

    def reset(self, stream_id: int, *, is_error: bool) -> None:
        if not self._is_over:
            self._reset(stream_id, ErrorCodes.INTERNAL_ERROR if is_error else ErrorCodes.NO_ERROR)
            self._flush()

    # ------------------------------------------------------------------------------------------------------------

    def _reset(self, stream_id: int, code: ErrorCodes) -> None:
        with contextlib.suppress(StreamClosedError):  # by the client, in the same bytes
            self._h2.reset_stream(stream_id, code)

    def _wake_streams(self) -> None:
        for stream in self._streams.values():
            stream.wake()

    def _flush(self) -> None:
        if (data := self._h2.data_to_send()) and not self._transport.is_closing():
            self._transport.write(data)

    def _end(self, code: ErrorCodes | None) -> None:
        """Close the connection; `code` is that of the GOAWAY, None if it was sent or received before."""
        if self._is_over:
            return
        if code is not None:
            self._h2.close_connection(code)
        self._flush()
        self._close(LAST_WORDS_SECONDS)

    def _close(self, write_seconds: float) -> None:
        self._is_over, self._times.closes = True, self._loop.time() + write_seconds
        self._transport.close()

    def _check_times(self) -> None:
        now, times = self._loop.time(), self._times
        self._timer = self._loop.call_later(CHECK_SECONDS, self._check_times)
        has_begun = self._has_settings or now - times.opened <= HANDSHAKE_SECONDS
        is_slow = times.headers_begun and now - times.headers_begun > HEADER_SECONDS
        is_gone = times.pinged and now - times.pinged > PING_SECONDS
        is_stuck = self._is_over and now > times.closes
        if not has_begun or is_slow or is_gone or is_stuck:
            self._transport.abort()
        elif self._is_over:
            return
        elif not self._streams and now - times.used > (IDLE_SECONDS if self._requests else HEADER_SECONDS):
            self.shut_down()
        elif self._streams and not times.pinged and now - times.received > SILENCE_SECONDS:
            times.pinged = now
            self._h2.ping(b"argosy!!")
            self._flush()
