"""Flags of `argosy render` set fields of the source and override those of the Application."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import UserError
from argosy.gitops.application import read_source
from argosy.gitops.workspace.helm_kustomize_render_flags import FLAGS, with_options

ROWS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({}, {"--helm-set": ["a=1"]}, {"helm": {"parameters": [{"name": "a", "value": "1"}]}}),
    ({}, {"--helm-set": ["a=b=c"]}, {"helm": {"parameters": [{"name": "a", "value": "b=c"}]}}),
    (
        {"helm": {"parameters": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}], "version": "v3"}},
        {"--helm-set-string": ["a=9"]},
        {
            "helm": {
                "parameters": [{"name": "b", "value": "2"}, {"name": "a", "value": "9", "forceString": True}],
                "version": "v3",
            }
        },
    ),
    ({"helm": {"valueFiles": ["a"]}}, {"--values": ["b"]}, {"helm": {"valueFiles": ["a", "b"]}}),
    ({}, {"--helm-set-file": ["a=f"]}, {"helm": {"fileParameters": [{"name": "a", "path": "f"}]}}),
    ({"path": "x"}, {"--nameprefix": "a-"}, {"path": "x", "kustomize": {"namePrefix": "a-"}}),
    ({}, {"--kustomize-replica": ["a=3"]}, {"kustomize": {"replicas": [{"name": "a", "count": 3}]}}),
    (
        {"kustomize": {"commonLabels": {"a": "1", "b": "2"}}},
        {"--kustomize-common-label": ["b=3"]},
        {"kustomize": {"commonLabels": {"a": "1", "b": "3"}}},
    ),
    ({}, {"--directory-recurse": True}, {"directory": {"recurse": True}}),
    ({}, {"--directory-recurse": False, "--values": [], "--nameprefix": None}, {}),
    (
        {},
        {"--jsonnet-tla-code": ["a=1+1"], "--jsonnet-ext-var-str": ["b=c"]},
        {
            "directory": {
                "jsonnet": {
                    "tlas": [{"name": "a", "value": "1+1", "code": True}],
                    "extVars": [{"name": "b", "value": "c"}],
                }
            }
        },
    ),
]


@pytest.mark.parametrize(("wire", "options", "expected"), ROWS)
def test_flags_override_the_fields_of_the_source(
    wire: dict[str, Any], options: dict[str, Any], expected: dict[str, Any]
) -> None:
    before = repr(wire)
    assert with_options(wire, options) == expected
    assert repr(wire) == before, "the Application itself must stay as it is"


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_every_flag_sets_a_field_that_a_source_has(flag: Any) -> None:
    value: Any = True if not flag.placeholder else ["a=1"] if flag.is_repeated else "a"
    assert read_source(with_options({}, {flag.name: value})) != read_source({})


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--helm-set", "a"), ("--helm-set", "=a"), ("--kustomize-replica", "a=many"), ("--plugin-env", "a")],
)
def test_malformed_flag_value_is_an_error_that_names_the_flag(flag: str, value: str) -> None:
    with pytest.raises(UserError, match=flag):
        with_options({}, {flag: [value]})
