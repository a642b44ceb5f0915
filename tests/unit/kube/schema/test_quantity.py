"""Quantities are formatted as Kubernetes formats them, and compare as exact numbers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from argosy.errors import ManifestError
from argosy.kube.schema import quantity
from support.examples import examples

SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "e3", "E6", "e-3", "e0"]
texts = st.builds(
    lambda sign, whole, fraction, suffix: f"{sign}{whole}{fraction}{suffix}",
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**7).map(str),
    st.one_of(st.just(""), st.integers(0, 999).map(lambda digits: f".{digits}")),
    st.sampled_from(SUFFIXES),
)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0", "0"), ("00", "0"), ("0Mi", "0"), ("1", "1"), ("0.5", "500m"), ("1.5", "1500m"), ("1000m", "1"),
        ("100m", "100m"), ("1024Mi", "1Gi"), ("1Gi", "1Gi"), ("8Mi", "8Mi"), ("1.5Gi", "1536Mi"), ("0.5Gi", "512Mi"),
        ("1000", "1k"), ("1500", "1500"), ("10000", "10k"), ("1e3", "1e3"), ("1E3", "1E3"), ("10e3", "10e3"),
        ("1000e3", "1e6"), ("100e1", "1e3"), ("1e-3", "1e-3"), ("+5", "+5"), ("-1.5Gi", "-1536Mi"),
        ("1023Ki", "1023Ki"),
        ("0.1Ki", "102400m"), ("1.500", "1.500"), ("0.0000000001", "1n"),
        ("100000000000000000000Ki", "9223372036854775807"),
        ("5000000000", "5G"), ("12.G", "12.G"), ("1000000n", "1m"), ("1e999999999", "1e999999999"),
        (2, "2"), (0.25, "250m"),
    ],
)  # fmt: skip
def test_canonicalize_formats_quantity_like_the_api_server(text: str, printed: str) -> None:
    assert quantity.canonicalize(text) == printed


@pytest.mark.parametrize("text", ["", "abc", "1.5.5", "1Kb", "1 Gi", "١", "1Gi1x"])
def test_invalid_quantity_is_rejected_with_format_error(text: str) -> None:
    with pytest.raises(ManifestError) as caught:
        quantity.canonicalize(text)
    assert str(caught.value) == quantity.FORMAT_ERROR


@pytest.mark.parametrize("text", ["1K", "--1", "1mi", "1ee", "1e99999999999", "1Gi1", "1e"])
def test_invalid_suffix_is_rejected(text: str) -> None:
    with pytest.raises(ManifestError, match="unable to parse quantity's suffix"):
        quantity.parse(text)


@given(texts)
def test_canonicalize_is_idempotent(text: str) -> None:
    once = quantity.canonicalize(text)
    assert quantity.canonicalize(once) == once


@given(texts)
def test_canonicalize_keeps_the_value(text: str) -> None:
    assert quantity.parse(quantity.canonicalize(text)) == quantity.parse(text)


@given(texts, texts)
def test_compare_agrees_with_the_exact_numbers(left: str, right: str) -> None:
    one, other = quantity.parse(left), quantity.parse(right)
    assert isinstance(one, Decimal)
    assert quantity.compare(left, right) == (one > other) - (one < other)
    assert quantity.compare(left, right) == -quantity.compare(right, left)


@settings(max_examples=examples())
@given(texts, texts)
def test_add_is_exact(left: str, right: str) -> None:
    expected = Fraction(quantity.parse(left)) + Fraction(quantity.parse(right))
    assume(abs(expected) < 2**63)  # larger values with a binary suffix are capped
    assert Fraction(quantity.parse(quantity.add(left, right))) == expected


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [("1Gi", "512Mi", "1536Mi"), ("500m", "500m", "1"), ("0", "1Gi", "1Gi"), ("1", "-1", "0")],
)
def test_add_formats_the_sum_like_the_left_operand(left: str, right: str, total: str) -> None:
    assert quantity.add(left, right) == total
