"""Limits of the URL length, the headers and the declared body size: exactly the limit is accepted, more is not."""

from __future__ import annotations

import pytest

from argosy.web.request_limits import (
    MAX_HEADER_BYTES,
    MAX_HEADERS,
    MAX_URL_BYTES,
    RequestLimitExceeded,
    check_content_length,
    check_request_head,
)


def test_url_over_the_limit_is_rejected_with_414() -> None:
    check_request_head(b"/" * (MAX_URL_BYTES - 10), b"x" * 10, [])
    with pytest.raises(RequestLimitExceeded, match=f"longer than {MAX_URL_BYTES} bytes") as raised:
        check_request_head(b"/" * (MAX_URL_BYTES - 10), b"x" * 11, [])
    assert raised.value.code == 414


@pytest.mark.parametrize(
    ("headers", "more"),
    [([(b"a", b"b")] * MAX_HEADERS, (b"a", b"b")), ([(b"a", b"b" * (MAX_HEADER_BYTES - 1))], (b"", b"b"))],
)
def test_headers_over_the_limits_are_rejected_with_431(
    headers: list[tuple[bytes, bytes]], more: tuple[bytes, bytes]
) -> None:
    check_request_head(b"/", b"", headers)
    with pytest.raises(RequestLimitExceeded) as raised:
        check_request_head(b"/", b"", [*headers, more])
    assert raised.value.code == 431


def test_body_limit_checks_the_declared_content_length() -> None:
    check_content_length("", 10)
    check_content_length("10", 10)
    for declared, code in (("11", 413), ("9" * 400, 413), ("-1", 400), ("1e3", 400), ("٣", 400)):
        with pytest.raises(RequestLimitExceeded) as raised:
            check_content_length(declared, 10)
        assert raised.value.code == code
