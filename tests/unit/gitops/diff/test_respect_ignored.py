"""Tests RespectIgnoreDifferences: ignored fields are applied with their live values."""

from __future__ import annotations

from typing import Any

from argosy.gitops.application import IgnoreDifference
from argosy.gitops.diff import DiffOptions, JqResults, keep_ignored_live_values, list_respect_jq_questions
from argosy.kube.objects import Manifest
from support.comparisons import LAST_APPLIED, applied, deployment, managed, manifest, widget


def respected(desired: Manifest, live: Manifest | None, *pointers: str, **more: Any) -> Manifest:
    return keep_ignored_live_values(
        desired, live, DiffOptions(ignore_rules=(IgnoreDifference("*", "*", pointers=pointers, **more),))
    )


def test_ignored_field_takes_live_value_and_others_stay_desired() -> None:
    result = respected(deployment(replicas=2), deployment({"image": "x"}, replicas=5), "/spec/replicas")
    assert result == deployment(replicas=5)


def test_ignored_field_missing_in_live_is_omitted() -> None:
    assert respected(widget({"a": 1, "b": 2}), widget({"b": 3}), "/spec/a") == widget({"b": 2})


def test_ignored_field_only_in_live_is_applied() -> None:
    assert respected(widget({"b": 2}), widget({"a": {"x": 1}, "b": 3}), "/spec/a") == widget({"a": {"x": 1}, "b": 2})


def test_ignored_field_in_list_element_is_restored_by_key() -> None:
    def containers(*images: str) -> Manifest:
        container_list = [{"name": name, "image": image} for name, image in zip("abc", images)]
        return manifest("Deployment", api="apps/v1", spec={"template": {"spec": {"containers": container_list}}})

    desired, live = containers("1", "2", "3"), containers("7", "8")
    expression = '.spec.template.spec.containers[] | select(.name == "b") | .image'
    assert respected(desired, live, jq_paths=(expression,)) == containers("1", "8", "3")


def test_custom_resource_lists_keep_desired_elements() -> None:
    desired = widget({"steps": [{"name": "a", "x": 1, "y": 1}, {"name": "b", "x": 1}]})
    live = widget({"steps": [{"name": "a", "x": 9, "y": 9}]})
    result = respected(desired, live, jq_paths=(".spec.steps[].x",))
    assert result == widget({"steps": [{"name": "a", "x": 9, "y": 1}, {"name": "b"}]})


def test_ignored_list_element_is_kept_from_live() -> None:
    desired = widget({"steps": [{"name": "a"}]})
    live = widget({"steps": [{"name": "a"}, {"name": "injected", "x": 1}]})
    result = respected(desired, live, jq_paths=('.spec.steps[] | select(.name == "injected")',))
    assert result == live


def test_server_written_fields_are_never_applied() -> None:
    desired = widget({"a": 1})
    live = applied(widget({"a": 2}, resourceVersion="7", generation=3, uid="u"), desired) | {"status": {"x": 1}}
    metadata = [f"/metadata/{name}" for name in ("resourceVersion", "generation", "uid", "annotations")]
    result = respected(desired, live, *metadata, "/status")
    assert result["metadata"] == desired["metadata"] | {"annotations": {}}
    assert "status" not in result
    assert LAST_APPLIED not in result["metadata"]["annotations"]


def test_value_changed_by_trusted_manager_is_kept() -> None:
    live = managed(deployment(replicas=5), "hpa", {"f:spec": {"f:replicas": {}}})
    assert respected(deployment(replicas=2), live, managers=("hpa",))["spec"]["replicas"] == 5


def test_object_without_live_side_is_applied_as_desired() -> None:
    assert respected(widget({"a": 1}), None, "/spec/a") == widget({"a": 1})


def test_real_jq_is_used_for_expressions_that_need_it() -> None:
    rules = DiffOptions(ignore_rules=(IgnoreDifference("*", "*", jq_paths=(".spec.list[1:]",)),))
    desired, live = widget({"list": [1, 2]}), widget({"list": [1, 3]})
    questions = list_respect_jq_questions(desired, live, rules)
    assert [question.expressions for question in questions] == [(".spec.list[1:]",)] * 2
    answers = {question: widget({"list": [1]}) for question in questions}
    assert keep_ignored_live_values(desired, live, rules, jq_results=JqResults(answers)) == live
    assert keep_ignored_live_values(desired, live, rules) == desired
