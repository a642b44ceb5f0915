"""RBAC escalation check: missing permissions are listed by resource and verb, as on a real server."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from argosy.errors import ClusterError
from argosy.sandbox.apiserver.escalation import MAX_LISTED_PERMISSIONS, find_uncovered, format_permissions
from support.paths import DATA

RECORDED = DATA / "rbac" / "covers.jsonl.gz"
FIELDS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


def rules_from_row(rows: list[list[list[str]]]) -> list[dict[str, Any]]:
    return [{field: values for field, values in zip(FIELDS, row, strict=True) if values} for row in rows]


def as_set(rules: list[dict[str, Any]]) -> set[str]:
    return {json.dumps(rule, sort_keys=True) for rule in rules}


def test_uncovered_rules_equal_recorded_results_of_kubernetes() -> None:
    lines = gzip.decompress(RECORDED.read_bytes()).decode().splitlines()
    wrong = []
    for line in lines:
        own, granted, uncovered = (rules_from_row(part) for part in json.loads(line))
        if as_set(find_uncovered(own, granted)) != as_set(uncovered):
            wrong.append(line)
    assert len(lines) == 3000 and not wrong, f"{len(wrong)} of {len(lines)} differ: {wrong[:3]}"


def test_rule_is_split_into_single_permissions() -> None:
    rule = {"apiGroups": [""], "resources": ["pods", "secrets"], "resourceNames": ["a"], "verbs": ["get"]}
    assert find_uncovered([], [rule]) == [
        {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"], "verbs": ["get"]},
    ]
    assert find_uncovered([], [{"nonResourceURLs": ["/a"], "verbs": ["get", "put"]}]) == [
        {"nonResourceURLs": ["/a"], "verbs": ["get"]},
        {"nonResourceURLs": ["/a"], "verbs": ["put"]},
    ]


def test_verbs_of_one_resource_share_a_line_and_lines_are_sorted() -> None:
    rule = {"apiGroups": ["apps", ""], "resources": ["x"], "verbs": ["get", "delete"]}
    assert format_permissions(find_uncovered([], [rule])).split("\n") == [
        '{APIGroups:[""], Resources:["x"], Verbs:["get" "delete"]}',
        '{APIGroups:["apps"], Resources:["x"], Verbs:["get" "delete"]}',
    ]


def test_non_resource_urls_have_a_line_per_verb() -> None:
    rule = {"nonResourceURLs": ["/a"], "verbs": ["get", "put"]}
    assert format_permissions(find_uncovered([], [rule])).count("\n") == 1


def many(word: str, count: int = 3000) -> list[str]:
    return [f"{word}{number}" for number in range(count)]


LARGE_RULE = {"apiGroups": [""], "resources": many("r"), "resourceNames": many("n"), "verbs": many("v")}


def test_rule_with_billions_of_combinations_is_compared_unexpanded() -> None:
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    halves = [{**LARGE_RULE, "verbs": many("v")[:1500]}, {**LARGE_RULE, "verbs": many("v")[1500:]}]
    for own in ([everything], [LARGE_RULE], halves):
        assert find_uncovered(own, [LARGE_RULE]) == []
    all_but_one = {**LARGE_RULE, "resourceNames": many("n")[:-1]}
    rest = [{**LARGE_RULE, "verbs": many("v")[:-1]}, {**LARGE_RULE, "resources": many("r")[:-1]}]
    assert find_uncovered([all_but_one, *rest], [LARGE_RULE]) == [
        {"apiGroups": [""], "resources": ["r2999"], "resourceNames": ["n2999"], "verbs": ["v2999"]}
    ]


def test_number_of_listed_missing_permissions_is_limited() -> None:
    missing = find_uncovered([], [LARGE_RULE])
    assert len(missing) == MAX_LISTED_PERMISSIONS
    assert missing[0] == {"apiGroups": [""], "resources": ["r0"], "resourceNames": ["n0"], "verbs": ["v0"]}
    assert format_permissions(missing).endswith("\nand more") and "and more" not in format_permissions(missing[:-1])


def test_rules_with_too_many_combinations_are_rejected() -> None:
    def find_in_square(size: int) -> list[dict[str, Any]]:
        """Each own rule lacks one resource of a verb, or one verb of a resource, so none covers a whole row."""
        verbs, resources = many("v", size), many("r", size)
        square = {"apiGroups": [""], "resources": resources, "verbs": verbs}
        rows = [
            {**square, "verbs": [verb], "resources": [*resources[:at], *resources[at + 1 :]]}
            for at, verb in enumerate(verbs)
        ]
        columns = [{**square, "resources": [resource], "verbs": verbs[:-1]} for resource in resources]
        return find_uncovered([*rows, *columns], [square])

    assert find_in_square(50) == [{"apiGroups": [""], "resources": ["r49"], "verbs": ["v49"]}]
    with pytest.raises(ClusterError, match="too many combinations") as refused:
        find_in_square(400)
    assert refused.value.code == 400
