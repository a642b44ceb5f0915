"""Request limits: sizes, concurrency and write rate.

In: sizes and counts. Out: nothing, or RequestLimitExceeded with the response code. Never: reads on after a refusal.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

MOST_ADDRESS: Final = 8 << 10
MOST_HEADERS: Final = 100
MOST_HEADER_BYTES: Final = 32 << 10
MOST_IN_FLIGHT: Final = 400  # k8s: max-requests-inflight
MOST_CHANGES: Final = 200  # k8s: max-mutating-requests-inflight
MOST_WAITING: Final = 100  # for a controller to finish a refresh
MOST_WAITING_EACH: Final = 20
MOST_STRANGERS: Final = 150  # unauthenticated logins and pushes
MOST_OF_A_PEER: Final = 64  # of them, per client address
MOST_STREAMS: Final = 1000
MOST_STREAMS_EACH: Final = 100
MAX_WRITES: Final = 600  # writes of text, and previews of other revisions, per account and project
WRITES_WINDOW_SECONDS: Final = 300.0
SECONDS: Final = 60.0  # until a response starts
STRANGERS_SECONDS: Final = 5.0  # in which an unauthenticated client must send its body


class TooMuch(Exception):
    """A limit is exceeded. `retry_after`: seconds until the same request may succeed."""

    def __init__(self, code: int, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.code, self.message, self.retry_after = code, message, retry_after


def check_head(address: bytes, query: bytes, headers: Iterable[tuple[bytes, bytes]]) -> None:
    if len(address) + len(query) > MOST_ADDRESS:
        raise TooMuch(414, f"the URL is longer than {MOST_ADDRESS} bytes")
    count = size = 0
    for name, value in headers:
        count += 1
        size += len(name) + len(value)
    if count > MOST_HEADERS or size > MOST_HEADER_BYTES:
        most = f"{MOST_HEADERS} headers, or {MOST_HEADER_BYTES} bytes of them"
        raise TooMuch(431, f"the request has more than {most}")


def check_length(declared: str, most: int) -> None:
    """Check the declared length before anything is read."""
    if declared and not (declared.isascii() and declared.isdigit()):
        raise TooMuch(400, "invalid Content-Length")
    if declared and int(declared[:20]) > most:
        raise TooMuch(413, f"the body is larger than {most} bytes")


async def read_body(chunks: AsyncIterator[bytes], most: int, seconds: float = SECONDS) -> bytes:
    """Read the body within the limit, regardless of the declared length."""
    try:
        async with asyncio.timeout(seconds):
            return await _read(chunks, most)
    except TimeoutError:
        raise TooMuch(408, f"the body did not arrive within {seconds:g} seconds") from None


async def _read(chunks: AsyncIterator[bytes], most: int) -> bytes:
    kept: list[bytes] = []
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise TooMuch(413, f"the body is larger than {most} bytes")
        kept.append(chunk)
    return b"".join(kept)


class Turnstile:
    """Concurrency limits: requests in flight, changes, waiting refreshes, streams."""

    def __init__(self) -> None:
        self.all = self.changes = self.streams = 0
        self._each: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._strangers: Counter[str] = Counter()

    @contextmanager
    def inside(self, *, is_change: bool) -> Iterator[None]:
        if self.all >= MOST_IN_FLIGHT or (is_change and self.changes >= MOST_CHANGES):
            raise TooMuch(429, "too many requests at once; try again in a second")
        self.all += 1
        self.changes += is_change
        try:
            yield
        finally:
            self.all -= 1
            self.changes -= is_change

    @contextmanager
    def waiting(self, who: str) -> Iterator[None]:
        """Limit requests that wait for a controller: without one, each waits for long."""
        with _counted(self._waiting, who, MOST_WAITING, MOST_WAITING_EACH, "refreshes"):
            yield

    @contextmanager
    def strangers(self, peer: str) -> Iterator[None]:
        """Limit changes without a session separately, so that they do not use up the slots of signed-in users."""
        with self.inside(is_change=False), _counted(self._strangers, peer, MOST_STRANGERS, MOST_OF_A_PEER, "requests"):
            yield

    def check_stream(self, who: str) -> None:
        if self.streams >= MOST_STREAMS or self._each[who] >= MOST_STREAMS_EACH:
            raise TooMuch(429, "too many open streams; close some first")

    @contextmanager
    def streaming(self, who: str) -> Iterator[None]:
        self.streams += 1
        self._each[who] += 1
        try:
            yield
        finally:
            self.streams -= 1
            self._each[who] -= 1
            if not self._each[who]:
                del self._each[who]


class WriteRate:
    """Limits how often an account may write text into the Applications of a project.

    A user who can write to an Application can compare what is redacted with what they wrote, and so guess its Secrets
    slowly. A preview of another revision counts as a write. Pushes to Git are not counted here.
    """

    def __init__(self, most: int = MAX_WRITES, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._times: dict[tuple[str, str], deque[float]] = {}

    def check(self, account: str, project: str) -> None:
        """Count a write, or raise RequestLimitExceeded."""
        now = self._clock()
        for key in [key for key, times in self._times.items() if not times or times[-1] <= now - WRITES_WINDOW_SECONDS]:
            del self._times[key]
        times = self._times.setdefault((account, project), deque())
        while times and times[0] <= now - WRITES_WINDOW_SECONDS:
            times.popleft()
        if len(times) >= self._most:
            minutes = WRITES_WINDOW_SECONDS / 60
            told = f"{account} wrote {self._most} times into project {project!r} within {minutes:g} minutes"
            seconds = math.ceil(times[0] + WRITES_WINDOW_SECONDS - now)
            previews = "previews of other revisions count as writes"
            raise TooMuch(429, f"{told}; try again in {seconds} s; {previews}", retry_after=seconds)
        times.append(now)


@contextmanager
def _counted(found: Counter[str], who: str, most: int, most_each: int, what: str) -> Iterator[None]:
    if found.total() >= most or found[who] >= most_each:
        raise TooMuch(429, f"too many {what} at once; try again in a moment")
    found[who] += 1
    try:
        yield
    finally:
        found[who] -= 1
        if not found[who]:
            del found[who]
