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
from argosy.isolation import frames
from argosy.isolation.cpu_priority import LONG_SECONDS
from argosy.isolation.errors import ConfinedError, NotConfinedError, RefusedError, over_limit
from argosy.isolation.limits import Limits

_WINDOW = 256 << 10  # bytes of calls in flight to a worker: enough to keep it busy
_READ = 256 << 10
_CALLS_OF_A_LIFE = 1000
CPU_LIVES = 10  # a worker's own CPU limit is that of this many calls; it is replaced before the last of them


class Ending(StrEnum):
    """How a conversation ended."""

    COMPLETE = "complete"
    LATE = "late"
    HUNG_UP = "hung up"
    SPENT = "spent"  # the worker answered, but must not be used again
    FLOOD = "flood"  # the answer is larger than the limit
    ASTRAY = "astray"  # unexpected answer: the worker no longer runs our main loop


class Batch:
    """Calls of one function and their answers, in order."""

    __slots__ = ("_head", "_next", "_payloads", "_sizes", "_travelling", "answers", "first", "function", "limits")

    def __init__(self, function: str, payloads: Sequence[Any], limits: Limits) -> None:
        self.function = function
        self.limits = limits
        self.answers: list[Any] = [None] * len(payloads)
        self.first = 0
        self._payloads = payloads
        self._head = frames.pack_head(function, limits.cpu, limits.output)
        self.rewind()

    def rewind(self) -> None:
        """Send calls again that were in flight to a worker that has ended."""
        self._next = self.first
        self._sizes: dict[int, int] = {}
        self._travelling = 0

    def is_complete(self) -> bool:
        return self.first >= len(self._payloads)

    def more(self, serial: int) -> bytes:
        """Encode the next calls up to the window, numbered from `serial`. Invalid payloads get an error as answer."""
        packed: list[bytes] = []
        while self._next < len(self._payloads) and (self._travelling < _WINDOW or not self._sizes):
            index, self._next = self._next, self._next + 1
            payload = self._encode(index)
            if payload is None:
                self._skip_answered()
                continue
            self._sizes[index] = len(payload)
            self._travelling += len(payload)
            packed.append(frames.pack_call(serial + index, self._head, payload))
        return b"".join(packed)

    def answer(self, value: Any) -> None:
        """Record the answer or error of the first unanswered call."""
        self.answers[self.first] = value
        self._travelling -= self._sizes.pop(self.first, 0)
        self.first += 1
        self._skip_answered()

    def _skip_answered(self) -> None:
        # Calls before `_next` that are not in flight were refused before they were sent.
        while self.first < self._next and self.first not in self._sizes:
            self.first += 1

    def _encode(self, index: int) -> bytes | None:
        try:
            payload = orjson.dumps(self._payloads[index])
        except orjson.JSONEncodeError as problem:
            self.answers[index] = UserError(f"the input is not JSON: {problem}", where=self.function)
            return None
        if len(payload) > self.limits.input:
            self.answers[index] = over_limit("input", self.limits, self.function)
            return None
        return payload


