"""Unknown states: evaluated conditions, validation of the spec, kept health, and source warnings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from argosy.gitops.application import Application, read_application
from argosy.gitops.application.project_spec import read_project
from argosy.gitops.application.step_results import RenderResult, SyncStatus
from argosy.gitops.reconciler.desired_state_builder import _build_source_warnings
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.unknown_state import (
    adjust_sync_status,
    build_unavailable_state,
    build_unknown_state,
    list_evaluated_conditions,
    read_compared_revisions,
    validate_application,
)
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.status.conditions import ConditionType

HERE = "https://kubernetes.default.svc"
EVERYWHERE = {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}
OPEN = read_project({"metadata": {"name": "default"}, "spec": EVERYWHERE})


async def nothing(manifests: Any) -> list[Any]:
    return []


def app(status: dict[str, Any] | None = None, **spec: Any) -> Application:
    full_spec = {
        "source": {"repoURL": "https://git.example/x", "path": "p"},
        "destination": {"server": HERE, "namespace": "a"},
        **spec,
    }
    return read_application(
        {"metadata": {"name": "a", "namespace": "argocd"}, "spec": full_spec, "status": status or {}}
    )


@pytest.fixture
def rules(tmp_path: Path) -> ReconcilerSettings:
    return ReconcilerSettings(Repositories(tmp_path, SourceSettings()), nothing)


def test_evaluated_conditions_depend_on_what_was_compared() -> None:
    wrong, lost = build_unknown_state(app(), [], is_invalid=True), build_unknown_state(app(), [])
    whole = replace(lost, resources=[])
    everything = frozenset(ConditionType) - {ConditionType.DELETION_ERROR}
    assert list_evaluated_conditions(wrong, is_auto_sync_evaluated=True) == {
        ConditionType.INVALID_SPEC_ERROR,
        ConditionType.UNKNOWN_ERROR,
    }
    assert list_evaluated_conditions(lost, is_auto_sync_evaluated=True) == everything - {
        ConditionType.ORPHANED_RESOURCE_WARNING
    }
    assert list_evaluated_conditions(whole, is_auto_sync_evaluated=True) == everything
    assert list_evaluated_conditions(whole, is_auto_sync_evaluated=False) == everything - {ConditionType.SYNC_ERROR}


def test_unknown_state_keeps_health_unless_the_application_is_invalid() -> None:
    assert build_unknown_state(app({"health": {"status": "Healthy"}}), []).health.health == "Healthy"
    assert build_unknown_state(app({"health": {"status": "Healthy"}}), [], is_invalid=True).health.health == "Unknown"
    assert build_unknown_state(app(), []).health.health == "Unknown"
    assert build_unknown_state(app(), []).comparison.status is SyncStatus.UNKNOWN


@pytest.mark.parametrize(
    ("status", "spec", "tools"),
    [
        ({"sourceType": "Helm"}, {}, ("Helm",)),
        ({}, {}, ()),
        ({"sourceTypes": ["Helm", ""]}, {"sources": [{"repoURL": "a"}, {"repoURL": "b"}]}, ("Helm", "")),
        ({"sourceType": "Helm"}, {"sources": [{"repoURL": "a"}, {"repoURL": "b"}]}, ()),
    ],
)
def test_unavailable_cluster_does_not_change_the_known_tools(
    status: dict[str, Any], spec: dict[str, Any], tools: tuple[str, ...]
) -> None:
    unavailable = build_unavailable_state(app(status, **spec), "the cluster does not respond")
    assert unavailable.desired.tools == tools
    assert unavailable.conditions[0].message == "Failed to load live state: the cluster does not respond"
    assert unavailable.health.health == "Unknown"
    assert build_unknown_state(app(status, **spec), []).desired.tools == ()


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, ""),
        ({"source": None}, "spec.source.repoURL and either spec.source.path or spec.source.chart are required"),
        ({"source": {"path": "p"}}, "spec.source: repoURL is empty"),
        ({"source": {"repoURL": "https://git.example/x"}}, "spec.source: has none of path, chart and ref"),
        ({"sources": [{"repoURL": "https://git.example/x"}]}, "spec.sources: has none of path, chart and ref"),
        ({"destination": {"namespace": "a"}}, "Destination server missing from app spec"),
        ({"destination": {"server": HERE, "name": "in-cluster"}}, "can't have both name and server"),
    ],
)
def test_invalid_spec_is_reported(rules: ReconcilerSettings, spec: dict[str, Any], words: str) -> None:
    messages = [condition.message for condition in validate_application(app(**spec), OPEN, rules)]
    assert [words in text for text in messages] == ([True] if words else [])


def test_changed_managed_namespace_metadata_is_out_of_sync() -> None:
    namespace_metadata = {"labels": {"a": "b"}}
    policy = {"managedNamespaceMetadata": namespace_metadata}
    state = {"operation": {}, "phase": "Succeeded", "startedAt": "2026-01-01T00:00:00Z"}
    look = replace(
        build_unknown_state(app(), []),
        comparison=replace(build_unknown_state(app(), []).comparison, status=SyncStatus.SYNCED),
    )
    for synced, expected in ((namespace_metadata, SyncStatus.SYNCED), ({}, SyncStatus.OUT_OF_SYNC)):
        result = {"revision": "x", "managedNamespaceMetadata": synced}
        application = app({"operationState": {**state, "syncResult": result}}, syncPolicy=policy)
        assert adjust_sync_status(application, look).status is expected
    assert (
        adjust_sync_status(app(syncPolicy=policy), look).status is SyncStatus.SYNCED
    )  # never synced: nothing to compare with


def test_namespace_metadata_counts_only_if_a_sync_and_a_comparison_are_known() -> None:
    policy = {"managedNamespaceMetadata": {"labels": {"team": "a"}}}
    lost = build_unknown_state(app(), [])
    whole = replace(lost, comparison=replace(lost.comparison, status=SyncStatus.SYNCED))
    synced = {"phase": "Succeeded", "operation": {"sync": {}}, "syncResult": {"revision": "x"}}
    without_result = {"phase": "Error", "operation": {"sync": {}}}
    with_metadata = {**synced, "syncResult": {"revision": "x", "managedNamespaceMetadata": {"labels": {}}}}
    for state, spec, app_state, status in (
        (synced, {"syncPolicy": policy}, whole, SyncStatus.OUT_OF_SYNC),
        (synced, {"syncPolicy": policy}, lost, SyncStatus.UNKNOWN),
        (without_result, {"syncPolicy": policy}, whole, SyncStatus.SYNCED),
        (with_metadata, {}, whole, SyncStatus.SYNCED),
    ):
        assert adjust_sync_status(app({"operationState": state}, **spec), app_state).status is status


def test_compared_revisions_are_those_of_all_sources() -> None:
    sources = [{"repoURL": "a"}, {"repoURL": "b"}]
    sync = {"revision": "x", "revisions": ["y", "z"]}
    assert read_compared_revisions(app({"sync": sync})) == ("x",)
    assert read_compared_revisions(app({"sync": sync}, sources=sources)) == ("y", "z")
    assert read_compared_revisions(app()) == read_compared_revisions(app(sources=sources)) == ()


def test_source_warnings_are_reported_once() -> None:
    rendered = RenderResult((), (), tool="Helm", warnings=("values.yaml is read twice",))
    warnings = _build_source_warnings(app(destinaton={"server": "x"}), [rendered, rendered])
    assert [warning.type for warning in warnings] == [ConditionType.SOURCE_WARNING] * 2
    assert warnings[0].message == "values.yaml is read twice"
    assert warnings[1].message == "spec.destinaton is not a known field and is ignored; did you mean destination?"
