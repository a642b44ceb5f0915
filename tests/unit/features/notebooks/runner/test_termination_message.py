"""Notebook results in a Pod's termination message: shortened step by step until they fit."""

from __future__ import annotations

import random
import string
from typing import Any

from argosy.features.notebooks.runner.termination_message import MAX_MESSAGE_BYTES, pack_results, unpack_results


def words(rng: random.Random, length: int) -> str:
    """Random text that does not compress."""
    return "".join(rng.choices(string.printable, k=length))


def results(count: int, length: int) -> dict[str, Any]:
    rng = random.Random(count)
    diffs = [{"cellIndex": number, "severity": "major", "diff": words(rng, length)} for number in range(count)]
    return {"status": "failed", "error": "cell 3 differs", "comparison": {"passed": False, "diffs": diffs}}


def test_small_results_are_packed_completely() -> None:
    small = results(3, 20)
    assert unpack_results(pack_results(small)) == small


def test_large_comparison_keeps_the_first_five_differences() -> None:
    large = results(60, 400)
    message = pack_results(large)
    assert len(message) <= MAX_MESSAGE_BYTES
    unpacked = unpack_results(message)
    assert unpacked is not None and unpacked["cut"] is True
    first_diffs = large["comparison"]["diffs"][:5]
    assert unpacked["comparison"] == {
        "passed": False,
        "diffs": [{**diff, "diff": diff["diff"][:120]} for diff in first_diffs],
    }


def test_smallest_message_keeps_only_status_and_error() -> None:
    unpacked = unpack_results(pack_results(results(60, 400), max_bytes=100))
    assert unpacked == {"status": "failed", "error": "cell 3 differs", "cut": True}


def test_results_with_an_empty_comparison_are_truncated() -> None:
    rng = random.Random(1)
    unpacked = unpack_results(
        pack_results({**results(0, 0), "findings": [{"message": words(rng, 400)} for _ in range(60)]})
    )
    assert unpacked is not None and unpacked["comparison"] == {"passed": False, "diffs": []}
    assert len(unpacked["findings"]) == 5
