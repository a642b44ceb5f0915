"""Size and seed of the proofs: short and always the same in `make test`, in full and by chance in `make prove`.

ARGOSY_PROOF_SCALE: 1 is full, 0.05 the default. ARGOSY_PROOF_SEED: the seed of a run to repeat.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pytest

IN_FULL = 1.0


def scale() -> float:
    return float(os.environ.get("ARGOSY_PROOF_SCALE", "0.05"))


@pytest.fixture
def size() -> Callable[[int], int]:
    """How many of `full` to do in this run."""
    return lambda full: max(1, round(full * scale()))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Chance of its own for each test. A change is judged by the same cases as the one before it; new ones are looked
    for in full runs, whose seeds are printed."""
    chosen = random.SystemRandom().randrange(2**32) if scale() >= IN_FULL else crc32(request.node.name.encode())
    seed = int(os.environ.get("ARGOSY_PROOF_SEED") or chosen)
    print(f"ARGOSY_PROOF_SEED={seed}")
    return random.Random(seed)


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """A directory in memory where there is one: for what does not rest on a real disk."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="argosy-proof-", dir=parent))
    yield path
    shutil.rmtree(path, ignore_errors=True)
