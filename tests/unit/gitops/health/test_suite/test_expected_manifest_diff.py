"""Tests comparison of action results with expected manifests, and the fields that Argo CD's tests ignore."""

from __future__ import annotations

import json

import pytest

from argosy.gitops.health.test_suite.expected_manifest_diff import find_differences
from argosy.gitops.health.test_suite.untrusted_rule_tree_files import read_first_document
from support.paths import ROOT

SHARED = ROOT / ".." / "shared" / "data" / "argocd" / "diff"
NAMED = {"metadata": {"name": "one", "namespace": "shop"}}
POD = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": "main:1"}]}}
SERVER = {"apiVersion": "apps/v1", "kind": "Deployment", **NAMED, "spec": {"selector": {}, "template": POD}}
LAST = "kubectl.kubernetes.io/last-applied-configuration"


def build_manifest(version: str, kind: str, **fields) -> dict:
    return {"apiVersion": version, "kind": kind, **NAMED, **fields}


ROLLOUT = build_manifest("argoproj.io/v1alpha1", "Rollout")


def ended(time: str) -> dict:
    return {"conditions": [{"type": "FailureTarget", "status": "True", "lastTransitionTime": time}]}


def annotated(manifest: dict, **annotations: str) -> dict:
    return manifest | {"metadata": {**manifest["metadata"], "annotations": annotations}}


def test_field_only_in_the_result_is_not_a_difference():
    expected = build_manifest("toys.example.com/v1", "Doll", spec={"parts": [{"name": "arm"}, {"name": "leg"}]})
    actual = build_manifest(
        "toys.example.com/v1", "Doll", spec={"parts": [{"name": "arm", "n": 2}, {"name": "leg"}], "more": 1}
    )
    assert find_differences(expected, actual) == {}


@pytest.mark.parametrize(
    ("expected", "actual", "path"),
    [
        ({"a": 1}, {"a": 2}, "spec.a"),
        ({"a": 1}, {"a": True}, "spec.a"),
        ({"a": 0}, {"a": False}, "spec.a"),
        ({"a": 1}, {}, "spec.a"),
        ({"a": {"b": "x"}}, {"a": {"c": "x"}}, "spec.a.b"),
        ({"a": [1, 2]}, {"a": [2, 1]}, "spec.a"),
        ({"a": [1]}, {"a": [1, 2]}, "spec.a"),
        ({"a": {}}, {"a": []}, "spec.a"),
        ({"a": "3"}, {"a": 3}, "spec.a"),
    ],
)
def test_unexpected_field_is_reported_by_its_path(expected, actual, path):
    differences = find_differences(
        build_manifest("toys.example.com/v1", "Doll", spec=expected),
        build_manifest("toys.example.com/v1", "Doll", spec=actual),
    )
    assert list(differences) == [path]


def test_integral_lua_numbers_equal_integers():
    expected, actual = (
        build_manifest("toys.example.com/v1", "Doll", n=[3, {"x": 1}]),
        build_manifest("toys.example.com/v1", "Doll", n=[3.0, {"x": 1.0}]),
    )
    assert find_differences(expected, actual) == {}


def test_defaults_and_empty_values_of_built_in_kinds_are_ignored():
    expected = SERVER | {"spec": SERVER["spec"] | {"replicas": 1, "paused": False}}
    assert find_differences(expected, SERVER) == {}
    assert list(find_differences(expected | {"spec": expected["spec"] | {"replicas": 2}}, SERVER)) == ["spec.replicas"]


def test_containers_are_matched_by_name_and_not_by_index():
    side = {"name": "side", "image": "side:1"}
    template = POD | {"spec": {"containers": [side, *POD["spec"]["containers"]]}}
    actual = SERVER | {"spec": SERVER["spec"] | {"template": template}}
    assert find_differences(SERVER, actual) == {}


