from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.features.serve.http2_refusal import PREFACE, Http2Refusal, has_preface

SETTINGS = b"\0\0\0\x04\0\0\0\0\0"
ACK = b"\0\0\0\x04\x01\0\0\0\0"


def frame(kind: int, payload: bytes = b"", stream: int = 0, flags: int = 0) -> bytes:
    return len(payload).to_bytes(3) + struct.pack(">BBI", kind, flags, stream) + payload


@pytest.mark.parametrize(("data", "expected"), [
    (PREFACE, True), (PREFACE + SETTINGS, True), (b"", None), (b"P", None), (b"PRI ", None), (PREFACE[:-1], None),
    (b"PO", False), (b"POST / HTTP/1.1\r\n", False), (b"PRI / HTTP/1.1\r\n", False), (b"GET", False),
])  # fmt: skip
def test_the_first_bytes_of_a_connection_may_not_tell_its_protocol(data: bytes, expected: bool | None) -> None:
    assert has_preface(data) is expected


def test_bytes_that_are_no_preface_close_the_connection() -> None:
    refusal = Http2Refusal()
    assert refusal.receive(b"x" * len(PREFACE)) == b""
    assert refusal.is_over
    assert refusal.receive(PREFACE) == b""


def test_settings_are_sent_and_acknowledged() -> None:
    assert Http2Refusal().receive(PREFACE + SETTINGS) == SETTINGS + ACK


def test_each_request_is_refused_with_http_1_1_required() -> None:
    refusal = Http2Refusal()
    refusal.receive(PREFACE + SETTINGS)
    assert refusal.receive(frame(1, b"headers", stream=1, flags=4)) == frame(3, b"\0\0\0\x0d", stream=1)
    assert refusal.receive(frame(1, b"headers", stream=3, flags=4)) == frame(3, b"\0\0\0\x0d", stream=3)
    assert not refusal.is_over


def test_a_ping_is_answered() -> None:
    refusal = Http2Refusal()
    refusal.receive(PREFACE)
    assert refusal.receive(frame(6, b"12345678")) == frame(6, b"12345678", flags=1)
    assert refusal.receive(frame(6, b"12345678", flags=1)) == b""


def test_bytes_may_arrive_one_by_one() -> None:
    refusal = Http2Refusal()
    data = PREFACE + SETTINGS + frame(1, b"headers", stream=1)
    answer = b"".join(refusal.receive(bytes([byte])) for byte in data)
    assert answer == SETTINGS + ACK + frame(3, b"\0\0\0\x0d", stream=1)


def test_a_broken_preface_a_large_frame_and_a_farewell_end_the_connection() -> None:
    for data in (b"PRI * HTTP/2.0\r\n\r\nXX", PREFACE + frame(0, b"x" * 20_000, 1), PREFACE + frame(7, b"\0" * 8)):
        refusal = Http2Refusal()
        refusal.receive(data)
        assert refusal.is_over
        assert refusal.receive(SETTINGS) == b""


def test_endless_frames_end_the_connection() -> None:
    refusal = Http2Refusal()
    refusal.receive(PREFACE + frame(8, b"\0\0\0\1") * 2000)
    assert refusal.is_over


@given(st.binary(max_size=300))
def test_any_bytes_after_the_preface_are_survived(data: bytes) -> None:
    assert Http2Refusal().receive(PREFACE + data).startswith(SETTINGS)
