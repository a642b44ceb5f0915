"""Tests the list of differing fields: path, both values, and manager and time of the live one. Secrets are masked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from argosy.gitops.application.step_results import FieldDifference
from argosy.gitops.diff import DiffOptions, compare_manifests, format_pointer, list_differences, mask_secrets
from argosy.kube.objects import Manifest, key_of
from support.comparisons import LAST_APPLIED, applied, deployment, managed, manifest, pair, widget


def list_differing_fields(desired: Manifest, live: Manifest, **options: Any) -> list[tuple[str, Any, Any]]:
    return [
        (difference.pointer, difference.desired, difference.live)
        for difference in list_differences(pair(desired, live), **options)
    ]


def test_each_differing_field_is_listed_once_in_order() -> None:
    desired = widget({"b": 1, "a": {"x": 1, "y": 2}, "same": 1})
    live = widget({"b": 2, "a": {"x": 3, "y": 4}, "same": 1, "only": 1})
    assert list_differing_fields(desired, live) == [("/spec/a/x", 1, 3), ("/spec/a/y", 2, 4), ("/spec/b", 1, 2)]


def test_missing_field_is_distinguished_from_null() -> None:
    (one,) = list_differences(pair(widget({"a": 1}), widget({})))
    assert one == FieldDifference("/spec/a", 1, None, has_live=False)
    live = applied(widget({"a": 1}), widget({"a": 1}))
    (one,) = list_differences(pair(widget({}), live))
    assert one == FieldDifference("/spec/a", None, 1, has_desired=False)


def test_list_element_is_matched_by_key_and_addressed_by_live_index() -> None:
    template = deployment()["spec"]["template"]
    others = [{"name": "sidecar", "image": "s"}, {"name": "web", "image": "web:2"}]
    live = deployment(template=template | {"spec": {"containers": others}})
    (one,) = list_differing_fields(deployment(), live)
    assert one == ("/spec/template/spec/containers/1/image", "web:1", "web:2")


def test_new_list_element_comes_after_the_live_ones() -> None:
    desired = manifest("Service", spec={"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]})
    live = manifest("Service", spec={"ports": [{"name": "b", "port": 2}]})
    (one,) = list_differences(pair(desired, live))
    assert (one.pointer, one.has_live) == ("/spec/ports/1", False)
    assert one.desired["name"] == "a"


def test_custom_resource_elements_are_matched_by_name_or_index() -> None:
    desired = widget({"steps": [{"name": "a", "x": 1}, {"name": "b", "x": 2}], "plain": [{"x": 1}]})
    live = widget({"steps": [{"name": "a", "x": 1}, {"name": "b", "x": 3}], "plain": [{"x": 2}]})
    assert list_differing_fields(desired, live) == [("/spec/plain/0/x", 1, 2), ("/spec/steps/1/x", 2, 3)]


def test_scalar_lists_and_reordered_lists_differ_as_a_whole() -> None:
    assert list_differing_fields(widget({"a": [1, 2]}), widget({"a": [1, 3]})) == [("/spec/a", [1, 2], [1, 3])]
    one, other = {"name": "a"}, {"name": "b"}
    assert list_differing_fields(widget({"a": [one, other]}), widget({"a": [other, one]})) == [
        ("/spec/a", [one, other], [other, one])
    ]


def test_slashes_and_tildes_in_pointers_are_escaped() -> None:
    desired = manifest("ConfigMap", meta={"labels": {"a.io/b~c": "1"}})
    live = manifest("ConfigMap", meta={"labels": {"a.io/b~c": "2"}})
    assert list_differing_fields(desired, live) == [("/metadata/labels/a.io~1b~0c", "1", "2")]


def test_missing_side_is_a_single_difference() -> None:
    desired = widget({"a": 1})
    (missing_pair,) = compare_manifests([desired], {}, DiffOptions()).pairs
    assert list_differences(missing_pair) == [FieldDifference("", desired, None, has_live=False)]
    (extra,) = compare_manifests([], {key_of(desired): desired}, DiffOptions()).pairs
    assert list_differences(extra) == [FieldDifference("", None, desired, has_desired=False)]


def test_field_manager_of_live_value_is_named_with_time() -> None:
    live = managed(deployment(replicas=5), "kubectl-edit", {"f:spec": {"f:replicas": {}}}, "2026-02-03T04:05:06Z")
    live = managed(live, "argocd-controller", {"f:spec": {"f:template": {}}}, "2026-02-04T00:00:00Z")
    (one,) = list_differences(pair(deployment(replicas=2), live))
    assert (one.pointer, one.manager, one.since) == ("/spec/replicas", "kubectl-edit", "2026-02-03T04:05:06Z")


def test_latest_manager_of_the_most_specific_field_is_named() -> None:
    containers: dict[str, Any] = {'k:{"name":"web"}': {".": {}, "f:image": {}}}
    owns = {"f:spec": {"f:template": {"f:spec": {"f:containers": containers}}}}
    live = managed(deployment({"image": "web:2"}), "first", owns, "2026-01-01T00:00:00Z")
    live = managed(live, "second", owns, "2026-01-02T00:00:00Z")
    live = managed(live, "third", {"f:spec": {"f:template": {}}}, "2026-01-03T00:00:00Z")
    (one,) = list_differences(pair(deployment(), live))
    assert one.manager == "second"


def test_manager_of_custom_resource_element_is_found_by_key() -> None:
    owns = {"f:spec": {"f:steps": {'k:{"name":"b"}': {".": {}, "f:x": {}}}}}
    live = managed(widget({"steps": [{"name": "a", "x": 1}, {"name": "b", "x": 3}]}), "somebody", owns)
    (one,) = list_differences(pair(widget({"steps": [{"name": "a", "x": 1}, {"name": "b", "x": 2}]}), live))
    assert one.manager == "somebody"


def test_pointer_is_formatted_for_people() -> None:
    assert format_pointer("/spec/template/spec/containers/0/image", deployment()) == (
        '.spec.template.spec.containers[name="web"].image'
    )
    assert format_pointer("/metadata/labels/a.io~1b", widget({})) == '.metadata.labels["a.io/b"]'
    assert format_pointer("/spec/a/3", widget({"a": [1]})) == ".spec.a[3]"


# -- secrets -------------------------------------------------------------------------------------------------------


def test_equal_secret_values_have_equal_masks_and_others_longer_ones() -> None:
    desired = manifest("Secret", stringData={"a": "same", "b": "new"})
    live = manifest("Secret", data={"a": "c2FtZQ==", "b": "b2xk"})
    live = applied(live, manifest("Secret", data={"b": "b2xkZXI="}))
    masked, lived = mask_secrets([desired, live])
    assert masked is not None
    assert lived is not None
    assert masked["data"] == {"a": "+" * 8, "b": "+" * 8}
    assert "stringData" not in masked
    assert lived["data"] == {"a": "+" * 8, "b": "+" * 12}
    assert json.loads(lived["metadata"]["annotations"][LAST_APPLIED])["data"] == {"b": "+" * 16}


def test_other_kinds_are_not_masked() -> None:
    config_map = manifest("ConfigMap", data={"a": "b"})
    assert mask_secrets([config_map, None]) == [config_map, None]


def test_configured_annotations_of_secrets_are_masked() -> None:
    secret = manifest("Secret", meta={"annotations": {"token": "t0p", "plain": "p"}})
    (masked,) = mask_secrets([secret], ["token"])
    assert masked is not None
    assert masked["metadata"]["annotations"] == {"token": "+" * 8, "plain": "p"}


@pytest.mark.parametrize(
    "secret",
    [
        manifest("Secret", data="t0p-secret"),
        manifest("Secret", data=["t0p-secret"]),
        manifest("Secret", data={"a": {"b": "t0p-secret"}}),
        manifest("Secret", stringData=["t0p-secret"]),
        manifest("Secret", stringData={"a": ["t0p-secret"]}),
        manifest("Secret", meta={"annotations": {LAST_APPLIED: '{"data": {"a": "t0p-secret"'}}),
        manifest("Secret", meta={"annotations": {LAST_APPLIED: '["t0p-secret"]'}}),
        applied(manifest("Secret"), manifest("Secret", stringData={"a": "t0p-secret"})),
    ],
)
def test_malformed_secret_never_shows_a_value(secret: Manifest) -> None:
    assert "t0p" not in json.dumps(mask_secrets([secret]))


def test_differences_of_a_secret_are_masked() -> None:
    desired, live = manifest("Secret", stringData={"a": "new"}), manifest("Secret", data={"a": "b2xk"})
    assert list_differing_fields(desired, live) == [("/data/a", "+" * 8, "+" * 12)]
    (missing_pair,) = compare_manifests([desired], {}, DiffOptions()).pairs
    assert "new" not in json.dumps(list_differences(missing_pair))
