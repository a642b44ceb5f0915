"""What somebody may not hand out is listed by resource, with the verbs that are missing, as a real server does it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from argosy.apiserver.escalation import find_uncovered, shown, single_permissions

RECORDED = Path(__file__).parents[2] / "data" / "rbac" / "covers.jsonl.gz"
FIELDS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


def rules_from_row(rows: list[list[list[str]]]) -> list[dict[str, Any]]:
    return [{field: values for field, values in zip(FIELDS, row, strict=True) if values} for row in rows]


def as_set(rules: list[dict[str, Any]]) -> set[str]:
    return {json.dumps(rule, sort_keys=True) for rule in rules}


def test_rules_cover_each_other_as_in_kubernetes_own_code() -> None:
    lines = gzip.decompress(RECORDED.read_bytes()).decode().splitlines()
    wrong = []
    for line in lines:
        own, granted, uncovered = (rules_from_row(part) for part in json.loads(line))
        if as_set(find_uncovered(own, granted)) != as_set(uncovered):
            wrong.append(line)
    assert len(lines) == 3000 and not wrong, f"{len(wrong)} of {len(lines)} differ: {wrong[:3]}"


def test_a_rule_is_taken_apart_into_single_permissions() -> None:
    rule = {"apiGroups": [""], "resources": ["pods", "secrets"], "resourceNames": ["a"], "verbs": ["get"]}
    assert list(single_permissions(rule)) == [
        {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"], "verbs": ["get"]},
    ]
    assert list(single_permissions({"nonResourceURLs": ["/a"], "verbs": ["get", "put"]})) == [
        {"nonResourceURLs": ["/a"], "verbs": ["get"]}, {"nonResourceURLs": ["/a"], "verbs": ["put"]},
    ]


def test_verbs_on_the_same_resource_are_one_line_and_lines_are_sorted() -> None:
    rule = {"apiGroups": ["apps", ""], "resources": ["x"], "verbs": ["get", "delete"]}
    assert shown(list(single_permissions(rule))).split("\n") == [
        '{APIGroups:[""], Resources:["x"], Verbs:["get" "delete"]}',
        '{APIGroups:["apps"], Resources:["x"], Verbs:["get" "delete"]}',
    ]


def test_paths_keep_a_line_for_each_verb() -> None:
    rule = {"nonResourceURLs": ["/a"], "verbs": ["get", "put"]}
    assert shown(list(single_permissions(rule))).count("\n") == 1
