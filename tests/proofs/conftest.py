"""Size and seed of the proofs: short in `make test`, in full in `make prove`.

ARGOSY_PROOF_SCALE: 1 is full, 0.05 the default. ARGOSY_PROOF_SEED: the seed of a run to repeat.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def size() -> Callable[[int], int]:
    """How many of `full` to do in this run."""
    scale = float(os.environ.get("ARGOSY_PROOF_SCALE", "0.05"))
    return lambda full: max(1, round(full * scale))


@pytest.fixture
def rng() -> random.Random:
    seed = int(os.environ.get("ARGOSY_PROOF_SEED") or random.SystemRandom().randrange(2**32))
    print(f"ARGOSY_PROOF_SEED={seed}")
    return random.Random(seed)


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """A directory in memory where there is one: for what does not rest on a real disk."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="argosy-proof-", dir=parent))
    yield path
    shutil.rmtree(path, ignore_errors=True)
