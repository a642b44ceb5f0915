"""Origins of fields in plain files, and how changes affect them."""

from __future__ import annotations

import pickle
from functools import partial

import pytest

from argosy.gitops.application.step_results import FieldOrigin
from argosy.gitops.render.field_origins import (
    FieldAuthor,
    LazyOrigins,
    trace_changed_value,
    trace_documents,
    trace_new_value,
)
from argosy.kube.resource_key import ResourceKey

TEXT = b"""# two
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {a/b: c}
spec:
  template:
    spec:
      containers:
      - name: one
        image: x
---
apiVersion: v1
kind: ConfigMapList
items:
- metadata: {name: a, namespace: n}
  data:
    key: value
"""
WEB = ResourceKey("apps", "Deployment", "", "web")


@pytest.mark.parametrize(
    ("key", "pointer", "line"),
    [
        (WEB, "", 2),
        (WEB, "/metadata/name", 5),
        (WEB, "/metadata/labels/a~1b", 6),
        (WEB, "/spec/template/spec/containers/0/image", 12),
        (WEB, "/spec/template/spec/containers/1/image", 10),
        (WEB._replace(namespace="given"), "/metadata/name", 5),
        (ResourceKey("", "ConfigMap", "n", "a"), "/data/key", 19),
    ],
)
def test_field_of_a_plain_file_is_traced_to_its_line(key: ResourceKey, pointer: str, line: int) -> None:
    origins = LazyOrigins(partial(trace_documents, [("a.yaml", TEXT)]))
    assert origins.find(key, pointer) == FieldOrigin("a.yaml", line)
    assert pickle.loads(pickle.dumps(origins)).find(key, pointer) == FieldOrigin("a.yaml", line)


def test_object_that_is_not_rendered_has_no_origin() -> None:
    assert LazyOrigins(partial(trace_documents, [("a.yaml", TEXT)])).find(WEB._replace(name="other"), "") is None


def test_origins_are_traced_lazily() -> None:
    LazyOrigins(lambda: pytest.fail("traced"))


def test_unchanged_value_keeps_its_origin_if_it_moves() -> None:
    before = {"list": [{"name": "a", "v": 1}, {"name": "b", "v": 1}], "text": "old", "same": [1, 2]}
    after = {"list": [{"name": "b", "v": 2}, {"name": "n"}, {"name": "a", "v": 1}], "text": "new", "same": [1, 2]}
    base, overlay = FieldOrigin("base.yaml", 1), FieldOrigin("overlay.yaml", 9)
    tree = trace_changed_value(before, trace_new_value(before, FieldAuthor(base)), after, FieldAuthor(overlay))
    assert tree.find_origin("/list/0/v") == FieldOrigin("overlay.yaml", 9, overrides=base)
    assert tree.find_origin("/list/0/name") == base
    assert tree.find_origin("/list/1/name") == overlay
    assert tree.find_origin("/list/2/v") == base
    assert tree.find_origin("/text") == FieldOrigin("overlay.yaml", 9, overrides=base)
    assert tree.find_origin("/same/1") == base


def test_changed_value_without_an_author_keeps_its_origin() -> None:
    tree = trace_changed_value(
        {"a": "x"}, trace_new_value({"a": "x"}, FieldAuthor(FieldOrigin("f", 3))), {"a": "y", "b": [1]}, None
    )
    assert tree.find_origin("/a") == tree.find_origin("/b/0") == FieldOrigin("f", 3)
