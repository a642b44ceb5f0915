"""Base64 with the URL alphabet, without padding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.objects.base64url import decode_base64url, encode_base64url


@given(st.binary())
def test_decoding_reverses_encoding(data: bytes) -> None:
    assert decode_base64url(encode_base64url(data)) == data


@pytest.mark.parametrize("text", ["Zm9v\n", "Zm9v!", "Zm8=", "Zm9", "Z", "+/+/", "ä"])
def test_second_spelling_of_the_same_bytes_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_base64url(text)
