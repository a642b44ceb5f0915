"""Argo CD's own diff test cases: argosy reports a difference exactly where Argo CD does.

The cases are next to the checkout, not in it; without them these tests are skipped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from argosy.gitops.diff import DiffOptions, compare_manifests
from argosy.kube.objects import key_of, read_yaml

PAIRS = Path(__file__).parents[3] / "shared" / "data" / "argocd" / "diff"
pytestmark = pytest.mark.skipif(not PAIRS.is_dir(), reason="Argo CD's pairs are not here")


def listed() -> list[dict[str, Any]]:
    return json.loads((PAIRS / "cases.json").read_text()) if PAIRS.is_dir() else []


def manifest_of(name: str) -> dict[str, Any]:
    return read_yaml((PAIRS / name).read_text())


def rules_of(case: dict[str, Any]) -> DiffOptions:
    return DiffOptions(
        ignore_status="none",
        ignore_aggregated_roles=case["options"].get("ignoreAggregatedRoles", False),
        server_side_apply=case["strategy"] == "structured-merge",
        server_side=case["strategy"] == "server-side",
        include_mutations=not case["options"].get("ignoreMutationWebhook", True),
    )


@pytest.mark.parametrize("case", listed(), ids=lambda case: f"{case['strategy']}-{case['config'].partition('.')[0]}")
def test_pair_differs_exactly_if_argo_cd_reports_a_difference(case: dict[str, Any]) -> None:
    desired, live = manifest_of(case["config"]), manifest_of(case["live"])
    key = key_of(desired)
    predicted = {key: manifest_of(case["predicted"])} if "predicted" in case else {}
    comparison = compare_manifests([desired], {key: live}, rules_of(case), predicted=predicted)
    assert not comparison.faults
    assert [pair.differs for pair in comparison.pairs] == [case["modified"]]


def test_all_23_pairs_are_listed() -> None:
    assert len(listed()) == 23
