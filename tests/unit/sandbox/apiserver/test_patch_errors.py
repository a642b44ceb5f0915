"""Errors for patches whose result cannot be decoded as its kind, with the messages of a real server."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.client import PatchKind
from argosy.sandbox.apiserver.undecodable_patch_result_errors import (
    build_undecodable_patch_error,
    format_not_a_list_error,
)

MISFIT = "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"


@pytest.mark.parametrize(
    ("why", "said"),
    [
        (MISFIT, "unrecognized type: int32"),
        ("json: cannot unmarshal number into Go struct field X.data of type string", "cannot convert int64 to string"),
        ("json: cannot unmarshal number 1.5 into Go struct field X.r of type int32", "cannot convert float64 to int32"),
        (
            "json: cannot unmarshal object into Go struct field X.y of type []v1.Container",
            "cannot restore slice from map",
        ),
        (
            "json: cannot unmarshal bool into Go struct field Y of type map[string]string",
            "cannot restore map from bool",
        ),
        (
            "json: cannot unmarshal array into Go struct field X.y of type v1.PodSpec",
            "cannot restore struct from: slice",
        ),
        ("illegal base64 data at input byte 3", "error decoding from json: illegal base64 data at input byte 3"),
        ('strict decoding error: unknown field "x"', 'strict decoding error: unknown field "x"'),
    ],
)
def test_strategic_patch_error_shows_the_patch_and_the_go_reason(why: str, said: str) -> None:
    error = build_undecodable_patch_error(PatchKind.STRATEGIC, {"spec": {"replicas": "x"}}, {"made": 1}, why)
    assert error.message == f' "" is invalid: patch: Invalid value: "map[spec:map[replicas:x]]": {said}'
    assert error.code == 422


def test_strategic_patch_error_omits_directives_and_ordered_lists() -> None:
    patch = {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "a"}], "$patch": "merge", "x": 1}
    assert '"map[x:1]"' in build_undecodable_patch_error(PatchKind.STRATEGIC, patch, {}, MISFIT).message


def test_merge_patch_error_shows_the_patched_object() -> None:
    error = build_undecodable_patch_error(PatchKind.MERGE, {"spec": None}, {"kind": "X"}, MISFIT)
    assert error.message == f' "" is invalid: patch: Invalid value: "{{\\"kind\\":\\"X\\"}}": {MISFIT}'


@pytest.mark.parametrize(("patch", "word"), [({}, "object"), ("x", "string"), (1, "number"), (True, "bool")])
def test_json_patch_that_is_not_a_list_gives_the_go_error(patch: Any, word: str) -> None:
    expected = f"error decoding patch: json: cannot unmarshal {word} into Go value of type []handlers.jsonPatchOp"
    assert format_not_a_list_error(patch) == expected
