"""Where fields of plain files are written, and what changes leave of that."""

from __future__ import annotations

import pickle
from functools import partial

import pytest

from argosy.gitops.application.step_results import Origin
from argosy.gitops.render.origins import Guide, LazyOrigins, changed, of_documents, written
from argosy.kube.names import ResourceKey

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
def test_a_field_of_a_plain_file_is_found_at_its_line(key: ResourceKey, pointer: str, line: int) -> None:
    origins = LazyOrigins(partial(of_documents, [("a.yaml", TEXT)]))
    assert origins.find(key, pointer) == Origin("a.yaml", line)
    assert pickle.loads(pickle.dumps(origins)).find(key, pointer) == Origin("a.yaml", line)


def test_what_is_not_rendered_has_no_origin() -> None:
    assert LazyOrigins(partial(of_documents, [("a.yaml", TEXT)])).find(WEB._replace(name="other"), "") is None


def test_nothing_is_traced_before_somebody_asks() -> None:
    LazyOrigins(lambda: pytest.fail("traced"))


def test_what_a_change_leaves_keeps_its_origin_wherever_it_moves() -> None:
    before = {"list": [{"name": "a", "v": 1}, {"name": "b", "v": 1}], "text": "old", "same": [1, 2]}
    after = {"list": [{"name": "b", "v": 2}, {"name": "n"}, {"name": "a", "v": 1}], "text": "new", "same": [1, 2]}
    base, overlay = Origin("base.yaml", 1), Origin("overlay.yaml", 9)
    tree = changed(before, written(before, Guide(base)), after, Guide(overlay))
    assert tree.at("/list/0/v") == Origin("overlay.yaml", 9, overrules=base)
    assert tree.at("/list/0/name") == base
    assert tree.at("/list/1/name") == overlay
    assert tree.at("/list/2/v") == base
    assert tree.at("/text") == Origin("overlay.yaml", 9, overrules=base)
    assert tree.at("/same/1") == base


def test_without_a_guide_a_changed_value_keeps_its_origin() -> None:
    tree = changed({"a": "x"}, written({"a": "x"}, Guide(Origin("f", 3))), {"a": "y", "b": [1]}, None)
    assert tree.at("/a") == tree.at("/b/0") == Origin("f", 3)
