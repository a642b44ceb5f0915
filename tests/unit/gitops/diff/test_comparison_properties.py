"""Property tests: comparing or masking arbitrary manifests never raises an error or changes its input."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import ManifestError, PatchError
from argosy.gitops.application import IgnoreDifference
from argosy.gitops.diff import (
    DiffOptions,
    compare_manifests,
    keep_ignored_live_values,
    list_differences,
    mask_secrets,
    three_way_diff,
)
from argosy.gitops.diff.field_projection import is_same_json
from argosy.gitops.diff.go_type_round_trip import find_manifest_type, roundtrip_by_type
from argosy.kube.objects import key_of
from support.comparisons import deployment, manifest, widget
from support.examples import examples

fields = st.sampled_from(["name", "a", "data", "containers", "$patch", "spec", "port"])
texts = st.sampled_from(["", "a", "1500m", "{", "name"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=3),
    max_leaves=8,
)
SEEDS = [
    deployment({"ports": [{"containerPort": 80}]}, replicas=1),
    manifest("Secret", data={"a": "Yg=="}, stringData={"b": "c"}),
    manifest("Service", spec={"ports": [{"port": 80}]}),
    manifest("Endpoints", subsets=[{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 1}]}]),
    manifest("Role", api="rbac.authorization.k8s.io/v1", rules=[{"verbs": ["get"]}]),
    manifest("StatefulSet", api="apps/v1", spec={"volumeClaimTemplates": [{"metadata": {"name": "x"}}]}),
    manifest("Rollout", api="argoproj.io/v1alpha1", spec={"template": {"spec": {"containers": []}}}),
    widget({"steps": [{"name": "a", "x": 1}]}),
]
MARKS = {
    "kubectl.kubernetes.io/last-applied-configuration": '{"spec": {"a": 1}, "metadata": {}}',
    "argocd.argoproj.io/sync-options": "ServerSideApply=true",
}
MANAGED = [
    {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:replicas": {}}, "f:metadata": {"f:labels": {"f:a": {}}}},
    }
]
RULES = [
    DiffOptions(),
    DiffOptions(server_side_apply=True),
    DiffOptions(
        ignore_rules=(
            IgnoreDifference("*", "*", pointers=("/spec/a", "/data/-1"), jq_paths=(".spec[]?",), managers=("m",)),
        )
    ),
]


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    paths = [at] if at else []
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            paths += places(item, (*at, key))
    return paths


@st.composite
def damaged(draw: Any) -> tuple[Any, Any]:
    base = copy.deepcopy(draw(st.sampled_from(SEEDS)))
    if draw(st.booleans()):
        base["metadata"]["annotations"] = dict(draw(st.sets(st.sampled_from(sorted(MARKS.items())))))
    if draw(st.booleans()):
        base["metadata"]["managedFields"] = copy.deepcopy(MANAGED)
    both = base, copy.deepcopy(base)
    for side in both:
        for _ in range(draw(st.integers(0, 2))):
            *way, last = draw(st.sampled_from(places(side)))
            if (not way and last in ("apiVersion", "kind", "metadata")) or last in ("name", "namespace"):
                continue
            holder = side
            for step in way:
                holder = holder[step]
            holder[last] = draw(values)
    return both


@settings(max_examples=examples(400), deadline=None)
@given(damaged(), st.sampled_from(RULES))
def test_any_pair_is_compared_without_changing_the_input(both: tuple[Any, Any], rules: DiffOptions) -> None:
    desired, live = both
    before = json.dumps(both)
    comparison = compare_manifests([desired], {key_of(desired): live}, rules)
    for pair in comparison.pairs:
        list_differences(pair)
    assert all("; " in fault for fault in comparison.faults)
    keep_ignored_live_values(desired, live, rules)
    mask_secrets([desired, live], ["a"])
    assert json.dumps(both) == before, "what was given was changed"


@settings(max_examples=examples(300), deadline=None)
@given(damaged(), st.booleans())
def test_fast_path_gives_the_same_result_as_full_prediction(both: tuple[Any, Any], was_applied: bool) -> None:
    live, desired = (roundtrip_by_type(side) for side in both)
    type_ = find_manifest_type(desired)
    if type_ is None:
        return
    original = desired if was_applied else roundtrip_by_type(copy.deepcopy(live))
    try:
        prediction = three_way_diff.predict_three_way(original, desired, live, type_)
        if prediction[0] is prediction[1]:
            thorough = three_way_diff.predict_builtin(original, desired, live, type_)
            assert is_same_json(*thorough)
    except (ManifestError, PatchError):
        return


@settings(max_examples=examples(200), deadline=None)
@given(damaged())
def test_manifest_does_not_differ_from_itself(both: tuple[Any, Any]) -> None:
    for side in both:
        side["metadata"].pop("annotations", None)
        comparison = compare_manifests([side], {key_of(side): side}, DiffOptions(ignore_status="none"))
        assert comparison.faults or not comparison.pairs[0].differs
