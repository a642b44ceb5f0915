"""Status of a gRPC call: codes, and messages as header values.

In: a code and a message. Out: the headers that tell them. Never: a message with characters that a header cannot hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class StatusCode(IntEnum):
    OK = 0
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


@dataclass(frozen=True)
class CallStatus:
    code: int = StatusCode.OK  # any code of gRPC, as the REST API gives them too
    message: str = ""

    def build_headers(self) -> list[tuple[bytes, bytes]]:
        headers = [(b"grpc-status", b"%d" % self.code)]
        if self.message:
            headers.append((b"grpc-message", percent_encode(self.message)))
        return headers


class CallError(Exception):
    """The call ends with this status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.status = CallStatus(code, message)


def percent_encode(message: str) -> bytes:
    """gRPC: all bytes but printable ASCII, and the percent sign, are percent-encoded."""
    encoded = message.encode("utf-8", "replace")
    return b"".join(b"%c" % byte if 0x20 <= byte <= 0x7E and byte != 0x25 else b"%%%02X" % byte for byte in encoded)
