"""Hostile YAML: every bomb gives a value or a typed error quickly. The alarm only catches hangs."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.errors import LimitError, ManifestError, UserError
from argosy.kube.objects import YamlDialect, read_manifests, read_yaml_documents
from support.counted_calls import calls_of
from support.deadlines import HANG_SECONDS
from support.tiers import IN_TEST_ALL

MILLION = 1_000_000


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    def hang(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"still busy after {HANG_SECONDS:g} s")

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(int(HANG_SECONDS))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _tower(step: str, first: str, floors: int) -> str:
    """Nested anchors: each level refers to the level below nine times."""
    steps = (step.replace("X", ",".join([f"*a{floor}"] * 9)) for floor in range(floors - 1))
    return f"a0: &a0 {first}\n" + "".join(f"a{floor}: &a{floor} {text}\n" for floor, text in enumerate(steps, start=1))


REFUSED: dict[str, str] = {
    "deep lists": "[" * 200_000,
    "deep mappings": "{a: " * 200_000,
    "deep dashes": "- " * 200_000,
    "deep questions": "? " * 200_000,
    "deep blocks": "".join(" " * depth + "a:\n" for depth in range(2_000)),
    "billion laughs": _tower("[X]", "[x,x,x,x,x,x,x,x,x]", 12),
    "billion mappings": _tower("{b: [X]}", "{x: 1}", 12),
    "wide merges": "a: &a {" + ",".join(f"k{n}: {n}" for n in range(2_000)) + "}\n"
    + "".join(f"m{n}: {{<<: *a}}\n" for n in range(2_000)),
    "many merges": "a: &a {b: 1}\nc: {" + "<<: *a," * 90_000 + "}",
    "one long text, many times": f"a: &a '{'x' * MILLION}'\nb: [" + "*a," * 100_000 + "]",
    "one long key, many times": f"a: &a {{? {'x' * MILLION} : 1}}\nb: [" + "*a," * 100_000 + "]",
    "towers of anchors": "a0: &a0 {b: 1}\n" + "".join(f"a{n}: &a{n} {{b: *a{n - 1}}}\n" for n in range(1, 500)),
    "documents": "---\n" * MILLION,
    "values": "[" + "a," * MILLION + "]",
    "bytes": "a" * (11 * 1024 * 1024),
    "NUL": "a: \0",
    "surrogate": "a: \ud800",
    "escaped surrogate": 'a: "\\ud800"',
    "self": "a: &a {b: *a}",
    "deep JSON": '{"a":' * 100_000,
    "tags": "!a " * 100_000,
    "anchors": "&a " * 100_000,
    "colons": ": " * MILLION,
}  # fmt: skip

READ: dict[str, str] = {
    "a million digits": "a: " + "9" * MILLION,
    "a million hex digits": "a: 0x" + "f" * MILLION,
    "a million decimals": "a: 0." + "1" * MILLION,
    "a huge exponent": "a: 1e" + "9" * MILLION,
    "a million underscores": "a: 1" + "_" * MILLION,
    "an endless fraction of a second": "a: 2020-01-01T00:00:00." + "1" * MILLION + "Z",
    "an impossible date": "a: 2020-13-45",
    "empty lines": "a: b" + "\n" * MILLION,
    "folded lines": "a: >\n" + " x\n  y\n" * 100_000,
    "escapes": 'a: "' + "\\x41" * MILLION + '"',
    "comments": "#\n" * MILLION,
    "quotes": "'" * MILLION,
    "small merges": _tower("{<<: [X]}", "{x: 1}", 14),
}


LARGE = ("values", "many merges", "wide merges", "billion mappings", "folded lines", "escapes")


def rows(names: Iterable[str]) -> list[Any]:
    """Test each name with one dialect; the slow ones run with the other dialects only in `make test-all`."""
    first, *others = YamlDialect
    return [
        *((name, first) for name in names),
        *(
            pytest.param(name, dialect, marks=IN_TEST_ALL if name in LARGE else ())
            for name in names
            for dialect in others
        ),
    ]


@pytest.mark.parametrize(("name", "profile"), rows(REFUSED))
def test_yaml_bomb_is_refused_with_a_typed_error_that_names_the_file(name: str, profile: YamlDialect) -> None:
    with pytest.raises((LimitError, ManifestError)) as caught:
        read_yaml_documents(REFUSED[name], dialect=profile, where="bomb.yaml")
    assert caught.value.where == "bomb.yaml"
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(("name", "profile"), rows(READ))
def test_harmless_extreme_yaml_is_read(name: str, profile: YamlDialect) -> None:
    assert len(read_yaml_documents(READ[name], dialect=profile)) <= 1


def test_two_hundred_thousand_levels_are_refused_with_few_calls() -> None:
    def refused() -> None:
        with pytest.raises(LimitError):
            read_yaml_documents("[" * 200_000)

    assert calls_of(refused) < 5_000


SIGNS = [*"[]{},:-?&*!|>'\"%@`#ab1 \n\t~<", "<<: ", "*a", "&a ", "---\n", "\n  ", "!!int "]
pieces = st.lists(st.sampled_from(SIGNS))


@given(pieces, st.sampled_from(YamlDialect), st.booleans())
def test_any_text_gives_values_or_a_typed_error(parts: list[str], profile: YamlDialect, strict: bool) -> None:
    text = "".join(parts)
    for read in (read_yaml_documents, read_manifests):
        try:
            read(text, dialect=profile, strict=strict)
        except UserError as error:
            assert error.message


@given(st.binary(max_size=60))
def test_any_bytes_give_values_or_a_typed_error(data: bytes) -> None:
    try:
        read_yaml_documents(data)
    except UserError as error:
        assert error.message
