"""Generated kustomizations, built by argosy and by kubectl 1.32: the same manifests in the same order, or both fail.

ARGOSY_PROOF_SEED repeats a run. If kubectl crashes or prints unreadable output, any result of argosy is accepted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.kustomize.both_builds import KUBECTL, agree, ours, theirs
from support.kustomize.overlays import Overlays
from support.kustomize.trees import Files, written

pytestmark = [
    pytest.mark.tier("test", "prove"),
    pytest.mark.skipif(not KUBECTL.exists(), reason="kubectl 1.32 is not here: make install"),
]
FULL = 600
MOST_DIFFERENT = 0.04
"""What may differ at most, of trees made to find differences: docs/reference/kustomize.md names the known ones."""


def differences(rng: random.Random, count: int, folder: Path) -> Iterator[str]:
    for number in range(count):
        seed = rng.randrange(2**32)

        def texts(files: Files, seed: int = seed) -> dict[str, str]:
            style = random.Random(seed)
            return {path: written(documents, style) for path, documents in files.items()}

        tree_texts = texts(Overlays(random.Random(seed)).tree(lambda files: not isinstance(ours(texts(files)), str)))
        our_result, kubectls = ours(tree_texts), theirs(tree_texts, folder / str(number))
        if not agree(our_result, kubectls):
            errors = [result[-200:] for result in (our_result, kubectls) if isinstance(result, str)]
            yield f"the tree of seed {seed} differs: {errors or 'other manifests'}"


def test_generated_kustomizations_build_like_kubectl(
    rng: random.Random, size: Callable[..., int], memory_path: Path
) -> None:
    count = size(FULL, test=1)
    mismatches = list(differences(rng, count, memory_path))
    assert len(mismatches) <= max(min(3, count // 10), count * MOST_DIFFERENT), "\n".join(mismatches)


def test_proof_detects_missing_name_reference_updates(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch, memory_path: Path
) -> None:
    monkeypatch.setattr("argosy.gitops.render.kustomize.update_name_references", lambda *_: None)
    assert next(differences(rng, 60, memory_path), None)
