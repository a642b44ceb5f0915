"""Size and seed of the proofs: short and always the same in `make test`, in full and random in `make prove`.

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

from support.failure_report import record_seed
from support.proof_scale import is_full, scale


@pytest.fixture
def size() -> Callable[[int], int]:
    """How many of `full` to do in this run."""
    return lambda full: max(1, round(full * scale()))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """A random source for each test: a fixed seed in short runs, so that every change is judged by the same cases; a
    random one in full runs, which look for new cases. A failure prints the seed."""
    chosen = random.SystemRandom().randrange(2**32) if is_full() else crc32(request.node.name.encode())
    seed = int(os.environ.get("ARGOSY_PROOF_SEED") or chosen)
    record_seed(request.node, f"ARGOSY_PROOF_SEED={seed}")
    return random.Random(seed)


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """A directory in memory where there is one: for what does not rest on a real disk."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="argosy-proof-", dir=parent))
    yield path
    shutil.rmtree(path, ignore_errors=True)
