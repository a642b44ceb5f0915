"""Resident memory of this process."""

from __future__ import annotations

import resource
import sys

import pytest

from argosy.observability.process_memory import read_resident_bytes

BLOCK_BYTES = 64 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="other systems report only the maximum")
def test_resident_memory_is_that_of_now_and_not_the_maximum() -> None:
    block = b"x" * BLOCK_BYTES
    assert read_resident_bytes() > len(block)
    del block
    assert read_resident_bytes() < resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - BLOCK_BYTES // 2
