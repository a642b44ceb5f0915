"""Kubernetes objects read from YAML text, and the errors of invalid objects."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import ManifestError
from argosy.kube.objects import get_annotation, key_of, list_desired_keys, read_manifests
from argosy.kube.resource_key import ResourceKey

OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


def test_all_objects_are_read_and_empty_documents_are_skipped() -> None:
    manifests = read_manifests(f"{OBJECT}---\n# nothing\n---\n{OBJECT.replace('name: a', 'generateName: b-')}")
    assert [m["metadata"] for m in manifests] == [{"name": "a"}, {"generateName": "b-"}]


def test_lists_are_expanded_and_items_get_the_kind_of_the_list() -> None:
    text = """
apiVersion: v1
kind: List
items:
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}
- apiVersion: v1
  kind: ConfigMapList
  items: [{metadata: {name: a}}]
"""
    assert [key_of(manifest) for manifest in read_manifests(text)] == [
        ResourceKey("apps", "Deployment", "shop", "web"),
        ResourceKey("", "ConfigMap", "", "a"),
    ]


BAD: list[tuple[str, str]] = [
    ("- a\n", "web.yaml:1: document 1: not a Kubernetes object"),
    (f"{OBJECT}---\nkind: A\nmetadata: {{name: a}}\n", "web.yaml:5: document 2: apiVersion is missing: add it"),
    ("apiVersion: v1\n", "kind is missing"),
    ("apiVersion: 1\nkind: A\n", "apiVersion is '1', which is not a string: put it in quotes"),
    ("apiVersion: v1\nkind: A\n", "A has no metadata: add metadata.name"),
    ("apiVersion: v1\nkind: A\nmetadata: {}\n", "A's metadata.name is missing"),
    ("apiVersion: v1\nkind: A\nmetadata: {name: 12}\n", "metadata.name is '12', which is not a string"),
    ("apiVersion: v1\nkind: List\nitems: [{}]\n", "items[0]: apiVersion is missing"),
]


@pytest.mark.parametrize(("text", "said"), BAD)
def test_invalid_object_is_an_error_with_file_document_and_line(text: str, said: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read_manifests(text, where="web.yaml")
    assert caught.value.where == "web.yaml"
    assert said in str(caught.value)


def test_missing_annotation_gives_the_default() -> None:
    manifest: dict[str, Any] = {"metadata": {"annotations": {"a": "b"}}}
    assert get_annotation(manifest, "a") == "b"
    assert get_annotation(manifest, "c", "d") == "d"
    assert get_annotation({"metadata": {"annotations": None}}, "c") == ""


def test_keys_of_manifests_with_generate_name_are_unique_and_no_names() -> None:
    def build_manifest(namespace: str = "ml", **metadata: str) -> dict[str, object]:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, **metadata}}

    prefixes = ("b-", "b", "b-", "b", "b.")
    manifests = [build_manifest(name="b"), *(build_manifest(generateName=prefix) for prefix in prefixes)]
    manifests += [build_manifest("other", generateName="b-"), build_manifest(name="a", generateName="b-")]
    names = ["b", "b-", "b*", "b-*2", "b*2", "b.", "b-", "a"]
    assert [key.name for key in list_desired_keys(manifests)] == names
