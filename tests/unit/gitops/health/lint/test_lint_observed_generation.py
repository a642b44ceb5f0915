"""Tests AGY409: a health check that never compares observedGeneration."""

from __future__ import annotations

import pytest

from argosy.gitops.health.bundled_rules import list_profiles, load_bundled_rules, load_profile_rules
from argosy.gitops.health.lint import lint_script
from argosy.gitops.health.lint.observed_generation import check_generations, reports_generation
from argosy.gitops.health.lua.syntax import parse
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import NOTEBOOK_JOB

GATEWAY_API = "gateway.networking.k8s.io"
BY_PHASE = """\
hs = {status = "Progressing"}
if obj.status == nil then return hs end
if obj.status.phase == "Succeeded" then
  hs.status = "Healthy"
end
return hs
"""


def findings(script: str, kind: GroupKind | None) -> list[tuple[int, str]]:
    return [(finding.line, finding.severity) for finding in lint_script(script, kind=kind) if finding.rule == "AGY409"]


@pytest.mark.parametrize(
    "kind", [NOTEBOOK_JOB, GroupKind("apps", "Deployment"), GroupKind("serving.knative.dev", "Service")]
)
def test_check_of_phase_only_is_found_where_it_returns_healthy(kind: GroupKind) -> None:
    assert findings(BY_PHASE, kind) == [(4, "warning")]


@pytest.mark.parametrize(
    "guard",
    [
        "if (obj.status.observedGeneration or 0) < obj.metadata.generation then return hs end\n",
        'if obj.status["observedGeneration"] ~= obj.metadata.generation then return hs end\n',
        "local seen = obj.status.observedGeneration\nif seen and seen < obj.metadata.generation then return hs end\n",
    ],
)
def test_check_that_reads_observed_generation_is_not_reported(guard: str) -> None:
    head, test, rest = BY_PHASE.partition("if obj.status.phase")
    assert findings(head + guard + test + rest, NOTEBOOK_JOB) == []


def test_comment_about_the_field_does_not_count() -> None:
    assert findings("-- observedGeneration\n" + BY_PHASE, NOTEBOOK_JOB) == [(5, "warning")]


@pytest.mark.parametrize(
    "kind",
    [
        None,
        GroupKind("ml.example.com", "Model"),
        GroupKind("serving.kserve.io", "InferenceGraph"),  # its operator stores the generation of a Deployment there
        GroupKind("", "Pod"),
        # Their conditions have the field; their status does not.
        *(GroupKind(GATEWAY_API, name) for name in ("Gateway", "GatewayClass", "HTTPRoute", "GRPCRoute")),
        GroupKind("argoproj.io", "Rollout"),  # a string there
    ],
)
def test_kind_not_known_to_report_observed_generation_is_ignored(kind: GroupKind | None) -> None:
    assert findings(BY_PHASE, kind) == []


def test_advice_covers_a_status_without_the_field() -> None:
    (advice,) = [finding.advice for finding in lint_script(BY_PHASE, kind=NOTEBOOK_JOB) if finding.rule == "AGY409"]
    assert "is nil or less than" in advice


def test_check_without_status_or_healthy_result_is_not_reported() -> None:
    assert findings('return {status = "Healthy"}', NOTEBOOK_JOB) == []
    assert findings(BY_PHASE.replace("Healthy", "Suspended"), NOTEBOOK_JOB) == []


def test_bundled_rules_compare_observed_generation_if_reported() -> None:
    rules = [
        *load_bundled_rules().items(),
        *(row for name in list_profiles() for row in load_profile_rules(name).items()),
    ]
    assert sum(reports_generation(kind) for kind, _ in rules) >= 10
    scripts = dict.fromkeys((kind, rule.script) for kind, rule in rules)  # most scripts are the same in all profiles
    assert [kind for kind, script in scripts if list(check_generations(parse(script), kind))] == []
