"""Health checks from users' documents, pasted unchanged into argocd-cm or the ArgoCD resource.

They run as users' checks do: isolated, without Lua libraries. The documents are next to the checkout, not in it;
without them these tests are skipped.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.assess import HealthAssessor
from argosy.gitops.health.lint import lint_script
from argosy.gitops.health.rule_lookup import HealthRules
from argosy.gitops.health.settings import CustomHealthCheck, Customizations, read_manifests
from argosy.gitops.sync.observed_generation_check import DEFAULT_OBSERVED_KINDS, correct_stale_health
from argosy.isolation import WorkerPool
from argosy.kube.objects import read_yaml
from argosy.kube.resource_key import GroupKind
from support.documented_health import (
    CELLS,
    CLAIM,
    CLUSTER_SERVING_RUNTIME,
    NOTEBOOK,
    SERVICE_IGNORED,
    SERVICE_STRICT,
    SERVING_RUNTIME,
    STOPPED,
    TRAINED_MODEL,
    Row,
    cell,
    claim,
    notebook,
)

DOCUMENTS = Path(__file__).parents[3] / "shared" / "seeds"
pytestmark = pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="the documents that hold the checks are not here")
FENCE = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Marks an excerpt: the beginning of a check that another block gives in full, ended by an ellipsis.
EXCERPT = re.compile(r"^ *\.\.\.$", re.MULTILINE)


def blocks() -> Iterator[str]:
    """Yield the YAML blocks that contain a complete check, in the order of the documents."""
    for document in sorted(DOCUMENTS.glob("*.txt")):
        for block in FENCE.findall(document.read_text()):
            if "hs = {}" in block and not EXCERPT.search(block):
                yield block


def installation(block: str) -> Customizations:
    """Read a block as a fragment of the ArgoCD resource or of argocd-cm."""
    manifest = read_yaml(block)
    if isinstance(manifest, list):
        manifest = {"spec": {"resourceHealthChecks": manifest}}
    if "spec" in manifest:
        manifest = {"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "metadata": {"name": "gitops"}, **manifest}
    elif "kind" not in manifest:
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"}, "data": manifest}
    return read_manifests([manifest])


INSTALLATIONS = [installation(block) for block in blocks()] if DOCUMENTS.is_dir() else []
CHECKS = [check for customizations in INSTALLATIONS for check in customizations.checks]
# The kind and the expected results of each documented check, in the order of the documents.
TABLES: list[tuple[str, list[Row]]] = [
    ("serving.kserve.io/InferenceService", SERVICE_STRICT),
    ("serving.kserve.io/ServingRuntime", SERVING_RUNTIME),
    ("serving.kserve.io/ClusterServingRuntime", CLUSTER_SERVING_RUNTIME),
    ("serving.kserve.io/TrainedModel", TRAINED_MODEL),
    ("PersistentVolumeClaim", CLAIM),
    ("serving.kserve.io/InferenceService", SERVICE_IGNORED),
    ("mlops.mlops.dev/NotebookValidationJob", NOTEBOOK),
    ("mlops.mlops.dev/NotebookValidationJob", CELLS),
]
STRICT, CLAIMS, BY_CELL = 0, 4, 7
NOTEBOOKS = (6, 7)


Assess = Callable[[CustomHealthCheck, Sequence[dict[str, Any]]], list[Assessment | None]]


@pytest.fixture(scope="module")
def assess() -> Iterator[Assess]:
    """Assess health in one worker process for all tests of this file."""
    pool = WorkerPool(workers=1)

    async def assessed(check: CustomHealthCheck, manifests: Sequence[dict[str, Any]]) -> list[Assessment | None]:
        return await HealthAssessor(HealthRules(Customizations(checks=(check,))), pool).assess_all(manifests)

    with asyncio.Runner() as runner:
        try:
            yield lambda check, manifests: runner.run(assessed(check, manifests))
        finally:
            runner.run(pool.close())


def test_every_documented_check_has_a_table_here() -> None:
    assert [check.pattern for check in CHECKS] == [pattern for pattern, _ in TABLES]
    assert not any(check.open_libs for check in CHECKS)
    whole = sum(document.read_text().count("hs = {}") for document in DOCUMENTS.glob("*.txt"))
    assert whole == len(CHECKS) + 1, "one block is an excerpt"


@pytest.mark.parametrize("place", range(len(TABLES)), ids=[f"{index}-{name}" for index, (name, _) in enumerate(TABLES)])
def test_pasted_check_gives_the_documented_health_and_message(assess: Assess, place: int) -> None:
    _, table = TABLES[place]
    judged = assess(CHECKS[place], [row.manifest for row in table])
    expected = [(row.says, row.health, row.message) for row in table]
    assert [
        (row.says, assessment.health, assessment.message) for row, assessment in zip(table, judged, strict=True)
    ] == expected


@pytest.mark.parametrize("place", NOTEBOOKS)
def test_stale_notebook_status_is_healthy_by_the_check_but_progressing_in_a_sync(assess: Assess, place: int) -> None:
    async def assess_all(manifests: Sequence[dict[str, Any]]) -> list[Assessment | None]:
        return assessments

    stale = notebook({"phase": "Succeeded", "observedGeneration": 1}, generation=2)
    assessments = assess(CHECKS[place], [stale])
    (in_sync,) = asyncio.run(correct_stale_health(assess_all, DEFAULT_OBSERVED_KINDS)([stale]))
    assert (
        assessments[0]
        and in_sync
        and (assessments[0].health, in_sync.health) == (HealthStatus.HEALTHY, HealthStatus.PROGRESSING)
    )
    kind = GroupKind(*CHECKS[place].pattern.split("/"))
    assert "AGY409" in {finding.rule for finding in lint_script(CHECKS[place].script, kind=kind)}


def test_check_without_a_nil_guard_fails_only_for_an_object_without_status(assess: Assess) -> None:
    manifests = [claim({"phase": "Bound"}), claim(None), claim({"phase": "Pending"})]
    bound, broken, pending = assess(CHECKS[CLAIMS], manifests)
    assert (bound.health, pending.health) == (HealthStatus.HEALTHY, HealthStatus.HEALTHY)
    assert broken.health is HealthStatus.UNKNOWN
    assert broken.fault == broken.message
    assert "<string>:2: attempt to index" in broken.fault and "status" in broken.fault
    assert broken.rule == "argocd-cm ArgoCD/gitops spec.resourceHealthChecks[0]"


def test_lint_names_the_line_without_a_nil_guard() -> None:
    errors = [finding for finding in lint_script(CHECKS[CLAIMS].script) if finding.severity == "error"]
    assert [(finding.line, finding.rule) for finding in errors] == [(2, "AGY403")]
    assert "obj.status" in errors[0].message


@pytest.mark.tier("all")
def test_documented_checks_are_imprecise_for_stopped_lost_and_failed_objects(assess: Assess) -> None:
    [stopped] = assess(CHECKS[STRICT], [STOPPED])
    assert (stopped.health, stopped.message) == (HealthStatus.DEGRADED, "gone")
    [lost] = assess(CHECKS[CLAIMS], [claim({"phase": "Lost"})])
    assert (lost.health, lost.message) == (HealthStatus.PROGRESSING, "PVC status: Lost")
    real = notebook({"phase": "Failed", "results": [cell(2, "Failure", errorMessage="KeyError: 'x'")]})
    [failed] = assess(CHECKS[BY_CELL], [real])
    assert (failed.health, failed.message) == (HealthStatus.DEGRADED, "Validation failed")


def test_misplaced_ignore_differences_is_the_only_reported_fault() -> None:
    faults = [fault for customizations in INSTALLATIONS for fault in customizations.faults]
    assert len(faults) == 1
    assert "ignoreDifferences" in faults[0] and "resourceIgnoreDifferences" in faults[0]
