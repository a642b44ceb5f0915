"""Metrics of Applications: the same names, labels and values as those of Argo CD's application controller."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.argocd.comparison import find_differences
from support.argocd.known_differences import find_unexplained
from support.argocd.story import Story

pytestmark = pytest.mark.tier("argocd")

# What depends on time, and on the number of passes.
PER_RUN = ("argocd_app_reconcile", "argocd_app_sync_duration_seconds_total")
# The two programs need other requests, so the names of the labels are compared, and not their values.
REQUESTS = "argocd_app_k8s_request_total"


def read_samples(text: str, application: str) -> dict[str, Any]:
    """Return the samples of an Application by names and labels; one that counts time or work has no value."""
    samples: dict[str, Any] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.labels.get("name") == application and sample.name == REQUESTS:
                samples[f"{REQUESTS}({','.join(sorted(sample.labels))})"] = "any"
            elif sample.labels.get("name") == application:
                labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
                samples[f"{sample.name}({labels})"] = "any" if sample.name.startswith(PER_RUN) else sample.value
    return samples


def check_metrics(story: Story, *, ignored: str = "nothing") -> None:
    story.pair.wait_until_quiet([story.name])
    argocd, argosy = (
        {name: value for name, value in read_samples(text, story.name).items() if not name.startswith(ignored)}
        for text in story.pair.read_metrics()
    )
    unexplained = find_unexplained(f"metrics/{story.name}", find_differences("metrics", argocd, argosy))
    assert argocd and not unexplained, "\n".join(map(str, unexplained))


def test_metrics_of_a_synced_application(story: Story) -> None:
    story.push({"settings.yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}})
    story.deliver(automated={})
    check_metrics(story)


def test_metrics_after_a_failed_and_a_dry_run_sync(story: Story) -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    invalid = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Not a name"}}
    story.push({"settings.yaml": settings})
    story.deliver()
    story.sync(dryRun=True)
    check_metrics(story, ignored=REQUESTS)  # a client-side dry run of argosy sends no request
    story.push({"invalid.yaml": invalid})
    story.refresh()
    story.sync()
    check_metrics(story)


def test_metrics_of_an_application_that_cannot_be_rendered(story: Story) -> None:
    story.push({"settings.yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}})
    story.deliver(source={"path": "nowhere"})
    check_metrics(story)
