from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.web.grpc.call_status import CallError, CallStatus, percent_encode
from argosy.web.grpc.message_frames import MAX_FRAMES, encode_frame, encode_trailers, split_frames


def refuse(body: bytes) -> CallStatus:
    with pytest.raises(CallError) as raised:
        split_frames(body)
    return raised.value.status


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_messages_survive_a_round_trip(messages: list[bytes]) -> None:
    assert split_frames(b"".join(map(encode_frame, messages))) == messages


def test_trailers_of_a_client_are_ignored() -> None:
    assert split_frames(encode_frame(b"a") + b"\x80\0\0\0\3a:b") == [b"a"]


def test_a_compressed_message_is_refused() -> None:
    status = refuse(b"\1\0\0\0\1a")
    assert (status.code, status.message) == (13, "grpc: compressed flag set with identity or empty encoding")
    with pytest.raises(CallError) as raised:
        split_frames(b"\1\0\0\0\1a", "gzip")
    assert raised.value.status.code == 12
    assert 'grpc-encoding "gzip"' in raised.value.status.message


@pytest.mark.parametrize(
    "body", [b"\0", b"\0\0\0\0", b"\0\0\0\0\2a", b"\0\xff\xff\xff\xff", b"\2\0\0\0\0", b"\x81\0\0\0\0", b"\0\0\0\0\0x"]
)
def test_malformed_frames_are_refused_with_the_code_of_grpc_go(body: bytes) -> None:
    status = refuse(body)
    assert status.code == 13
    assert "frame" in status.message


@pytest.mark.parametrize("frame", [encode_frame(b""), b"\x80\0\0\0\0"])
def test_endless_frames_are_refused(frame: bytes) -> None:
    assert len(split_frames(encode_frame(b"") + frame * (MAX_FRAMES - 1))) in (1, MAX_FRAMES)
    assert refuse(frame * (MAX_FRAMES + 1)).code == 8


@given(st.binary(max_size=60))
def test_any_body_gives_messages_or_a_status(body: bytes) -> None:
    try:
        split_frames(body)
    except CallError as error:
        assert error.status.code in (8, 12, 13)


def test_trailers_are_lines_of_a_frame_with_their_own_flag() -> None:
    data = encode_trailers(CallStatus(7, "permission denied"))
    flag, size = struct.unpack_from(">BI", data)
    assert (flag, size) == (0x80, len(data) - 5)
    assert data[5:] == b"grpc-status: 7\r\ngrpc-message: permission denied\r\n"
    assert encode_trailers(CallStatus())[5:] == b"grpc-status: 0\r\n"


def test_a_message_cannot_break_out_of_its_header() -> None:
    assert percent_encode("100% of\r\nset-cookie: ä") == b"100%25 of%0D%0Aset-cookie: %C3%A4"


@given(st.text())
def test_any_message_becomes_printable_ascii(text: str) -> None:
    encoded = percent_encode(text)
    assert all(0x20 <= byte <= 0x7E for byte in encoded)
