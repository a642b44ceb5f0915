from __future__ import annotations

import pytest

from argosy.features.serve.http2.preface import PREFACE, has_preface


@pytest.mark.parametrize(("data", "expected"), [
    (PREFACE, True), (PREFACE + b"\0", True), (b"", None), (b"P", None), (b"PRI ", None), (PREFACE[:-1], None),
    (b"PO", False), (b"POST / HTTP/1.1\r\n", False), (b"PRI / HTTP/1.1\r\n", False), (b"GET", False),
])  # fmt: skip
def test_the_first_bytes_of_a_connection_may_not_tell_its_protocol(data: bytes, expected: bool | None) -> None:
    assert has_preface(data) is expected
