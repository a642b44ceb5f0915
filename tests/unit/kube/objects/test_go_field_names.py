"""Field names are matched as Go's encoding/json matches them: without case, and of two spellings the last counts."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.objects.go_field_names import spell_fields_like_go


# The answers of sigs.k8s.io/yaml to the same documents.
@pytest.mark.parametrize(
    ("values", "pointers"),
    [
        ({"jsonpointers": ["a"]}, ["a"]),
        ({"JSONPOINTERS": ["b"]}, ["b"]),
        ({"j\u017fonpointers": ["a"]}, ["a"]),
        ({"jsonPointers": ["a"], "jsonpointers": ["b"]}, ["b"]),
        ({"jsonpointers": ["a"], "jsonPointers": ["b"]}, ["a"]),
        ({"JSONPOINTERS": ["a"], "jsonPointers": ["b"]}, ["b"]),
        ({"jsonPointers": ["a"], "jsonpointers": None}, None),
    ],
)
def test_field_is_found_in_any_case_and_the_last_spelling_counts(values: dict[str, Any], pointers: Any) -> None:
    assert spell_fields_like_go(values, ["jsonPointers"]) == {"jsonPointers": pointers}


def test_other_keys_stay_as_they_are() -> None:
    assert spell_fields_like_go({"Other": 1, 2: 3}, ["kinds"]) == {"Other": 1, 2: 3}
