"""Parsing of field paths as users write them."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import UserError
from argosy.gitops.analysis.field_path_parser import parse_field_path

MANIFEST: dict[str, Any] = {
    "metadata": {"annotations": {"example.org/a.b": "1"}},
    "spec": {"replicas": 1, "containers": [{"name": "a", "image": "x"}, {"name": "b", "ports": [{"port": 80}]}]},
}


@pytest.mark.parametrize(
    "path, pointer",
    [
        (".spec.replicas", "/spec/replicas"),
        ("spec.replicas", "/spec/replicas"),
        ("/spec/replicas", "/spec/replicas"),
        (".spec.containers[1].name", "/spec/containers/1/name"),
        ('.spec.containers[name="b"].ports[port=80]', "/spec/containers/1/ports/0"),
        ("spec.containers[name=a]", "/spec/containers/0"),
        ('.metadata.annotations["example.org/a.b"]', "/metadata/annotations/example.org~1a.b"),
        ("/metadata/annotations/example.org~1a.b", "/metadata/annotations/example.org~1a.b"),
        ("/spec/containers/1", "/spec/containers/1"),
    ],
)
def test_field_path_notations_resolve_to_a_json_pointer(path: str, pointer: str) -> None:
    assert parse_field_path(path, MANIFEST) == pointer


@pytest.mark.parametrize(
    "path, said",
    [
        (".spec.replica", "did you mean replicas?"),
        (".spec.other", "existing fields: containers, replicas"),
        (".spec.containers[2]", "the list of 2 has no 2"),
        (".spec.containers[name=c]", 'has no [name="c"]'),
        (".spec.replicas.deeper", "existing fields: nothing"),
        ("..", "is not a field path"),
        (".spec[", "is not a field path"),
        (".", "is not a field path"),
    ],
)
def test_missing_field_or_invalid_path_is_an_error_with_a_hint(path: str, said: str) -> None:
    with pytest.raises(UserError, match="FIELD") as raised:
        parse_field_path(path, MANIFEST)
    assert said in str(raised.value)