def test_field_of_last_applied_that_is_no_longer_expected_differs():
    base = build_manifest("toys.example.com/v1", "Doll", spec={"a": 1})
    last = json.dumps(build_manifest("toys.example.com/v1", "Doll", spec={"a": 1, "b": 2}))
    actual = annotated(base | {"spec": {"a": 1, "b": 2}}, **{LAST: last})
    gone = annotated(base, **{LAST: last})
    assert list(find_differences(annotated(base, **{LAST: last}), actual)) == ["spec.b"]
    assert find_differences(annotated(base, **{LAST: last}), gone) == {}
    assert find_differences(base, annotated(base | {"spec": {"a": 1, "b": 2}}, **{LAST: "{broken"})) == {}


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (SERVER | {"status": {"replicas": 3}}, SERVER | {"status": {"replicas": 1}}),
        (ROLLOUT | {"spec": {"restartAt": "a"}}, ROLLOUT | {"spec": {}}),
        (
            annotated(build_manifest("external-secrets.io/v1", "ExternalSecret"), **{"force-sync": "a", "other": "x"}),
            annotated(build_manifest("external-secrets.io/v1", "ExternalSecret"), **{"force-sync": "b"}),
        ),
        (
            annotated(
                build_manifest("argoproj.io/v1alpha1", "Workflow"), **{"workflows.argoproj.io/scheduled-time": "a"}
            ),
            build_manifest("argoproj.io/v1alpha1", "Workflow"),
        ),
        (
            annotated(
                build_manifest("source.toolkit.fluxcd.io/v1", "GitRepository"),
                **{"reconcile.fluxcd.io/requestedAt": "a"},
            ),
            annotated(
                build_manifest("source.toolkit.fluxcd.io/v1", "GitRepository"),
                **{"reconcile.fluxcd.io/requestedAt": "b"},
            ),
        ),
        (
            annotated(build_manifest("postgresql.cnpg.io/v1", "Cluster"), **{"cnpg.io/reloadedAt": "a", "kept": "x"}),
            annotated(build_manifest("postgresql.cnpg.io/v1", "Cluster"), **{"cnpg.io/reloadedAt": "b", "kept": "x"}),
        ),
        (
            build_manifest("batch/v1", "Job", spec={"template": POD}, status=ended("2024-01-01T00:00:00Z")),
            build_manifest("batch/v1", "Job", spec={"template": POD}, status=ended("2025-01-01T00:00:00Z")),
        ),
    ],
    ids=["status", "restartAt", "force-sync", "scheduled-time", "requestedAt", "reloadedAt", "FailureTarget"],
)
def test_timestamps_and_status_are_ignored_for_the_kinds_that_have_them(expected, actual):
    assert find_differences(expected, actual) == {}


def test_ignored_field_of_one_kind_is_compared_in_another():
    expected = annotated(build_manifest("toys.example.com/v1", "ExternalSecret"), **{"force-sync": "a"})
    actual = annotated(build_manifest("toys.example.com/v1", "ExternalSecret"), **{"force-sync": "b"})
    assert list(find_differences(expected, actual)) == ["metadata.annotations.force-sync"]
    cluster = annotated(build_manifest("postgresql.cnpg.io/v1", "Cluster"), kept="x")
    assert list(find_differences(cluster, build_manifest("postgresql.cnpg.io/v1", "Cluster"))) == [
        "metadata.annotations.kept"
    ]


@pytest.mark.parametrize("timestamp", ["2026-01-02T03:04:05Z", "0001-01-01T00:00:00Z"])
def test_zero_time_matches_any_utc_time(timestamp):
    expected = build_manifest("toys.example.com/v1", "Doll", spec={"at": "0001-01-01T00:00:00Z"})
    assert find_differences(expected, build_manifest("toys.example.com/v1", "Doll", spec={"at": timestamp})) == {}


@pytest.mark.parametrize("value", ["", "now", "2026-01-02", "2026-01-02T03:04:05+01:00", None, 5])
def test_zero_time_matches_nothing_else(value):
    expected = build_manifest("toys.example.com/v1", "Doll", spec={"at": "0001-01-01T00:00:00Z"})
    assert list(find_differences(expected, build_manifest("toys.example.com/v1", "Doll", spec={"at": value}))) == [
        "spec.at"
    ]


def test_any_other_time_must_be_equal():
    expected = build_manifest("toys.example.com/v1", "Doll", spec={"at": "2026-01-01T00:00:00Z"})
    actual = build_manifest("toys.example.com/v1", "Doll", spec={"at": "2026-01-02T03:04:05Z"})
    assert list(find_differences(expected, actual)) == ["spec.at"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"spec": "text"},
        {"spec": {"template": []}},
        {"spec": {"template": {"spec": {"containers": [1, {"image": "x"}, None]}}}},
        {"spec": {"template": {"spec": {"containers": {"a": 1}}}}, "status": []},
        {"metadata": "text"},
    ],
)
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Rollout"])
def test_manifest_that_does_not_fit_its_kind_is_still_compared(wrong, kind):
    assert find_differences(SERVER | {"kind": kind}, SERVER | {"kind": kind} | wrong) != {}
    find_differences(SERVER | {"kind": kind} | wrong, SERVER | {"kind": kind})
    assert find_differences(SERVER | {"kind": kind} | wrong, SERVER | {"kind": kind} | wrong) == {}


def cases():
    if not SHARED.is_dir():
        return []
    legacy_cases = [case for case in json.loads((SHARED / "cases.json").read_text()) if case["strategy"] == "legacy"]
    # Argo CD's tests of actions do not set this option.
    return [case for case in legacy_cases if not case["options"].get("ignoreAggregatedRoles")]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the data of Argo CD's diff is not beside the project")
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["config"])
def test_argo_cd_diff_cases_give_the_same_result(case):
    expected, actual = (
        read_first_document((SHARED / case[side]).read_bytes(), where=side) for side in ("config", "live")
    )
    assert bool(find_differences(expected, actual)) is case["modified"]
