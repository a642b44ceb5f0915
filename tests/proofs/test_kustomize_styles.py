"""Overlays in common styles, intact and with random mistakes, built by argosy and by kubectl 1.32.

The mistakes are generated independently of argosy: both must accept the same overlays and build the same manifests.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.kustomize.both_builds import KUBECTL, agree, ours, theirs
from support.kustomize.noise import noisy
from support.kustomize.styles import Texts, cases

pytestmark = [
    pytest.mark.tier("test", "prove"),
    pytest.mark.skipif(not KUBECTL.exists(), reason="kubectl 1.32 is not here: make install"),
]
STYLES = cases()
FULL = 400
MOST_DIFFERENT = 0.04
"""Of texts with accidents in them: docs/reference/kustomize.md names what is known."""


def rows() -> Iterator[Any]:
    """All styles; `make test` has one per author, because kubectl is slow."""
    authors = set()
    for name in STYLES:
        author = name.partition(":")[0]
        yield pytest.param(name, marks=pytest.mark.tier("all", "prove")) if author in authors else name
        authors.add(author)


@pytest.mark.parametrize("name", list(rows()))
def test_overlay_in_a_common_style_builds_like_kubectl(name: str, memory_path: Path) -> None:
    assert agree(ours(STYLES[name]), theirs(STYLES[name], memory_path))


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("kubeflow: istio overlay with prefix", "update_name_references"),
        pytest.param(
            "argo: config maps, arguments and a service type",
            "transformer_pipeline.apply_strategic_merge_entry",
            marks=pytest.mark.tier("all", "prove"),
        ),
    ],
)
def test_proof_detects_a_skipped_build_step(
    name: str, step: str, monkeypatch: pytest.MonkeyPatch, memory_path: Path
) -> None:
    kubectls = theirs(STYLES[name], memory_path)
    assert agree(ours(STYLES[name]), kubectls)
    monkeypatch.setattr(f"argosy.gitops.render.kustomize.{step}", lambda *_: None)
    our_result = ours(STYLES[name])
    assert not isinstance(our_result, str), our_result
    assert not agree(our_result, kubectls)


def _hurt(seed: int) -> tuple[str, Texts]:
    chance = random.Random(seed)
    name = chance.choice(sorted(STYLES))
    return name, noisy(STYLES[name], chance)


@pytest.mark.tier("all", "prove")
def test_overlay_with_mistakes_builds_or_fails_like_kubectl(
    rng: random.Random, size: Callable[[int], int], memory_path: Path
) -> None:
    count = size(FULL)
    mismatches = []
    for number in range(count):
        seed = rng.randrange(2**32)
        name, texts = _hurt(seed)
        our_result, kubectls = ours(texts), theirs(texts, memory_path / str(number))
        if not agree(our_result, kubectls):
            errors = [result[-200:] for result in (our_result, kubectls) if isinstance(result, str)]
            mismatches.append(f"{name} of seed {seed} differs: {errors or 'other manifests'}")
    assert len(mismatches) <= max(min(3, count // 10), count * MOST_DIFFERENT), "\n".join(mismatches)
