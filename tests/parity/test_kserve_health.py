"""The default InferenceService health rule gives the same health and message as Argo CD's bundled check.

The recorded cases are next to the checkout, not in it; without them these tests are skipped.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argosy.gitops.health.bundled_rules import load_bundled_rules
from argosy.gitops.health.lua import run_health_script
from argosy.kube.objects import read_yaml
from argosy.kube.resource_key import GroupKind

RECORDED = Path(__file__).parents[3] / "shared" / "data" / "argocd" / "health-kserve"
pytestmark = pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded answers of Argo CD are not here")
CASES = json.loads((RECORDED / "cases.json").read_text()) if RECORDED.is_dir() else []


@pytest.mark.parametrize("open_libs", [True, False], ids=["open", "closed"])
@pytest.mark.parametrize("case", CASES, ids=[case["input"] for case in CASES])
def test_inference_service_health_and_message_equal_argo_cd(case: dict[str, str], open_libs: bool) -> None:
    rule = load_bundled_rules()[GroupKind("serving.kserve.io", "InferenceService")]
    judged = run_health_script(rule.script, read_yaml((RECORDED / case["input"]).read_text()), open_libs=open_libs)
    assert (judged.health, judged.message) == (case["status"], case["message"])


def test_every_recorded_manifest_is_listed_as_a_case() -> None:
    assert {case["input"] for case in CASES} == {file.name for file in RECORDED.glob("*.yaml")}
