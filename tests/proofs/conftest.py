"""Size and seed of the proofs: small with fixed seeds in `make test`, full and random in `make prove`.

ARGOSY_PROOF_SCALE: 1 is full; the default is 0.05, as in `make test-all`, and a fifth of that in `make test`.
ARGOSY_PROOF_SEED: the seed of a run to repeat.
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
from support.proof_scale import VARIABLE, is_full, scale

IN_MAKE_TEST = 0.2  # of a short run: enough to show that a proof works and finds what it looks for
_SEED_OF_MODULE = pytest.StashKey[int]()


@pytest.fixture(scope="session")
def size(request: pytest.FixtureRequest) -> Callable[..., int]:
    """Scales a count to this run; `test` is the count in `make test`, if a hundredth of `full` does not fit there."""
    is_smallest = request.config.getoption("--tier") == "test" and VARIABLE not in os.environ

    def sized(full: int, *, test: int | None = None) -> int:
        if is_smallest and test is not None:
            return test
        return max(1, round(full * scale() * (IN_MAKE_TEST if is_smallest else 1)))

    return sized


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """A random source per test: a fixed seed in short runs, so that every change is tested with the same cases; a
    random seed in full runs, which search for new cases. A failure prints the seed."""
    module = request.node.getparent(pytest.Module)
    seed = module.stash.get(_SEED_OF_MODULE, None) or chosen_seed(request.node.name)
    record_seed(request.node, f"ARGOSY_PROOF_SEED={seed}")
    return random.Random(seed)


@pytest.fixture(scope="module")
def module_rng(request: pytest.FixtureRequest) -> random.Random:
    """The same for data shared by all tests of a file. Each of these tests prints the seed."""
    seed = request.node.stash[_SEED_OF_MODULE] = chosen_seed(request.node.name)
    for item in request.session.items:
        if item.getparent(pytest.Module) is request.node:
            record_seed(item, f"ARGOSY_PROOF_SEED={seed}")
    return random.Random(seed)


def chosen_seed(name: str) -> int:
    chosen = random.SystemRandom().randrange(1, 2**32) if is_full() else crc32(name.encode())
    seed = os.environ.get("ARGOSY_PROOF_SEED") or str(chosen)
    if not seed.isdecimal():
        pytest.fail(f"ARGOSY_PROOF_SEED must be a whole number, not {seed!r}", pytrace=False)
    return int(seed)


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """A directory in memory if available, for tests that do not depend on a real disk."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="argosy-proof-", dir=parent))
    yield path
    shutil.rmtree(path, ignore_errors=True)