class Worker:
    """A worker process and the socket to it. It handles one batch at a time."""

    def __init__(self, number: int, channel: socket.socket, *, generation: int, cpu: float) -> None:
        self.number = number
        self.generation = generation
        self._calls = 0
        self._busy = 0.0
        self._most_busy = cpu * (CPU_LIVES - 1)
        self.usable = True
        self.is_fresh = True
        self.has_priority = True
        self.tenant = ""
        self._loop = asyncio.get_running_loop()
        self._channel = channel
        self._inbox = frames.Inbox(1 << 20)
        self._unsent = memoryview(b"")
        self._is_writing = False
        self._serial = 0
        self._batch: Batch | None = None
        self._report: bytes | None = None
        self._ending: asyncio.Future[Ending] | None = None
        self._since = 0.0
        channel.setblocking(False)
        self._loop.add_reader(channel.fileno(), self._read)

    def is_worn(self) -> bool:
        """True if the worker should be replaced before the next call."""
        return not self.usable or not self.has_priority or self._calls >= _CALLS_OF_A_LIFE or self._is_out_of_time()

    def _is_out_of_time(self) -> bool:
        # A worker has one thread, so it used less CPU than wall time. The reserve is enough for one more call.
        return self._busy > self._most_busy

    async def ready(self, seconds: float) -> dict[str, Any] | None:
        """Wait for the worker's report of its confinement; None if it ended or took too long.

        Raises NotConfinedError if confinement is required but not available.
        """
        self._begin()
        timer = self._loop.call_later(seconds, self._end, Ending.LATE)
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

    async def converse(self, batch: Batch, on_long_call: Callable[[], None]) -> Ending:
        """Send the calls of a batch and record their answers. `on_long_call` is called once if a call takes long."""
        calls = batch.more(self._serial)
        if batch.is_complete():
            return Ending.COMPLETE
        self.is_fresh = self._calls == 0
        self._batch = batch
        self._inbox.limit = max(batch.limits.output, frames.SLACK) + frames.ANSWER_HEAD
        ending = self._begin()
        self._since = self._loop.time()
        self._timer = self._loop.call_later(batch.limits.wall, self._look_at_the_clock)
        self._long_timer = self._loop.call_later(LONG_SECONDS, self._notice_long_call, on_long_call)
        self._send(calls)
        try:
            return await ending
        finally:
            self._timer.cancel()
            self._long_timer.cancel()
            if not batch.is_complete():
                self.usable = False
            self._serial += len(batch.answers)
            self._batch = self._ending = None

    def close(self) -> None:
        """Close the socket; the caller kills the process."""
        self.usable = False
        self._end(Ending.HUNG_UP)
        if self._channel.fileno() >= 0 and not self._loop.is_closed():
            self._loop.remove_reader(self._channel.fileno())
            self._loop.remove_writer(self._channel.fileno())
        self._channel.close()

    def _begin(self) -> asyncio.Future[Ending]:
        self._ending = self._loop.create_future()
        if not self.usable:
            self._ending.set_result(Ending.HUNG_UP)
        return self._ending

    def _end(self, ending: Ending) -> None:
        if ending is not Ending.COMPLETE:
            self.usable = False
        if self._ending is not None and not self._ending.done():
            self._ending.set_result(ending)

    def _look_at_the_clock(self) -> None:
        batch = self._batch
        if batch is None:
            return
        self._read()  # a busy event loop may not have read an answer that came in time
        left = self._since + batch.limits.wall - self._loop.time()
        if left <= 0:
            self._end(Ending.LATE)
        else:
            self._timer = self._loop.call_later(left, self._look_at_the_clock)

    def _notice_long_call(self, on_long_call: Callable[[], None]) -> None:
        left = self._since + LONG_SECONDS - self._loop.time()
        if left <= 0:
            self.has_priority = False
            on_long_call()
        else:
            self._long_timer = self._loop.call_later(left, self._notice_long_call, on_long_call)

    def _send(self, data: bytes) -> None:
        if self._unsent:
            self._unsent = memoryview(bytes(self._unsent) + data)
            return
        self._unsent = memoryview(data)
        self._push()

    def _push(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[self._channel.send(self._unsent) :]
        except BlockingIOError:
            if not self._is_writing:
                self._loop.add_writer(self._channel.fileno(), self._push)
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
            data = self._channel.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._channel.fileno())
            self._end(Ending.HUNG_UP)
            return
        self._inbox.feed(data)
        try:
            for frame in self._inbox.frames():
                self._hear(frame)
        except frames.BadFrame:
            self._end(Ending.FLOOD)

    def _hear(self, frame: bytes) -> None:
        batch = self._batch
        if self._report is None and frame[:1] == frames.READY:
            self._report = frame[frames.ANSWER_HEAD :]
            self._end(Ending.COMPLETE)
            return
        if batch is None or batch.is_complete() or not frames.is_answer_to(frame, self._serial + batch.first):
            self._end(Ending.ASTRAY)
            return
        now = self._loop.time()
        self._busy += now - self._since
        self._since = now
        self._calls += 1
        batch.answer(_open(frame, batch))
        if frame[:1] == frames.NO_MEMORY:
            self._end(Ending.SPENT)
        elif batch.is_complete():
            self._end(Ending.COMPLETE)
        elif self._is_out_of_time():
            self._end(Ending.SPENT)
        elif calls := batch.more(self._serial):
            self._send(calls)
        elif batch.is_complete():  # the remaining calls were refused before they were sent
            self._end(Ending.COMPLETE)


def _open(frame: bytes, batch: Batch) -> Any:
    """Decode the value or the error of an answer."""
    kind, body = frame[:1], frame[frames.ANSWER_HEAD :]
    try:
        if kind == frames.DONE:
            return orjson.loads(body)
        if kind == frames.RAISED:
            return ConfinedError(body.decode("utf-8", "replace"), where="")
    except orjson.JSONDecodeError:
        return ConfinedError("the worker's answer is not JSON", where=batch.function)
    if kind == frames.NO_MEMORY:
        return over_limit("memory", batch.limits, batch.function)
    if kind == frames.TOO_LARGE:
        return over_limit("output", batch.limits, batch.function)
    if kind == frames.UNKNOWN:
        return RefusedError(body.decode("utf-8", "replace"))
    return ConfinedError("the worker broke the protocol", where=batch.function)
