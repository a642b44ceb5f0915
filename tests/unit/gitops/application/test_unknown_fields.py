"""Unknown Application fields are reported with the nearest known field; required source fields are checked."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.application import read_source
from argosy.gitops.application.unknown_fields import SPEC_FIELDS, TOOL_FIELDS, find_missing_field, list_unknown_fields


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        ({"pth": "a"}, [("pth", "path")]),
        ({"repoUrl": "a"}, [("repoUrl", "repoURL")]),
        ({"helm": {"valuesFiles": []}}, [("helm.valuesFiles", "valueFiles")]),
        ({"kustomize": {"nameprefix": "a"}}, [("kustomize.nameprefix", "namePrefix")]),
        ({"kustomize": {"image": ["a"]}}, [("kustomize.image", "images")]),
        ({"helm": {"parameters": [{"name": "a"}, {"nme": "b"}]}}, [("helm.parameters[1].nme", "name")]),
        ({"directory": {"jsonnet": {"extVar": []}}}, [("directory.jsonnet.extVar", "extVars")]),
        ({"zzzz": 1}, [("zzzz", "")]),
        ({"helm": {"valuesObject": {"any": {"thing": 1}}}, "kustomize": {"commonLabels": {"a": "b"}}}, []),
        ({"kustomize": {"patches": [{"target": {"kind": "A"}, "options": {"allowNameChange": True}}]}}, []),
        ({"path": "a", "helm": None, "plugin": {"env": [{"name": "a", "value": "b"}]}}, []),
    ],
)
def test_unknown_source_field_is_reported_with_the_nearest_known_field(
    wire: Any, expected: list[tuple[str, str]]
) -> None:
    assert [(field.text, field.suggestion) for field in list_unknown_fields(wire)] == expected


def test_unknown_fields_are_checked_against_the_given_field_map() -> None:
    (spec,) = list_unknown_fields({"sorce": {"path": "a"}, "sources": [{"path": "b"}]}, SPEC_FIELDS)
    assert spec.message == "sorce is not a known field and is ignored; did you mean source?"
    assert [field.text for field in list_unknown_fields({"path": "a", "kustomize": {}}, TOOL_FIELDS)] == ["path"]


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        ({"path": "a"}, "repoURL is empty"),
        ({"repoURL": "https://host/a"}, "has none of path, chart and ref"),
        ({"repoURL": "https://host/a", "path": "."}, ""),
        ({"repoURL": "https://host/a", "ref": "values"}, ""),
        ({"repoURL": "https://host/a", "chart": "a", "targetRevision": "1.0.0"}, ""),
        ({"repoURL": "https://host/a", "chart": "a"}, "targetRevision is required"),
    ],
)
def test_source_needs_a_repo_url_and_a_path_chart_or_ref(wire: Any, said: str) -> None:
    assert find_missing_field(read_source(wire)).startswith(said)
    assert bool(find_missing_field(read_source(wire))) == bool(said)
