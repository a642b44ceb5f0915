"""Tests custom resources with a known CRD schema: list keys are used, and defaults are not drift."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.diff import CrdShapes, DiffOptions, list_differences
from argosy.kube.objects import Manifest
from support.comparisons import managed, pair, widget

ITEM = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "string"}, "mode": {"type": "string", "default": "rw"}, "x": {"type": "integer"}},
}
DISKS = {
    "type": "array",
    "items": ITEM,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["id"],
}


def definition(schema: Any = None, version: str = "v1") -> Manifest:
    spec = {"type": "object", "properties": {"disks": DISKS, "size": {"type": "string", "default": "small"}}}
    openapi_schema = schema if schema is not None else {"type": "object", "properties": {"spec": spec}}
    return {
        "metadata": {"name": "widgets.example.io", "uid": "u", "resourceVersion": "1"},
        "spec": {
            "group": "example.io",
            "names": {"kind": "Widget"},
            "versions": [{"name": version, "schema": {"openAPIV3Schema": openapi_schema}}],
        },
    }


SHAPES = CrdShapes(lambda: [definition()])
OWNED = {"f:spec": {"f:disks": {'k:{"id":"a"}': {".": {}, "f:id": {}}}}}


def test_list_elements_are_matched_by_the_list_map_keys() -> None:
    desired = widget({"disks": [{"id": "a", "x": 1}, {"id": "b", "x": 2}]})
    live = widget({"disks": [{"id": "b", "x": 5, "mode": "rw"}, {"id": "a", "x": 1, "mode": "rw"}]})
    differences = list_differences(pair(desired, live, find_shape=SHAPES), find_shape=SHAPES)
    assert ("/spec/disks/0/x", 2, 5) in [
        (difference.pointer, difference.desired, difference.live) for difference in differences
    ]


def test_schema_defaults_are_not_drift_with_server_side_apply() -> None:
    live = managed(widget({"disks": [{"id": "a", "mode": "rw"}], "size": "small"}), "argocd-controller", OWNED)
    live["metadata"]["managedFields"][0]["operation"] = "Apply"
    rules = DiffOptions(server_side_apply=True)
    assert not pair(widget({"disks": [{"id": "a"}]}), live, rules, find_shape=SHAPES).differs


def test_shape_is_reused_until_the_crd_changes() -> None:
    definitions = [definition()]
    shapes = CrdShapes(lambda: definitions)
    first = shapes("example.io/v1", "Widget")
    assert first is not None
    assert shapes("example.io/v1", "Widget") is first
    definitions[0] = definition()
    definitions[0]["metadata"]["resourceVersion"] = "2"
    assert shapes("example.io/v1", "Widget") is not first


@pytest.mark.parametrize(
    ("api_version", "kind"), [("example.io/v2", "Widget"), ("example.io/v1", "Gadget"), ("other.io/v1", "Widget")]
)
def test_other_kinds_and_versions_have_no_shape(api_version: str, kind: str) -> None:
    assert SHAPES(api_version, kind) is None


@pytest.mark.parametrize("schema", [5, [], {"type": 5}, {"properties": 5}, {"properties": {"spec": 5}}, {"items": "x"}])
def test_unreadable_schema_raises_no_error(schema: Any) -> None:
    shapes = CrdShapes(lambda: [definition(schema), {"spec": None}, {}])
    shapes("example.io/v1", "Widget")
    assert not pair(widget({"a": 1}), widget({"a": 1, "b": 2}), find_shape=CrdShapes(lambda: [])).differs
