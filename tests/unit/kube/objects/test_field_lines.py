"""Line numbers of manifest fields and of lines in multi-line text values."""

from __future__ import annotations

import json

import pytest

from argosy.kube.objects import read_manifests
from argosy.kube.objects.field_lines import FieldLines

CM = """\
# a comment
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm}
data:
  plain: 3
  quoted: "a\\nb\\nc"
  block: |

    first
    second
  resource.customizations: |
    # another
    apps/Deployment:
      health.lua: |
        one
        two
      actions: |
        definitions:
        - name: a
          action.lua: |
            three
            four
---
kind: List
apiVersion: v1
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: x}
  data: {a: b}
"""
MAP = ("data", "resource.customizations")
DEPLOYMENT = (*MAP, "apps/Deployment")
ACTION = (*DEPLOYMENT, "actions", "definitions", 0, "action.lua")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("data", "plain"), 6),
        (("data", "block"), 8),
        (MAP, 12),
        (DEPLOYMENT, 14),
        ((*DEPLOYMENT, "health.lua"), 15),
        (ACTION, 21),
        (("data", "not there"), 5),
        ((), 2),
    ],
)
def test_line_of_a_field_is_the_line_of_its_key(path: tuple[str | int, ...], line: int) -> None:
    assert FieldLines(CM).find_field_line(0, path) == line


@pytest.mark.parametrize(
    ("path", "line", "in_file"),
    [
        (("data", "block"), 2, 10),
        ((*DEPLOYMENT, "health.lua"), 2, 17),
        (ACTION, 2, 23),
        (("data", "quoted"), 3, 7),
        (("data", "block"), 99, 11),
    ],
)
def test_text_value_line_is_mapped_to_the_file_line(path: tuple[str | int, ...], line: int, in_file: int) -> None:
    assert FieldLines(CM).find_text_line(0, path, line) == in_file


def test_items_of_a_list_have_their_own_lines() -> None:
    assert len(read_manifests(CM)) == 2
    assert FieldLines(CM).find_field_line(1, ("data", "a")) == 31


def test_unknown_field_is_on_the_first_line() -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "x\ny"}})
    assert FieldLines(text).find_field_line(7, ()) == 1
    assert FieldLines(text).find_text_line(0, ("data", "a"), 2) == 1
    assert FieldLines("a: [").find_field_line(0, ("a",)) == 1
