"""Tests the diff settings of argocd-cm: valid settings apply, and an invalid one is reported but never an error."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.application import Application, IgnoreDifference, SyncPolicy
from argosy.gitops.diff import DiffOptions, KnownField, build_diff_options, read_diff_settings
from argosy.kube.objects import Manifest
from support.comparisons import differs, manifest, pair, widget

PREFIX = "resource.customizations.ignoreDifferences."
COMPARE_OPTIONS = "argocd.argoproj.io/compare-options"


@pytest.mark.parametrize(
    ("key", "kind"),
    [("apps_Deployment", ("apps", "Deployment")), ("Service", ("", "Service")), ("all", ("*", "*"))],
)
def test_ignore_differences_key_becomes_a_rule_for_its_kind(key: str, kind: tuple[str, str]) -> None:
    text = "jsonPointers: [/spec/a]\njqPathExpressions: ['.spec.b[]?']\nmanagedFieldsManagers: [hpa]\n"
    settings = read_diff_settings({PREFIX + key: text})
    assert settings.ignore_rules == (IgnoreDifference(*kind, "", "", ("/spec/a",), (".spec.b[]?",), ("hpa",)),)
    assert not settings.faults


def test_names_in_lower_case_are_read_as_the_operator_of_openshift_gitops_writes_them() -> None:
    text = "jqpathexpressions: ['.spec.b[]?']\njsonpointers:\n- /spec/a\nmanagedfieldsmanagers: []\n"
    options = {"resource.compareoptions": "IgnoreResourceStatusField: none\n"}
    settings = read_diff_settings({f"{PREFIX}apps_Deployment": text, **options})
    assert settings.ignore_rules == (
        IgnoreDifference("apps", "Deployment", pointers=("/spec/a",), jq_paths=(".spec.b[]?",)),
    )
    assert settings.ignore_status == "none" and not settings.faults


def test_resource_customizations_map_allows_wildcards_and_nested_text() -> None:
    text = """
    "*.example.io/*":
      ignoreDifferences: |
        jsonPointers: [/spec/a]
    Service:
      health.lua: return {}
    apps/Deployment:
      ignoreDifferences: {jsonPointers: [/spec/b]}
      knownTypeFields: [{field: spec.c, type: core/v1/PodSpec}]
    """
    settings = read_diff_settings({"resource.customizations": text})
    assert settings.ignore_rules == (
        IgnoreDifference("*.example.io", "*", pointers=("/spec/a",)),
        IgnoreDifference("apps", "Deployment", pointers=("/spec/b",)),
    )
    assert KnownField("apps", "Deployment", ("spec", "c"), "core/v1/PodSpec") in settings.known_fields
    assert not settings.faults


@pytest.mark.parametrize(
    ("word", "status"),
    [("all", "all"), ("crd", "crd"), ("none", "none"), ("'off'", "none"), ("false", "none"), ("", "all")],
)
def test_ignore_resource_status_field_is_read(word: str, status: str) -> None:
    settings = read_diff_settings({"resource.compareoptions": f"ignoreResourceStatusField: {word}\n"})
    assert settings.ignore_status == status
    assert not settings.faults


def test_compare_options_are_read_and_have_defaults() -> None:
    usual = read_diff_settings({})
    assert (usual.ignore_status, usual.ignore_aggregated_roles, usual.ignore_rules_apply_to_updates) == (
        "all",
        False,
        True,
    )
    text = "ignoreAggregatedRoles: true\nignoreDifferencesOnResourceUpdates: false\n"
    settings = read_diff_settings({"resource.compareoptions": text})
    assert (settings.ignore_aggregated_roles, settings.ignore_rules_apply_to_updates) == (True, False)
    masked = read_diff_settings({"resource.sensitive.mask.annotations": "a, b ,"}).masked_annotations
    assert masked == {"a", "b"}


BAD = {
    "no YAML": {PREFIX + "apps_Deployment": "jsonPointers: [", PREFIX + "Service": "jsonPointers: [/a]"},
    "a list": {PREFIX + "apps_Deployment": "- /spec", PREFIX + "Service": "jsonPointers: [/a]"},
    "a text for a list": {PREFIX + "apps_Deployment": "jsonPointers: /spec", PREFIX + "Service": "jsonPointers: [/a]"},
    "numbers": {PREFIX + "apps_Deployment": "jqPathExpressions: [1]", PREFIX + "Service": "jsonPointers: [/a]"},
    "the map": {"resource.customizations": "- a", PREFIX + "Service": "jsonPointers: [/a]"},
    "options": {"resource.compareoptions": "ignoreAggregatedRoles: perhaps", PREFIX + "Service": "jsonPointers: [/a]"},
    "a word": {
        "resource.compareoptions": "ignoreResourceStatusField: some",
        PREFIX + "Service": "jsonPointers: [/a]",
    },
    "options in a list": {"resource.compareoptions": "[]", PREFIX + "Service": "jsonPointers: [/a]"},
    "a type": {
        "resource.customizations.knownTypeFields.a.io_B": "[{field: a, type: core/v1/Pot}]",
        PREFIX + "Service": "jsonPointers: [/a]",
    },
    "half a field": {
        "resource.customizations.knownTypeFields.a.io_B": "[{field: a}]",
        PREFIX + "Service": "jsonPointers: [/a]",
    },
    "fields in a map": {
        "resource.customizations.knownTypeFields.a.io_B": "{field: a}",
        PREFIX + "Service": "jsonPointers: [/a]",
    },
}


@pytest.mark.parametrize("settings", BAD.values(), ids=BAD.keys())
def test_invalid_setting_is_reported_once_and_other_settings_apply(
    settings: dict[str, str],
) -> None:
    diff_settings = read_diff_settings(settings)
    (fault,) = diff_settings.faults
    assert fault.startswith("resource.")
    assert "; " in fault
    assert IgnoreDifference("", "Service", pointers=("/a",)) in diff_settings.ignore_rules


def application(options: str = "", *sync_options: str) -> Application:
    return Application(
        "app",
        annotations={COMPARE_OPTIONS: options} if options else {},
        policy=SyncPolicy(options=sync_options),
        ignore_rules=(IgnoreDifference("a", "b"),),
    )


def test_application_adds_its_own_ignore_rules() -> None:
    settings = read_diff_settings({PREFIX + "Service": "jsonPointers: [/a]"})
    rules = build_diff_options(application(), settings)
    assert rules.ignore_rules == (IgnoreDifference("", "Service", pointers=("/a",)), IgnoreDifference("a", "b"))
    assert not rules.server_side
    assert not rules.server_side_apply


def test_application_options_select_the_diff_strategy() -> None:
    usual = read_diff_settings({})
    on = read_diff_settings({}, {"controller.diff.server.side": "true"})
    assert build_diff_options(application("ServerSideDiff=true"), usual).server_side
    assert build_diff_options(application(), on).server_side
    assert not build_diff_options(application("ServerSideDiff=false"), on).server_side
    both = build_diff_options(application("ServerSideDiff=true,IncludeMutationWebhook=true"), usual)
    assert both.server_side
    assert both.include_mutations
    assert build_diff_options(application("", "ServerSideApply=true"), usual).server_side_apply


def rollout(cpu: Any) -> Manifest:
    spec = {"containers": [{"name": "a", "resources": {"limits": {"cpu": cpu}}}]}
    return manifest("Rollout", api="argoproj.io/v1alpha1", spec={"template": {"spec": spec}})


def test_known_field_is_compared_as_its_type() -> None:
    assert not differs(rollout("1500m"), rollout("1.5"))
    assert differs(rollout("1500m"), rollout("1.5"), known_fields=())
    known_fields = (KnownField("example.io", "Widget", ("amounts",), "core/Quantity"),)
    desired, live = widget({}) | {"amounts": ["1000m"]}, widget({}) | {"amounts": ["1"]}
    assert differs(desired, live)
    assert not pair(desired, live, DiffOptions(known_fields=known_fields)).differs


@pytest.mark.parametrize(
    ("desired", "live", "same"),
    [("90s", "1m30s", True), ("60m", "1h0m0s", True), ("5s", "5s", True), ("90s", "1m31s", False), ("x", "x", True)],
)
def test_duration_is_compared_in_go_format(desired: str, live: str, same: bool) -> None:
    rules = DiffOptions(known_fields=(KnownField("example.io", "Widget", ("spec", "*"), "meta/v1/Duration"),))
    assert pair(widget({"a": desired}), widget({"a": live}), rules).differs is not same


@pytest.mark.parametrize("value", [7, "text", None, [], {"containers": 5}])
def test_known_field_with_unexpected_value_is_compared_unchanged(value: Any) -> None:
    rollout_manifest = manifest("Rollout", api="argoproj.io/v1alpha1", spec={"template": {"spec": value}})
    assert not differs(rollout_manifest, rollout_manifest)
