"""Tests comparison by field ownership (structured merge diff) and by server-side dry run."""

from __future__ import annotations

from typing import Any

from argosy.gitops.application import IgnoreDifference
from argosy.gitops.diff import DiffOptions, list_differences
from argosy.kube.objects import Manifest, key_of
from support.comparisons import deployment, managed, manifest, pair, widget

US = "argocd-controller"
SPEC = {"f:spec": {"f:a": {}, "f:b": {}}}


def applied_by_us(live: Manifest, fields: dict[str, Any]) -> Manifest:
    applied = managed(live, US, fields)
    applied["metadata"]["managedFields"][-1]["operation"] = "Apply"
    return applied


def structured(desired: Manifest, live: Manifest) -> list[str]:
    return [
        difference.pointer for difference in list_differences(pair(desired, live, DiffOptions(server_side_apply=True)))
    ]


def test_owned_field_that_is_no_longer_desired_is_drift() -> None:
    live = applied_by_us(widget({"a": 1, "b": 2}), SPEC)
    assert structured(widget({"a": 1}), live) == ["/spec/b"]


def test_field_of_another_manager_is_not_drift() -> None:
    live = managed(applied_by_us(widget({"a": 1, "b": 2, "c": 3}), SPEC), "other", {"f:spec": {"f:c": {}}})
    assert structured(widget({"a": 1, "b": 2}), live) == []


def test_changed_value_is_drift() -> None:
    live = applied_by_us(widget({"a": 1, "b": 5}), SPEC)
    assert structured(widget({"a": 1, "b": 2}), live) == ["/spec/b"]


def test_sync_option_of_an_object_enables_server_side_apply() -> None:
    annotations = {"argocd.argoproj.io/sync-options": "ServerSideApply=true"}
    live = applied_by_us(widget({"a": 1, "b": 2}, annotations=annotations), SPEC)
    assert pair(widget({"a": 1}, annotations=annotations), live).differs


def test_server_defaults_are_not_drift() -> None:
    owned = {"f:spec": {"f:replicas": {}, "f:template": {}}}
    live = applied_by_us(deployment({"imagePullPolicy": "IfNotPresent"}, replicas=1, revisionHistoryLimit=10), owned)
    assert structured(deployment(replicas=1), live) == []


def server_side(desired: Manifest, live: Manifest, dry_run: Manifest, **rules: Any) -> list[str]:
    compared = pair(desired, live, DiffOptions(server_side=True, **rules), predicted={key_of(desired): dry_run})
    return [difference.pointer for difference in list_differences(compared)]


def test_owned_field_changed_by_dry_run_is_drift() -> None:
    live, dry_run = (applied_by_us(widget({"a": number, "b": 2}), SPEC) for number in (1, 9))
    assert server_side(widget({"a": 9, "b": 2}), live, dry_run) == ["/spec/a"]


def test_webhook_mutations_are_drift_only_if_included() -> None:
    live = applied_by_us(widget({"a": 1, "b": 2}), SPEC)
    dry_run = applied_by_us(widget({"a": 1, "b": 2, "injected": "x"}), SPEC)
    assert server_side(widget({"a": 1, "b": 2}), live, dry_run) == []
    assert server_side(widget({"a": 1, "b": 2}), live, dry_run, include_mutations=True) == ["/spec/injected"]


def test_field_removed_by_dry_run_is_drift() -> None:
    live = applied_by_us(widget({"a": 1, "b": 2}), SPEC)
    dry_run = applied_by_us(widget({"a": 1}), {"f:spec": {"f:a": {}}})
    assert server_side(widget({"a": 1}), live, dry_run) == ["/spec/b"]


def test_ignored_fields_are_ignored_in_dry_run_result() -> None:
    live, dry_run = (applied_by_us(widget({"a": number}), SPEC) for number in (1, 9))
    ignored = (IgnoreDifference("*", "*", pointers=("/spec/a",)),)
    assert server_side(widget({"a": 9}), live, dry_run, ignore_rules=ignored) == []


def test_ownership_decides_without_a_dry_run_result() -> None:
    live = applied_by_us(manifest("ConfigMap", data={"a": "1", "b": "2"}), {"f:data": {"f:a": {}, "f:b": {}}})
    assert pair(manifest("ConfigMap", data={"a": "1"}), live, DiffOptions(server_side=True)).differs
