"""Edits of YAML text: only the affected lines change, and the result has the requested values."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import ManifestError
from argosy.kube.objects import read_yaml, read_yaml_documents
from argosy.kube.objects.yaml_edits import REMOVED, YamlEdit, edited

APP = """\
# The application.
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: 'shop'   # a name
spec:
  source:
    targetRevision: "main"   # the branch

    path: a
  syncPolicy:
    # why these
    syncOptions:
      - CreateNamespace=true # it is new
      - PruneLast=true
  ignoreDifferences: []
"""


def one(text: str, path: tuple[str | int, ...], value: object = REMOVED, document: int = 0) -> str:
    return edited(text, [YamlEdit(path, value)], document_index=document, where="app.yaml")


def changed_lines(before: str, after: str) -> tuple[list[str], list[str]]:
    old, new = before.splitlines(), after.splitlines()
    while old and new and old[0] == new[0]:
        old, new = old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return old, new


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        (("spec", "source", "targetRevision"), "v2", ['    targetRevision: "main"   # the branch'],
         ['    targetRevision: "v2"   # the branch']),
        (("metadata", "name"), "yes", ["  name: 'shop'   # a name"], ["  name: 'yes'   # a name"]),
        (("spec", "source", "path"), "yes", ["    path: a"], ['    path: "yes"']),
        (("spec", "source", "path"), 5, ["    path: a"], ["    path: 5"]),
        (("spec", "syncPolicy", "syncOptions", 2), "Replace=true", [], ["      - Replace=true"]),
        (("spec", "syncPolicy", "syncOptions", 0), REMOVED, ["      - CreateNamespace=true # it is new"], []),
        (("spec", "syncPolicy", "automated", "prune"), True, [], ["    automated:", "      prune: true"]),
        (("spec", "ignoreDifferences"), REMOVED, ["  ignoreDifferences: []"], []),
        (("spec", "ignoreDifferences", 0), {"kind": "Route", "jsonPointers": ["/spec/host"]},
         ["  ignoreDifferences: []"],
         ["  ignoreDifferences:", "    - kind: Route", "      jsonPointers:", "        - /spec/host"]),
        (("metadata", "labels", "a.b/c"), "1", [], ["  labels:", '    a.b/c: "1"']),
        (("metadata", "name"), REMOVED, ["  name: 'shop'   # a name"], []),
        (("spec", "source", "path"), "two\nlines\n", ["    path: a"], ["    path: |", "      two", "      lines"]),
        (("spec", "source", "path"), {"x": 1}, ["    path: a"], ["    path:", "      x: 1"]),
        (("spec", "syncPolicy", "syncOptions"), ["CreateNamespace=true", "New=true", "PruneLast=true"], [],
         ["      - New=true"]),
        (("spec", "syncPolicy"), {"syncOptions": ["PruneLast=true"], "retry": {"limit": 3}},
         ["      - CreateNamespace=true # it is new", "      - PruneLast=true"],
         ["      - PruneLast=true", "    retry:", "      limit: 3"]),
    ],
)  # fmt: skip
def test_only_the_edited_lines_change(path: tuple[str | int, ...], value: Any, old: list[str], new: list[str]) -> None:
    after = one(APP, path, value)
    if path == ("metadata", "name") and value is REMOVED:
        assert after == APP.replace("metadata:\n  name: 'shop'   # a name\n", "metadata: {}\n")
        return
    assert changed_lines(APP, after) == (old, new)


@pytest.mark.parametrize(
    ("text", "path", "value", "result"),
    [
        ("a: [x, y]  # c\n", ("a", 2), "z", "a: [x, y, z]  # c\n"),
        ("a: [x, y,]\n", ("a", 2), "z", "a: [x, y, z,]\n"),
        ("a: [x, y]\n", ("a", 0), REMOVED, "a: [y]\n"),
        ("a: [x, y]\n", ("a", 1), REMOVED, "a: [x]\n"),
        ("a: [x]\n", ("a", 0), REMOVED, "a: []\n"),
        ("a: [x]\n", ("a", 1), "b, c", 'a: [x, "b, c"]\n'),
        ("a: {b: 1}\n", ("a", "c", "d"), "e", "a: {b: 1, c: {d: e}}\n"),
        ("a: {b: 1, c: 2}\n", ("a", "b"), REMOVED, "a: {c: 2}\n"),
        ("a: {b, c: 2}\n", ("a", "b"), 3, "a: {b: 3, c: 2}\n"),
        ('{"a": ["x"]}', ("a", 1), "y", '{"a": ["x", "y"]}'),
        ('{\n  "a": 1\n}\n', ("b",), "y", '{\n  "a": 1,\n  "b": "y"\n}\n'),
        ("a:\n- x\nb: 1\n", ("a", 1), "z", "a:\n- x\n- z\nb: 1\n"),
        ("a:\n- x\nb: 1\n", ("c",), ["z"], "a:\n- x\nb: 1\nc:\n- z\n"),
        ("a:\n    b:\n        c: 1\n", ("d", "e"), 1, "a:\n    b:\n        c: 1\nd:\n    e: 1\n"),
        ("a:\nb: 1\n", ("a",), "x", "a: x\nb: 1\n"),
        ("a:  # c\nb: 1\n", ("a", "k"), "x", "a:  # c\n  k: x\nb: 1\n"),
        ("a: ~\n", ("a", 0), "x", "a:\n- x\n"),
        ("- a: 1\n  b: 2\n- c: 3\n", (0, "a"), REMOVED, "- b: 2\n- c: 3\n"),
        ("- a: 1\n  # about b\n  b: 2\n", (0, "a"), REMOVED, "-\n  # about b\n  b: 2\n"),
        ("- a: 1\n  b: 2\n- c: 3\n", (1, "c"), REMOVED, "- a: 1\n  b: 2\n- {}\n"),
        ("- a: 1\n", (1,), {"b": [1, 2], "c": {}}, "- a: 1\n- b:\n  - 1\n  - 2\n  c: {}\n"),
        ("- x # c\n", (0,), {"b": 1, "d": 2}, "- b: 1 # c\n  d: 2\n"),
        ("a: | # keep\n  text\n\nb: 1\n", ("a",), "x", "a: x # keep\n\nb: 1\n"),
        ("a: | # keep\n  text\nb: 1\n", ("a",), "x\ny\n", "a: | # keep\n  x\n  y\nb: 1\n"),
        ("a: |+\n  text\n\nb: 1\n", ("b",), REMOVED, "a: |+\n  text\n\n"),
        ("a: 1\r\nb: 2\r\n", ("c",), [1], "a: 1\r\nb: 2\r\nc:\r\n- 1\r\n"),
        ("a: 1\r\nb: 2\r\n", ("a",), REMOVED, "b: 2\r\n"),
        ("a: 1\nb: 2", ("c",), 3, "a: 1\nb: 2\nc: 3"),
        ("a: 1\nb: 2", ("b",), REMOVED, "a: 1"),
        ("a: 1\nb: 2", ("b",), "x\ny\n", "a: 1\nb: |\n  x\n  y\n"),
        ("", ("a", "b"), 1, "a:\n  b: 1\n"),
        ("# only a comment\n", ("a",), 1, "# only a comment\na: 1\n"),
        ("a: 1\n", ("a",), REMOVED, "{}\n"),
        ("a:\n  - - x\n    - y\n", ("a", 0, 0), REMOVED, "a:\n  - - y\n"),
        ("\ufeffa: é # ü\nb: 𝒳\n", ("b",), "ö", "\ufeffa: é # ü\nb: ö\n"),
        ("a: 'it''s'\n", ("a",), "that's", "a: 'that''s'\n"),
        ("a: 1\n", ("b",), "2020-01-01", 'a: 1\nb: "2020-01-01"\n'),
    ],
)  # fmt: skip
def test_new_nodes_follow_the_style_of_the_file(
    text: str, path: tuple[str | int, ...], value: Any, result: str
) -> None:
    assert one(text, path, value) == result


def test_other_documents_are_kept_and_empty_ones_are_not_counted() -> None:
    text = "---\n# nothing\n---\na: 1 # x\n---\na: 2\n...\n"
    assert one(text, ("a",), 3, document=1) == text.replace("a: 2", "a: 3")
    assert one(text, ("a",), 3) == text.replace("a: 1", "a: 3")
    with pytest.raises(ManifestError, match="has 2 documents, not 3"):
        one(text, ("a",), 3, document=2)


def test_edit_without_effect_keeps_every_byte() -> None:
    text = "a:   'x'   \nb: [ ]\n"
    assert edited(text, [YamlEdit(("a",), "x"), YamlEdit(("b",), []), YamlEdit(("c", "d"))]) == text


def test_edits_are_applied_in_order() -> None:
    text = "a:\n  - x\n"
    after = edited(
        text, [YamlEdit(("a", 1), "y"), YamlEdit(("a", 2), "z"), YamlEdit(("a", 0)), YamlEdit(("b", "c"), True)]
    )
    assert read_yaml(after) == {"a": ["y", "z"], "b": {"c": True}}


@pytest.mark.parametrize(
    ("text", "path", "why"),
    [
        ("a: &x\n  b: 1\nc: *x\n", ("a", "b"), "2: edit it by hand: a.b goes through the anchor &x"),
        ("a: &x\n  b: 1\nc: *x\n", ("c", "b"), "3: edit it by hand: c.b goes through the alias \\*x"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n  d: 1\n", ("c", "d"), "4: edit it by hand: c.d goes through a mapping with a"),
        ("a: &x 1\nb: *x\n", ("a",), "1: edit it by hand: a has the anchor &x"),
        ("a: {b: &x 1}\nb: *x\n", ("a",), "1: edit it by hand: a is written in a way"),
        ("? a\n: 1\n", ("a",), "1: edit it by hand: a goes through a mapping or list of unusual form"),
        ("a: 1\n", ("a", "b"), "1: edit it by hand: a.b goes through a single value"),
        ("a: [1]\n", ("a", 3), "1: edit it by hand: a.3 is index 3 of a list of 1"),
        ("a: 1\na: 2\n", ("a",), "1: edit it by hand: a goes through a mapping that has a twice"),
        ("a:\n  x\x85b: 2\n", ("b",), "2: edit it by hand: b is in a file with line breaks other than LF and CRLF"),
        ("a: 1\rb: 2\n", ("b",), "edit it by hand: b is in a file with line breaks other than LF and CRLF"),
        ("a: b: c\n", ("a",), "app.yaml:1: "),
    ],
)
def test_unsafe_edit_is_an_error_that_asks_for_a_manual_edit(text: str, path: tuple[str | int, ...], why: str) -> None:
    with pytest.raises(ManifestError, match=why) as caught:
        one(text, path, "new")
    assert str(caught.value).startswith("app.yaml:")


def test_alias_can_be_replaced_by_a_value() -> None:
    assert one("a: &x 1\nb: *x # c\n", ("b",), 2) == "a: &x 1\nb: 2 # c\n"


def test_edit_distinguishes_1_from_true_and_1_5() -> None:
    assert read_yaml_documents(one("a: 1\n", ("a",), True)) == [{"a": True}]
    assert one("a: 1\n", ("a",), 1.0) == "a: 1\n"
    assert one("a: 1\n", ("a",), 1.5) == "a: 1.5\n"


RULES = """\
rules:
  # the first
  - a: 1
  # the second,
  # in two lines
  - b: 2

  # a heading for two
  - c: 3
  - d: 4
  # the last
  - e: 5
# of what follows
more: 1
"""


@pytest.mark.parametrize(
    ("at", "gone"),
    [
        (0, "  # the first\n  - a: 1\n"),
        (1, "  # the second,\n  # in two lines\n  - b: 2\n"),
        (2, "  - c: 3\n"),
        (3, "  - d: 4\n"),
        (4, "  # the last\n  - e: 5\n"),
    ],
)
def test_comment_of_a_removed_item_goes_unless_it_heads_others(at: int, gone: str) -> None:
    assert edited(RULES, [YamlEdit(("rules", at))]) == RULES.replace(gone, "")
    windows = RULES.replace("\n", "\r\n")
    assert edited(windows, [YamlEdit(("rules", at))]) == windows.replace(gone.replace("\n", "\r\n"), "")
