"""A client of gRPC-Web that builds and reads frames by itself; only the messages in them use the codec of the server.

In: a port, a method, a document or bytes. Out: messages, status and headers. Never: retries.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from argosy.web.grpc.message_codec import decode_message, encode_message
from argosy.web.grpc.service_table import find_method
from support.page_site import Client

MEDIA = "application/grpc-web+proto"


@dataclass(frozen=True)
class Reply:
    http_code: int
    headers: Mapping[str, str]
    messages: list[bytes] = field(repr=False)
    trailers: Mapping[str, str]
    method: str

    @property
    def status(self) -> int:
        """The status of the trailers; if the headers have one, it must be the same."""
        status = self.trailers["grpc-status"]
        assert self.headers.get("grpc-status", status) == status
        return int(status)

    @property
    def message(self) -> str:
        return unquote(self.trailers.get("grpc-message", ""))

    def documents(self) -> list[Any]:
        method = find_method(self.method)
        assert method is not None
        return [decode_message(method.response, data) for data in self.messages]

    def document(self) -> Any:
        assert self.status == 0, (self.status, self.message)
        (document,) = self.documents()
        return document


def frame(data: bytes, flag: int = 0) -> bytes:
    return struct.pack(">BI", flag, len(data)) + data


def encode_request(method: str, document: Any) -> bytes:
    declared_method = find_method(method)
    assert declared_method is not None, method
    return encode_message(declared_method.request, document)


def read_frames(body: bytes) -> tuple[list[bytes], dict[str, str]]:
    """Split a response body; fail unless it ends with exactly one frame of trailers."""
    messages: list[bytes] = []
    trailers: dict[str, str] | None = None
    while body:
        assert trailers is None, "a frame after the trailers"
        flag, size = struct.unpack_from(">BI", body)
        data, body = body[5 : 5 + size], body[5 + size :]
        assert len(data) == size, "a truncated frame"
        if flag == 0x80:
            lines = data.decode().split("\r\n")
            trailers = dict(line.split(": ", 1) for line in lines if line)
        else:
            assert flag == 0
            messages.append(data)
    assert trailers is not None, "no trailers"
    return messages, trailers


def call_raw(client: Client, method: str, body: bytes, headers: Mapping[str, str] | None = None) -> Reply:
    answer = client.ask("POST", method, body, {"Content-Type": MEDIA, **(headers or {})})
    assert answer.headers["content-type"] == MEDIA, answer
    messages, trailers = read_frames(answer.body)
    return Reply(answer.code, answer.headers, messages, trailers, method)


def call(client: Client, who: str, method: str, document: Any = None, **headers: str) -> Reply:
    """Call as the argocd CLI does: with the token in the header `token`."""
    sent = _name_headers(headers)
    if who:
        sent["token"] = who
    return call_raw(client, method, frame(encode_request(method, document or {})), sent)


async def ask(client: Client, who: str, method: str, document: Any = None, **headers: str) -> Reply:
    """Call while the server runs in this event loop."""
    return await asyncio.to_thread(call, client, who, method, document, **headers)


async def ask_raw(client: Client, method: str, body: bytes, **headers: str) -> Reply:
    return await asyncio.to_thread(call_raw, client, method, body, _name_headers(headers))


def _name_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): text for name, text in headers.items()}
