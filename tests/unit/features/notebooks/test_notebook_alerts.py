"""Shipped alert rules use only emitted series; metric cardinality and label escaping."""

from __future__ import annotations

import re

import pytest

from argosy.errors import UnknownRef
from argosy.features.notebooks.controller_prometheus_metrics import NotebookMetrics
from argosy.kube.objects import read_manifests
from argosy.kube.schema.bundled_crds import load_definitions
from argosy.observability.metrics import MAX_SERIES
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support import prometheus_text
from support.notebook_controller import FAILED, PASSED, RUNNING, ToldRuns, job, leaping
from support.paths import ROOT

pytestmark = pytest.mark.anyio
ALERTS = ROOT / "deploy" / "notebooks" / "alerts.yaml"
SELECTOR = re.compile(r"(notebookvalidationjob_\w+)(?:\{([^}]*)\})?")


def selectors() -> set[tuple[str, tuple[str, ...]]]:
    (rule,) = read_manifests(ALERTS.read_text(), where=ALERTS.name)
    rules = [alert for group in rule["spec"]["groups"] for alert in group["rules"]]
    assert len(rules) >= 9
    matches = {match for alert in rules for match in SELECTOR.findall(alert["expr"])}
    return {(name, tuple(filter(None, labels.split(",")))) for name, labels in matches}


async def test_every_series_in_the_alert_rules_is_emitted_with_its_labels(cluster: EmbeddedCluster) -> None:
    for crd in load_definitions("inferenceservices.serving.kserve.io"):
        await cluster.apply(crd, manager="test")
    async with leaping(cluster, ToldRuns()) as (at, _):
        for name, answer in (("good", PASSED), ("bad", FAILED), ("nowhere", UnknownRef("no branch")), ("on", RUNNING)):
            at.runs.otherwise = answer
            await at.apply(job(name))
            if answer is RUNNING:
                await at.becomes(lambda status: status["results"], name)
            else:
                await at.ends(name)
        for platform in ("kserve", "seldon"):
            await at.apply(job(platform, modelValidation={"platform": platform, "targetModels": ["m"]}))
            await at.becomes(lambda status: status["modelValidationResult"], platform)
        at.controller.metrics.count(
            "notebookvalidationjob_reconciliation_errors_total", {"namespace": "default", "error_type": "Forbidden"}
        )
        text = at.controller.metrics.render()
    assert prometheus_text.read(text)
    series = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    missing = [
        (name, labels)
        for name, labels in selectors()
        if not any(sample.partition("{")[0] == name and all(label in sample for label in labels) for sample in series)
    ]
    assert missing == []


async def test_reconcile_errors_are_counted_by_exception_type(cluster: EmbeddedCluster) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    async with leaping(cluster, result_hooks=[broken]) as (at, _):
        await at.apply(job())
        await at.ends()
        line = 'notebookvalidationjob_reconciliation_errors_total{error_type="RuntimeError",namespace="default"}'
        await at.becomes(lambda _: line in at.controller.metrics.render())


def test_series_of_a_metric_are_capped_at_max_series() -> None:
    metrics = NotebookMetrics()
    for number in range(MAX_SERIES + 100):
        metrics.count("a_total", {"name": f"job-{number}"})
    assert len([line for line in metrics.render().splitlines() if line.startswith("a_total{")]) == MAX_SERIES + 1
    assert 'a_total{name="other"} 100' in metrics.render().splitlines()


def test_label_values_are_escaped() -> None:
    metrics = NotebookMetrics()
    metrics.count("a_total", {"name": 'x"} 1\nb_total{y="'})
    assert 'a_total{name="x\\"} 1\\nb_total{y=\\""} 1' in metrics.render().splitlines()
