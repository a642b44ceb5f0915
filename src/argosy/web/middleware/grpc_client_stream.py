"""The messages of a client stream, as the body of a REST request: a JSON document per line.

In: chunks with frames of messages. Out: ASGI events with lines, as the REST request asks for them, so that it can check
a permission after the first. Never: reads ahead; a first message that is larger than a query needs to be.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any, Final

import orjson

from argosy.web.grpc.call_status import CallError, StatusCode
from argosy.web.grpc.codec_threads import CodecThreads
from argosy.web.grpc.message_codec import decode_message
from argosy.web.grpc.message_frames import MAX_STREAM_FRAMES, FrameSplitter
from argosy.web.grpc.service_table import Method

Event = MutableMapping[str, Any]
MAX_FIRST_MESSAGE_BYTES: Final = 64 << 10


class ClientStream:
    """The stream of a signed-in caller."""

    def __init__(
        self,
        method: Method,
        chunks: AsyncIterator[bytes],
        receive: Callable[[], Awaitable[Event]],
        threads: CodecThreads,
        *,
        encoding: str,
        max_bytes: int,
    ) -> None:
        self._method, self._chunks, self._receive, self._threads = method, chunks, receive, threads
        self._splitter = FrameSplitter(encoding, MAX_STREAM_FRAMES, MAX_FIRST_MESSAGE_BYTES)
        self._max_bytes = max_bytes
        self._received_bytes = 0
        self._has_message = self._has_ended = False
        self.error: Exception | None = None  # why the body of the REST request is not complete

    async def receive_event(self) -> Event:
        """Return the next event of the REST request. After an error, the client is gone for that request."""
        if self._has_ended:
            return await self._receive()
        try:
            return await self._receive_lines()
        except Exception as error:
            self.error, self._has_ended = error, True
            return {"type": "http.disconnect"}

    async def _receive_lines(self) -> Event:
        async for chunk in self._chunks:
            self._received_bytes += len(chunk)
            if self._received_bytes > self._max_bytes:
                problem = f"the messages are larger than {self._max_bytes} bytes"
                raise CallError(StatusCode.RESOURCE_EXHAUSTED, problem)
            messages = self._splitter.feed(chunk)
            if not messages:
                continue
            self._has_message = True
            size = sum(map(len, messages))
            lines = await self._threads.run(partial(self._decode, messages), size, is_signed_in=True)
            return {"type": "http.request", "body": lines, "more_body": True}
        self._splitter.finish()
        if not self._has_message:
            problem = f"cardinality violation: {self._method.path} received no request message"
            raise CallError(StatusCode.INTERNAL, problem)
        self._has_ended = True
        return {"type": "http.request", "body": b"", "more_body": False}

    def _decode(self, messages: list[bytes]) -> bytes:
        documents = (decode_message(self._method.request, message) for message in messages)
        return b"".join(orjson.dumps(document) + b"\n" for document in documents)
