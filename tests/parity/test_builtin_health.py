"""Argo CD's own test cases for built-in health checks: argosy reports the same health.

The cases are next to the checkout, not in it; without them these tests are skipped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from argosy.gitops.health import builtin
from argosy.gitops.health.assess import assess_by_rule
from argosy.gitops.health.bundled_rules import HealthRule, RuleOrigin
from argosy.kube.objects import read_yaml_documents
from argosy.kube.resource_key import split_api_version

CASES = Path(__file__).parents[3] / "shared" / "data" / "argocd" / "health-builtin"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="Argo CD's cases are not here")


def listed() -> list[dict[str, Any]]:
    return json.loads((CASES / "cases.json").read_text()) if CASES.is_dir() else []


def manifest_of(name: str) -> dict[str, Any]:
    # argo: only the first document of a file is read.
    return read_yaml_documents((CASES / name).read_text())[0]


def said_of(manifest: dict[str, Any]) -> str | None:
    of = split_api_version(manifest["apiVersion"])[0], manifest["kind"]
    rule = HealthRule(*of, RuleOrigin.BUILT_IN) if of in builtin.BUILTIN_CHECKS else None
    assessment = assess_by_rule(manifest, rule, {})
    return None if assessment is None else assessment.health


@pytest.mark.parametrize("case", listed(), ids=lambda case: case["input"].removesuffix(".yaml"))
def test_builtin_health_equals_argo_cd(case: dict[str, Any]) -> None:
    assert said_of(manifest_of(case["input"])) == case["status"]


def test_all_50_cases_are_listed_and_none_ends_in_a_fault() -> None:
    cases = listed()
    assert len(cases) == 50
    assert not [
        case["input"]
        for case in cases
        if (assessment := builtin.assess_builtin(manifest_of(case["input"]))) and assessment.fault
    ]
