"""The parent's connection to one confined worker: sends calls, receives answers, and enforces a deadline per answer.

In: a batch of calls. Out: the answer of each call, and how the conversation ended.
Never: waits longer than the wall limit for the next answer; holds more than a window of encoded calls.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import orjson

from argosy.errors import UserError
from argosy.isolation import message_frames
from argosy.isolation.cpu_priority import LONG_SECONDS
from argosy.isolation.errors import ConfinedError, NotConfinedError, RefusedError, build_limit_error
from argosy.isolation.limit_and_confinement_types import CallLimits

_WINDOW_BYTES = 256 << 10  # bytes of calls in flight to a worker: enough to keep it busy
_READ_BYTES = 256 << 10
_MAX_CALLS = 1000
CPU_LIMIT_CALLS = 10  # a worker's own CPU limit is that of this many calls; it is replaced before the last of them


class ConversationEnd(StrEnum):
    """How a conversation ended."""

    COMPLETE = "complete"
    TIMED_OUT = "late"
    HUNG_UP = "hung up"
    EXHAUSTED = "spent"  # the worker answered, but must not be used again
    ANSWER_TOO_LARGE = "flood"  # the answer is larger than the limit
    PROTOCOL_ERROR = "astray"  # unexpected answer: the worker no longer runs our main loop


class CallBatch:
    """Calls of one function and their answers, in order."""

    __slots__ = (
        "_bytes_in_flight",
        "_head",
        "_next",
        "_payloads",
        "_sizes_in_flight",
        "answers",
        "first_unanswered",
        "function",
        "limits",
    )

    def __init__(self, function: str, payloads: Sequence[Any], limits: CallLimits) -> None:
        self.function = function
        self.limits = limits
        self.answers: list[Any] = [None] * len(payloads)
        self.first_unanswered = 0
        self._payloads = payloads
        self._head = message_frames.pack_head(function, limits.cpu, limits.output)
        self.rewind()

    def rewind(self) -> None:
        """Send calls again that were in flight to a worker that has ended."""
        self._next = self.first_unanswered
        self._sizes_in_flight: dict[int, int] = {}
        self._bytes_in_flight = 0

    def is_complete(self) -> bool:
        return self.first_unanswered >= len(self._payloads)

    def encode_next(self, serial: int) -> bytes:
        """Encode the next calls up to the window, numbered from `serial`. Invalid payloads get an error as answer."""
        packed: list[bytes] = []
        while self._next < len(self._payloads) and (self._bytes_in_flight < _WINDOW_BYTES or not self._sizes_in_flight):
            index, self._next = self._next, self._next + 1
            payload = self._encode(index)
            if payload is None:
                self._skip_answered()
                continue
            self._sizes_in_flight[index] = len(payload)
            self._bytes_in_flight += len(payload)
            packed.append(message_frames.pack_call(serial + index, self._head, payload))
        return b"".join(packed)

    def record_answer(self, value: Any) -> None:
        """Record the answer or error of the first unanswered call."""
        self.answers[self.first_unanswered] = value
        self._bytes_in_flight -= self._sizes_in_flight.pop(self.first_unanswered, 0)
        self.first_unanswered += 1
        self._skip_answered()

    def _skip_answered(self) -> None:
        # Calls before `_next` that are not in flight were refused before they were sent.
        while self.first_unanswered < self._next and self.first_unanswered not in self._sizes_in_flight:
            self.first_unanswered += 1

    def _encode(self, index: int) -> bytes | None:
        try:
            payload = orjson.dumps(self._payloads[index])
        except orjson.JSONEncodeError as problem:
            self.answers[index] = UserError(f"the input is not JSON: {problem}", where=self.function)
            return None
        if len(payload) > self.limits.input:
            self.answers[index] = build_limit_error("input", self.limits, self.function)
            return None
        return payload


class ConfinedWorker:
    """A worker process and the socket to it. It handles one batch at a time."""

    def __init__(self, number: int, channel: socket.socket, *, generation: int, cpu: float) -> None:
        self.number = number
        self.generation = generation
        self._calls = 0
        self._busy_seconds = 0.0
        self._max_busy_seconds = cpu * (CPU_LIMIT_CALLS - 1)
        self.is_usable = True
        self.is_fresh = True
        self.has_priority = True
        self.tenant = ""
        self._loop = asyncio.get_running_loop()
        self._channel = channel
        self._inbox = message_frames.FrameBuffer(1 << 20)
        self._unsent = memoryview(b"")
        self._is_writing = False
        self._serial = 0
        self._batch: CallBatch | None = None
        self._report: bytes | None = None
        self._ending: asyncio.Future[ConversationEnd] | None = None
        self._answer_started_at = 0.0
        channel.setblocking(False)
        self._loop.add_reader(channel.fileno(), self._read)

    def is_worn(self) -> bool:
        """True if the worker should be replaced before the next call."""
        return (
            not self.is_usable or not self.has_priority or self._calls >= _MAX_CALLS or self._has_used_up_cpu_budget()
        )

    def _has_used_up_cpu_budget(self) -> bool:
        # A worker has one thread, so it used less CPU than wall time. The reserve is enough for one more call.
        return self._busy_seconds > self._max_busy_seconds

    async def wait_ready(self, seconds: float) -> dict[str, Any] | None:
        """Wait for the worker's report of its confinement; None if it ended or took too long.

        Raises NotConfinedError if confinement is required but not available.
        """
        self._start_conversation()
        timer = self._loop.call_later(seconds, self._end_conversation, ConversationEnd.TIMED_OUT)
        try:
            if self._report is None and self._ending is not None:
                await self._ending
        finally:
            timer.cancel()
            self._ending = None
        report: dict[str, Any] | None = None if self._report is None else orjson.loads(self._report)
        if report is not None and "refused" in report:
            raise NotConfinedError(report["refused"])
        return report

    async def run_batch(self, batch: CallBatch, on_long_call: Callable[[], None]) -> ConversationEnd:
        """Send the calls of a batch and record their answers. `on_long_call` is called once if a call takes long."""
        calls = batch.encode_next(self._serial)
        if batch.is_complete():
            return ConversationEnd.COMPLETE
        self.is_fresh = self._calls == 0
        self._batch = batch
        self._inbox.limit = (
            max(batch.limits.output, message_frames.MIN_ANSWER_LIMIT_BYTES) + message_frames.ANSWER_HEADER_BYTES
        )
        ending = self._start_conversation()
        self._answer_started_at = self._loop.time()
        self._timer = self._loop.call_later(batch.limits.wall, self._check_deadline)
        self._long_timer = self._loop.call_later(LONG_SECONDS, self._notice_long_call, on_long_call)
        self._send(calls)
        try:
            return await ending
        finally:
            self._timer.cancel()
            self._long_timer.cancel()
            if not batch.is_complete():
                self.is_usable = False
            self._serial += len(batch.answers)
            self._batch = self._ending = None

    def close(self) -> None:
        """Close the socket; the caller kills the process."""
        self.is_usable = False
        self._end_conversation(ConversationEnd.HUNG_UP)
        if self._channel.fileno() >= 0 and not self._loop.is_closed():
            self._loop.remove_reader(self._channel.fileno())
            self._loop.remove_writer(self._channel.fileno())
        self._channel.close()

    def _start_conversation(self) -> asyncio.Future[ConversationEnd]:
        self._ending = self._loop.create_future()
        if not self.is_usable:
            self._ending.set_result(ConversationEnd.HUNG_UP)
        return self._ending

    def _end_conversation(self, ending: ConversationEnd) -> None:
        if ending is not ConversationEnd.COMPLETE:
            self.is_usable = False
        if self._ending is not None and not self._ending.done():
            self._ending.set_result(ending)

    def _check_deadline(self) -> None:
        batch = self._batch
        if batch is None:
            return
        self._read()  # a busy event loop may not have read an answer that came in time
        seconds_left = self._answer_started_at + batch.limits.wall - self._loop.time()
        if seconds_left <= 0:
            self._end_conversation(ConversationEnd.TIMED_OUT)
        else:
            self._timer = self._loop.call_later(seconds_left, self._check_deadline)

    def _notice_long_call(self, on_long_call: Callable[[], None]) -> None:
        seconds_left = self._answer_started_at + LONG_SECONDS - self._loop.time()
        if seconds_left <= 0:
            self.has_priority = False
            on_long_call()
        else:
            self._long_timer = self._loop.call_later(seconds_left, self._notice_long_call, on_long_call)

    def _send(self, data: bytes) -> None:
        if self._unsent:
            self._unsent = memoryview(bytes(self._unsent) + data)
            return
        self._unsent = memoryview(data)
        self._flush()

    def _flush(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[self._channel.send(self._unsent) :]
        except BlockingIOError:
            if not self._is_writing:
                self._loop.add_writer(self._channel.fileno(), self._flush)
                self._is_writing = True
            return
        except OSError:
            self._unsent = memoryview(b"")  # the reader notices the end
        if self._is_writing:
            self._loop.remove_writer(self._channel.fileno())
            self._is_writing = False

    def _read(self) -> None:
        if self._channel.fileno() < 0:
            return
        try:
            data = self._channel.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._channel.fileno())
            self._end_conversation(ConversationEnd.HUNG_UP)
            return
        self._inbox.feed(data)
        try:
            for frame in self._inbox.read_frames():
                self._handle_frame(frame)
        except message_frames.FrameTooLarge:
            self._end_conversation(ConversationEnd.ANSWER_TOO_LARGE)

    def _handle_frame(self, frame: bytes) -> None:
        batch = self._batch
        if self._report is None and frame[:1] == message_frames.READY:
            self._report = frame[message_frames.ANSWER_HEADER_BYTES :]
            self._end_conversation(ConversationEnd.COMPLETE)
            return
        if (
            batch is None
            or batch.is_complete()
            or not message_frames.is_answer_to(frame, self._serial + batch.first_unanswered)
        ):
            self._end_conversation(ConversationEnd.PROTOCOL_ERROR)
            return
        now = self._loop.time()
        self._busy_seconds += now - self._answer_started_at
        self._answer_started_at = now
        self._calls += 1
        batch.record_answer(_decode_answer(frame, batch))
        if frame[:1] == message_frames.NO_MEMORY:
            self._end_conversation(ConversationEnd.EXHAUSTED)
        elif batch.is_complete():
            self._end_conversation(ConversationEnd.COMPLETE)
        elif self._has_used_up_cpu_budget():
            self._end_conversation(ConversationEnd.EXHAUSTED)
        elif calls := batch.encode_next(self._serial):
            self._send(calls)
        elif batch.is_complete():  # the remaining calls were refused before they were sent
            self._end_conversation(ConversationEnd.COMPLETE)


def _decode_answer(frame: bytes, batch: CallBatch) -> Any:
    """Decode the value or the error of an answer."""
    kind, body = frame[:1], frame[message_frames.ANSWER_HEADER_BYTES :]
    try:
        if kind == message_frames.DONE:
            return orjson.loads(body)
        if kind == message_frames.RAISED:
            return ConfinedError(body.decode("utf-8", "replace"), where="")
    except orjson.JSONDecodeError:
        return ConfinedError("the worker's answer is not JSON", where=batch.function)
    if kind == message_frames.NO_MEMORY:
        return build_limit_error("memory", batch.limits, batch.function)
    if kind == message_frames.TOO_LARGE:
        return build_limit_error("output", batch.limits, batch.function)
    if kind == message_frames.UNKNOWN:
        return RefusedError(body.decode("utf-8", "replace"))
    return ConfinedError("the worker broke the protocol", where=batch.function)
