"""describe_changes: the path of each changed field, then the old and the new value in YAML or JSON form."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.patch.change_sentences import describe_changes
from argosy.kube.patch.merge_patch import diff

LOOK = ["get", "list", "watch"]
COMMAND = ["argosy", "controller", "--namespace", "argosy", "--port", "8082", "--shards", "auto", "--workers", "9"]


def rule(*verbs: str, resource: str = "*") -> dict[str, Any]:
    return {"apiGroups": ["*"], "resources": [resource], "verbs": list(verbs)}


@pytest.mark.parametrize(
    ("live", "after", "expected"),
    [
        ({"rules": [rule(*LOOK)]}, {"rules": [rule("*")]}, ["rules[0].verbs: get, list, watch → *"]),
        (
            {"rules": [rule(*LOOK), rule("patch", resource="secrets")]},
            {"rules": [rule(*LOOK)]},
            ['rules[1]: {"apiGroups": ["*"], "resources": ["secrets"], "verbs": ["patch"]} is removed'],
        ),
        (
            {"rules": [rule(*LOOK)]},
            {"rules": [rule("bind", resource="roles"), rule(*LOOK)]},
            ['rules[0]: {"apiGroups": ["*"], "resources": ["roles"], "verbs": ["bind"]} is added'],
        ),
        (
            {"a": COMMAND},
            {"a": [*COMMAND[:5], "8083", *COMMAND[6:], "-x"]},
            ["a[5]: 8082 → 8083", "a[10]: -x is added"],
        ),
        ({"a": True, "b": None}, {"a": False, "b": []}, ["a: true → false", "b: [] is added"]),
        (
            {"a": f"{'x' * 90}1{'y' * 90}"},
            {"a": f"{'x' * 90}2{'y' * 90}"},
            [f"a: …{'x' * 16}1{'y' * 16}… → …{'x' * 16}2{'y' * 16}…"],
        ),
        ({"a": "1", "b": ["1"]}, {"a": 1, "b": [1]}, ['a: "1" → 1', 'b: ["1"] → [1]']),
        ({"a": {"b": [{"c": {"d": "1"}}]}}, {"a": {"b": [{"c": {"d": "2"}}]}}, ["a.b[0].c.d: 1 → 2"]),
        ({"a": "one\ntwo"}, {"a": ""}, ['a: "one\\ntwo" → ""']),
    ],
)
def test_changes_are_described_by_path_and_not_in_python_syntax(
    live: dict[str, Any], after: dict[str, Any], expected: list[str]
) -> None:
    assert list(describe_changes(live, diff(live, after))) == expected
