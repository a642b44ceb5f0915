"""Request limits: sizes, concurrency and write rate.

In: sizes and counts. Out: nothing, or RequestLimitExceeded with the response code. Never: reads on after a refusal.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

MAX_URL_BYTES: Final = 8 << 10
MAX_HEADERS: Final = 100
MAX_HEADER_BYTES: Final = 32 << 10
MAX_REQUESTS_IN_FLIGHT: Final = 400  # k8s: max-requests-inflight
MAX_MUTATING_IN_FLIGHT: Final = 200  # k8s: max-mutating-requests-inflight
MAX_WAITING: Final = 100  # for a controller to finish a refresh
MAX_WAITING_PER_CALLER: Final = 20
MAX_ANONYMOUS: Final = 150  # unauthenticated logins and pushes
MAX_ANONYMOUS_PER_ADDRESS: Final = 64  # of them, per client address
MAX_DECODING: Final = 100  # large messages of gRPC calls that are decoded or wait for that
MAX_DECODING_PER_CALLER: Final = 20
MAX_UPLOADS: Final = 8  # of files to render: each is kept in memory, unpacked
MAX_UPLOADS_PER_CALLER: Final = 2
MAX_STREAMS: Final = 1000
MAX_STREAMS_PER_CALLER: Final = 100
MAX_WRITES: Final = 600  # writes of text, and previews of other revisions, per account and project
WRITES_WINDOW_SECONDS: Final = 300.0
REQUEST_TIMEOUT_SECONDS: Final = 60.0  # until a response starts
ANONYMOUS_BODY_TIMEOUT_SECONDS: Final = 5.0  # in which an unauthenticated client must send its body


class RequestLimitExceeded(Exception):
    """A limit is exceeded. `retry_after`: seconds until the same request may succeed."""

    def __init__(self, code: int, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.code, self.message, self.retry_after = code, message, retry_after


def check_request_head(path: bytes, query: bytes, headers: Iterable[tuple[bytes, bytes]]) -> None:
    if len(path) + len(query) > MAX_URL_BYTES:
        raise RequestLimitExceeded(414, f"the URL is longer than {MAX_URL_BYTES} bytes")
    count = size = 0
    for name, value in headers:
        count += 1
        size += len(name) + len(value)
    if count > MAX_HEADERS or size > MAX_HEADER_BYTES:
        limit = f"{MAX_HEADERS} headers, or {MAX_HEADER_BYTES} bytes of them"
        raise RequestLimitExceeded(431, f"the request has more than {limit}")


def check_content_length(declared: str, max_bytes: int) -> None:
    """Check the declared length before anything is read."""
    if declared and not (declared.isascii() and declared.isdigit()):
        raise RequestLimitExceeded(400, "invalid Content-Length")
    if declared and int(declared[:20]) > max_bytes:
        raise RequestLimitExceeded(413, f"the body is larger than {max_bytes} bytes")


class RequestBody:
    """The body of a request, within a limit regardless of the declared length. Its first line can be read before."""

    def __init__(
        self, chunks: AsyncIterator[bytes], max_bytes: int, timeout_seconds: float = REQUEST_TIMEOUT_SECONDS
    ) -> None:
        self._chunks, self._max_bytes, self._timeout_seconds = chunks, max_bytes, timeout_seconds
        self._received: list[bytes] = []
        self._size = 0

    async def read(self) -> bytes:
        """Return the whole body, also after its first line was read. Call this once."""
        async with self._limit_time():
            while await self._receive() is not None:
                pass
        body = b"".join(self._received)
        self._received.clear()  # the request may wait for long with its body parsed
        return body

    async def read_line(self, max_bytes: int) -> bytes:
        """Return the first line, or the whole body if it has no other. Read hardly more than that."""
        line = b"".join(self._received)
        async with self._limit_time():
            while b"\n" not in line and len(line) <= max_bytes and (chunk := await self._receive()) is not None:
                line += chunk
        line = line.partition(b"\n")[0]
        if len(line) > max_bytes:
            raise RequestLimitExceeded(413, f"the first line of the body is longer than {max_bytes} bytes")
        return line

    async def _receive(self) -> bytes | None:
        async for chunk in self._chunks:
            self._size += len(chunk)
            if self._size > self._max_bytes:
                raise RequestLimitExceeded(413, f"the body is larger than {self._max_bytes} bytes")
            self._received.append(chunk)
            return chunk
        return None

    @asynccontextmanager
    async def _limit_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                yield
        except TimeoutError:
            problem = f"the body did not arrive within {self._timeout_seconds:g} seconds"
            raise RequestLimitExceeded(408, problem) from None


async def read_body(
    chunks: AsyncIterator[bytes], max_bytes: int, timeout_seconds: float = REQUEST_TIMEOUT_SECONDS
) -> bytes:
    """Read the body within the limit, regardless of the declared length."""
    return await RequestBody(chunks, max_bytes, timeout_seconds).read()


class ConcurrencyLimits:
    """Concurrency limits: requests in flight, changes, waiting refreshes, streams."""

    def __init__(self) -> None:
        self.in_flight = self.mutating = self.streams = 0
        self._streams_by_caller: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._anonymous: Counter[str] = Counter()
        self._decoding: Counter[str] = Counter()
        self._uploads: Counter[str] = Counter()

    @contextmanager
    def limit_request(self, *, is_change: bool) -> Iterator[None]:
        if self.in_flight >= MAX_REQUESTS_IN_FLIGHT or (is_change and self.mutating >= MAX_MUTATING_IN_FLIGHT):
            raise RequestLimitExceeded(429, "too many requests at once; try again in a second")
        self.in_flight += 1
        self.mutating += is_change
        try:
            yield
        finally:
            self.in_flight -= 1
            self.mutating -= is_change

    @contextmanager
    def limit_waiting(self, caller: str) -> Iterator[None]:
        """Limit requests that wait for a controller: without one, each waits for long."""
        with _limit_count(self._waiting, caller, MAX_WAITING, MAX_WAITING_PER_CALLER, "refreshes"):
            yield

    @contextmanager
    def limit_decoding(self, caller: str) -> Iterator[None]:
        """Limit large messages per caller: they are decoded by few threads, one after the other."""
        with _limit_count(self._decoding, caller, MAX_DECODING, MAX_DECODING_PER_CALLER, "large messages"):
            yield

    @contextmanager
    def limit_upload(self, caller: str) -> Iterator[None]:
        with _limit_count(self._uploads, caller, MAX_UPLOADS, MAX_UPLOADS_PER_CALLER, "uploads"):
            yield

    @contextmanager
    def limit_anonymous(self, peer: str) -> Iterator[None]:
        """Limit changes without a session separately, so that they do not use up the slots of signed-in users."""
        with (
            self.limit_request(is_change=False),
            _limit_count(self._anonymous, peer, MAX_ANONYMOUS, MAX_ANONYMOUS_PER_ADDRESS, "requests"),
        ):
            yield

    def check_stream_limit(self, caller: str) -> None:
        if self.streams >= MAX_STREAMS or self._streams_by_caller[caller] >= MAX_STREAMS_PER_CALLER:
            raise RequestLimitExceeded(429, "too many open streams; close some first")

    @contextmanager
    def limit_stream(self, caller: str) -> Iterator[None]:
        self.streams += 1
        self._streams_by_caller[caller] += 1
        try:
            yield
        finally:
            self.streams -= 1
            self._streams_by_caller[caller] -= 1
            if not self._streams_by_caller[caller]:
                del self._streams_by_caller[caller]


class WriteRateLimiter:
    """Limits how often an account may write text into the Applications of a project.

    A user who can write to an Application can compare what is redacted with what they wrote, and so guess its Secrets
    slowly. A preview of another revision counts as a write. Pushes to Git are not counted here.
    """

    def __init__(self, max_writes: int = MAX_WRITES, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_writes, self._clock = max_writes, clock
        self._times: dict[tuple[str, str], deque[float]] = {}

    def count_write(self, account: str, project: str) -> None:
        """Count a write, or raise RequestLimitExceeded."""
        now = self._clock()
        for key in [key for key, times in self._times.items() if not times or times[-1] <= now - WRITES_WINDOW_SECONDS]:
            del self._times[key]
        times = self._times.setdefault((account, project), deque())
        while times and times[0] <= now - WRITES_WINDOW_SECONDS:
            times.popleft()
        if len(times) >= self._max_writes:
            minutes = WRITES_WINDOW_SECONDS / 60
            problem = f"{account} wrote {self._max_writes} times into project {project!r} within {minutes:g} minutes"
            seconds = math.ceil(times[0] + WRITES_WINDOW_SECONDS - now)
            previews = "previews of other revisions count as writes"
            raise RequestLimitExceeded(429, f"{problem}; try again in {seconds} s; {previews}", retry_after=seconds)
        times.append(now)


@contextmanager
def _limit_count(counts: Counter[str], caller: str, maximum: int, maximum_per_caller: int, noun: str) -> Iterator[None]:
    if counts.total() >= maximum or counts[caller] >= maximum_per_caller:
        raise RequestLimitExceeded(429, f"too many {noun} at once; try again in a moment")
    counts[caller] += 1
    try:
        yield
    finally:
        counts[caller] -= 1
        if not counts[caller]:
            del counts[caller]
