"""Metrics of Applications: only conditions of the chosen types are exported, with Argo CD's labels."""

from __future__ import annotations

from collections.abc import Collection

from argosy.features.controller.cli import _read_condition_types
from argosy.gitops.status.metrics import build_application_metrics
from argosy.observability.metrics import render_families

APPLICATION = {
    "metadata": {"name": "models", "namespace": "argocd"},
    "spec": {"project": "ml"},
    "status": {"conditions": [{"type": "SyncError"}, {"type": "SyncError"}, {"type": "ComparisonError"}]},
}


def render_conditions(types: Collection[str]) -> list[str]:
    text = render_families(build_application_metrics([APPLICATION], condition_types=types))
    return [line for line in text.splitlines() if line.startswith("argocd_app_condition")]


def test_conditions_are_not_exported_by_default() -> None:
    assert render_conditions(()) == []
    assert _read_condition_types([]) == frozenset()


def test_conditions_of_the_chosen_types_are_counted() -> None:
    types = _read_condition_types(["SyncError, ExcludedResourceWarning", "OrphanedResourceWarning"])
    labels = 'namespace="argocd",name="models",project="ml",condition="SyncError"'
    assert render_conditions(types) == [f"argocd_app_condition{{{labels}}} 2"]
