"""Tests ignoreDifferences: JSON pointers, jq paths, managers, rule scope and rules used in practice."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.application import IgnoreDifference
from argosy.gitops.diff import (
    DiffCache,
    DiffOptions,
    JqResults,
    compare_manifests,
    list_differences,
    list_jq_questions,
    needs_real_jq,
)
from argosy.kube.objects import Manifest, key_of
from support.comparisons import LAST_APPLIED, applied, comparison, deployment, differs, managed, manifest, pair, widget


def ignoring(*pointers: str, group: str = "*", kind: str = "*", **more: Any) -> IgnoreDifference:
    return IgnoreDifference(group, kind, pointers=pointers, **more)


DESIRED = widget({"a": 1, "list": [{"x": 1}, {"x": 2}], "a/b": 1, "m~n": 1})


@pytest.mark.parametrize(
    ("pointer", "live"),
    [
        ("/spec/a", {"a": 2, "list": [{"x": 1}, {"x": 2}], "a/b": 1, "m~n": 1}),
        ("/spec/a~1b", {"a": 1, "list": [{"x": 1}, {"x": 2}], "a/b": 2, "m~n": 1}),
        ("/spec/m~0n", {"a": 1, "list": [{"x": 1}, {"x": 2}], "a/b": 1, "m~n": 2}),
        ("/spec/list/1/x", {"a": 1, "list": [{"x": 1}, {"x": 3}], "a/b": 1, "m~n": 1}),
        ("/spec/list/-1/x", {"a": 1, "list": [{"x": 1}, {"x": 3}], "a/b": 1, "m~n": 1}),
        ("/spec/list/0", {"a": 1, "list": [{"x": 9}, {"x": 2}], "a/b": 1, "m~n": 1}),
        ("/spec", {"a": 7}),
    ],
)
def test_ignored_pointer_excludes_its_field(pointer: str, live: Any) -> None:
    assert differs(DESIRED, widget(live))
    assert not differs(DESIRED, widget(live), ignoring(pointer))


@pytest.mark.parametrize("pointer", ["/spec/nothing", "/spec/list/9/x", "/spec/list/x", "/spec/a/b/c", "", "/"])
def test_pointer_to_a_missing_field_has_no_effect(pointer: str) -> None:
    assert differs(DESIRED, widget({"a": 2}), ignoring(pointer))


def test_invalid_pointer_is_reported_and_has_no_effect() -> None:
    result = comparison(DESIRED, DESIRED, DiffOptions(ignore_rules=(ignoring("spec/a"),)))
    assert not result.pairs[0].differs
    (fault,) = result.faults
    assert fault == "ignoreDifferences of Widget: 'spec/a' is not a JSON pointer; start it with a slash"


@pytest.mark.parametrize(
    ("rule", "concerns"),
    [
        (IgnoreDifference("example.io", "Widget"), True),
        (IgnoreDifference("example.io", "*"), True),
        (IgnoreDifference("*.io", "Wid*"), True),
        (IgnoreDifference("*", "*"), True),
        (IgnoreDifference("", "Widget"), False),
        (IgnoreDifference("example.io", "Gadget"), False),
        (IgnoreDifference("example.io", "Widget", name="it"), True),
        (IgnoreDifference("example.io", "Widget", name="i*"), False),
        (IgnoreDifference("example.io", "Widget", namespace="default"), True),
        (IgnoreDifference("example.io", "Widget", namespace="other"), False),
    ],
)
def test_rule_applies_to_matching_group_kind_name_and_namespace(rule: IgnoreDifference, concerns: bool) -> None:
    rule = rule._replace(pointers=("/spec/a",))
    assert differs(widget({"a": 1}), widget({"a": 2}), rule) is not concerns


def test_rule_for_one_object_does_not_apply_to_others() -> None:
    rules = DiffOptions(ignore_rules=(ignoring("/spec/a", name="it"),))
    one, other = widget({"a": 1}), manifest("Widget", api="example.io/v1", name="other", spec={"a": 1})
    for first, second in ((one, other), (other, one)):
        for desired in (first, second):
            live = desired | {"spec": {"a": 2}}
            assert pair(desired, live, rules).differs is (desired is other)


def test_jq_path_excludes_its_fields() -> None:
    desired, live = deployment({"image": "web:1"}), deployment({"image": "web:2"})
    expression = '.spec.template.spec.containers[] | select(.name == "{}") | .image'
    for name, is_drift in (("web", False), ("other", True)):
        rule = IgnoreDifference("apps", "Deployment", jq_paths=(expression.replace("{}", name),))
        assert differs(desired, live, rule) is is_drift


def test_complex_jq_expression_is_collected_and_its_result_used() -> None:
    rules = DiffOptions(ignore_rules=(IgnoreDifference("*", "*", jq_paths=(".spec.list[1:]", ".spec.a")),))
    assert needs_real_jq(rules)
    desired, live = widget({"list": [1, 2], "a": 1}), widget({"list": [1, 3], "a": 2})
    questions = list(list_jq_questions([desired], {key_of(desired): live}, rules))
    assert [question.expressions for question in questions] == [(".spec.list[1:]", ".spec.a")] * 2
    answers = {question: widget({"list": [1]}) for question in questions}
    assert pair(desired, live, rules).differs
    assert not pair(desired, live, rules, jq_results=JqResults(answers)).differs


def test_simple_jq_paths_need_no_real_jq() -> None:
    assert not needs_real_jq(DiffOptions(ignore_rules=(IgnoreDifference("*", "*", jq_paths=(".spec.a",)),)))


def test_field_changed_by_trusted_manager_is_not_drift() -> None:
    desired = deployment(replicas=2)
    live = managed(deployment(replicas=5), "hpa", {"f:spec": {"f:replicas": {}}})
    assert differs(desired, live)
    assert not differs(desired, live, IgnoreDifference("apps", "Deployment", managers=("hpa",)))
    assert differs(desired, live, IgnoreDifference("apps", "Deployment", managers=("kubectl",)))
    changed = managed(deployment({"image": "x"}, replicas=5), "hpa", {"f:spec": {"f:replicas": {}}})
    assert differs(desired, changed, IgnoreDifference("apps", "Deployment", managers=("hpa",)))


def test_trusted_manager_may_own_a_field_of_a_list_element() -> None:
    owns = {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:image": {}}}}}}}
    live = managed(deployment({"image": "web:9"}), "updater", owns)
    assert not differs(deployment(), live, IgnoreDifference("apps", "Deployment", managers=("updater",)))


def test_unreadable_managed_fields_trust_no_manager() -> None:
    live = deployment(replicas=5)
    live["metadata"]["managedFields"] = [{"manager": "hpa"}]
    assert differs(deployment(replicas=2), live, IgnoreDifference("*", "*", managers=("hpa",)))


ROUTE = IgnoreDifference(
    "route.openshift.io",
    "Route",
    pointers=(
        "/spec/host",
        "/spec/tls/insecureEdgeTerminationPolicy",
        "/status",
        "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
    ),
)


def route(**spec: Any) -> Manifest:
    return manifest("Route", api="route.openshift.io/v1", spec={"to": {"kind": "Service", "name": "web"}} | spec)


def test_route_with_generated_host_is_drift_unless_ignored() -> None:
    desired = route(tls={"termination": "edge"})
    was = route(host="web.apps", tls={"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"})
    live = applied(was, was) | {"status": {"ingress": [{"host": "web.apps"}]}}
    assert not differs(desired, live, ROUTE)
    differences = list_differences(pair(desired, live))
    assert [difference.pointer for difference in differences] == [
        "/spec/host",
        "/spec/tls/insecureEdgeTerminationPolicy",
    ]


def test_route_host_that_was_never_applied_is_not_drift() -> None:
    assert not differs(route(), route(host="web.apps", wildcardPolicy="None"))


RULES = {
    "Deployment": (
        ignoring("/spec/selector", "/spec/template/metadata/labels", group="apps", kind="Deployment"),
        deployment(),
        deployment(
            selector={"matchLabels": {"x": "y"}},
            template=deployment()["spec"]["template"] | {"metadata": {"labels": {"x": "y"}}},
        ),
    ),
    "DoclingServe": (
        ignoring("/status", "/spec/replicas", "/metadata/resourceVersion", group="docling.io"),
        manifest("DoclingServe", api="docling.io/v1", meta={"resourceVersion": "1"}, spec={"replicas": 1}),
        manifest("DoclingServe", api="docling.io/v1", meta={"resourceVersion": "2"}, spec={"replicas": 3}),
    ),
    "everything": (
        ignoring("/metadata/managedFields", "/metadata/resourceVersion", "/metadata/generation"),
        widget({}, resourceVersion="1", generation=1),
        widget({}, resourceVersion="2", generation=4),
    ),
    "PersistentVolumeClaim": (
        ignoring("/spec/volumeName", "/spec/volumeMode", "/status", group="", kind="PersistentVolumeClaim"),
        manifest("PersistentVolumeClaim", spec={"volumeName": "a", "volumeMode": "Block"}),
        manifest("PersistentVolumeClaim", spec={"volumeName": "b", "volumeMode": "Filesystem"}),
    ),
    "Gateway": (
        ignoring("/spec", "/status", "/metadata/annotations", "/metadata/labels", group="networking.istio.io"),
        manifest("Gateway", api="networking.istio.io/v1", meta={"labels": {"a": "b"}}, spec={"servers": [1]}),
        manifest("Gateway", api="networking.istio.io/v1", meta={"annotations": {"c": "d"}}, spec={"servers": [2]}),
    ),
    "Job": (
        ignoring(
            "/spec/template/metadata/labels/batch.kubernetes.io~1controller-uid",
            "/spec/template/metadata/labels/batch.kubernetes.io~1job-name",
            group="batch",
            kind="Job",
        ),
        manifest(
            "Job",
            api="batch/v1",
            spec={"template": {"metadata": {"labels": {"batch.kubernetes.io/job-name": "a"}}}},
        ),
        manifest(
            "Job",
            api="batch/v1",
            spec={"template": {"metadata": {"labels": {"batch.kubernetes.io/job-name": "b"}}}},
        ),
    ),
    "ServiceAccount": (
        ignoring("/imagePullSecrets", group="", kind="ServiceAccount"),
        manifest("ServiceAccount", imagePullSecrets=[{"name": "a"}]),
        manifest("ServiceAccount", imagePullSecrets=[{"name": "b"}]),
    ),
}


@pytest.mark.parametrize(("rule", "desired", "live"), RULES.values(), ids=RULES.keys())
def test_common_rules_hide_the_intended_drift(rule: IgnoreDifference, desired: Manifest, live: Manifest) -> None:
    assert differs(desired, live)
    assert not differs(desired, live, rule)


def test_ignoring_last_applied_annotation_hides_removals() -> None:
    live = applied(widget({"a": 1, "b": 2}), widget({"a": 1, "b": 2}))
    pointer = f"/metadata/annotations/{LAST_APPLIED.replace('/', '~1')}"
    assert differs(widget({"a": 1}), live)
    assert not differs(widget({"a": 1}), live, ignoring(pointer))


def test_diff_cache_stores_jq_results_but_not_jq_failures() -> None:
    rules = DiffOptions(ignore_rules=(IgnoreDifference("*", "*", jq_paths=(".spec.list[1:]",)),))
    desired = widget({"list": [1, 2]})
    live = {key_of(desired): widget({"list": [1, 3]}, uid="u", resourceVersion="1")}
    for faults, is_kept in (((), True), (("jq: it failed; try again",), False)):
        memory = DiffCache()
        questions = list(list_jq_questions([desired], live, rules, cache=memory))
        removed = JqResults({question: widget({"list": [1]}) for question in questions}, faults)
        result = compare_manifests([desired], live, rules, jq_results=removed, cache=memory)
        assert not result.pairs[0].differs
        assert list(result.faults) == list(faults)
        assert (list(list_jq_questions([desired], live, rules, cache=memory)) == []) is is_kept
