"""Resident memory of this process."""

from __future__ import annotations

import subprocess
import sys

import pytest

BLOCK_BYTES = 64 << 20

# In a process of its own: the tests before have had more memory, or have left some that the block can use.
PROGRAM = f"""
import resource
from argosy.observability.process_memory import read_resident_bytes
block = b"x" * {BLOCK_BYTES}
print(read_resident_bytes())
del block
print(read_resident_bytes())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems report only the maximum")
def test_resident_memory_is_that_of_now_and_not_the_maximum() -> None:
    answer = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    with_block, without_block, maximum = map(int, answer.stdout.split())
    assert with_block > BLOCK_BYTES
    assert without_block < maximum - BLOCK_BYTES // 2
