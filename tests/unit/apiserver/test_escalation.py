"""What somebody may not hand out is listed by resource, with the verbs that are missing, as a real server does it."""

from __future__ import annotations

from argosy.apiserver.escalation import shown, single_permissions


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
