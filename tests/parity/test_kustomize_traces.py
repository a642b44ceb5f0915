"""Every rendered field of public kustomizations has an origin: an existing file and a line in it."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.field_origins import OriginNode
from argosy.gitops.render.kustomize import build, trace_origins
from argosy.gitops.source.folder_tree import FolderTree
from argosy.kube.resource_key import ResourceKey, split_api_version
from support.file_trees import TextTree
from support.tiers import IN_TEST_ALL

CASES = Path(__file__).parents[3] / "shared" / "data" / "kustomize"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="Kustomize's cases are not here")


def listed(file: str) -> list[dict[str, Any]]:
    return json.loads((CASES / file).read_text()) if CASES.is_dir() else []


def leaves(value: Any, traced: OriginNode, path: str = "") -> Iterator[tuple[str, OriginNode]]:
    """Yield every scalar value with its origin; a value without an origin is an error."""
    if isinstance(value, dict) and value:
        assert isinstance(traced.children, dict), path
        for name, child in value.items():
            assert name in traced.children, f"{path}/{name}"
            yield from leaves(child, traced.children[name], f"{path}/{name}")
    elif isinstance(value, list) and value:
        assert isinstance(traced.children, list), path
        assert len(value) == len(traced.children), path
        for index, child in enumerate(value):
            yield from leaves(child, traced.children[index], f"{path}/{index}")
    else:
        yield path, traced


def check(tree: FileTree, path: str, order: str) -> None:
    manifests, traces = build(tree, path, order=order), trace_origins(tree, path, order=order)
    lengths: dict[str, int] = {}
    for manifest in manifests:
        metadata = manifest["metadata"]
        group, _ = split_api_version(str(manifest.get("apiVersion") or ""))
        key = ResourceKey(group, manifest["kind"], metadata.get("namespace") or "", metadata["name"])
        for at, node in leaves(manifest, traces[key]):
            origin = node.origin
            if origin.file not in lengths:
                lengths[origin.file] = tree.read_file(origin.file).count(b"\n") + 1
            assert 1 <= origin.line <= lengths[origin.file], f"{key}: {at}: {origin}"


def one_of_five(cases: list[dict[str, Any]]) -> list[Any]:
    """One case in five; the others run in `make test-all`. test_kustomize.py compares all results in every run."""
    return [pytest.param(case, marks=IN_TEST_ALL if number % 5 else ()) for number, case in enumerate(cases)]


@pytest.mark.parametrize("case", one_of_five(listed("cases.json")), ids=lambda case: case["input"])
def test_every_field_of_a_public_kustomization_has_an_origin(case: dict[str, Any]) -> None:
    repository, _, path = case["input"].partition("/")
    check(FolderTree(CASES / "inputs" / repository), path, "legacy")


def tidy(path: str) -> str:
    return "" if path in (".", "/") else posixpath.normpath(path).lstrip("/")


@pytest.mark.parametrize(
    "case",
    one_of_five([case for case in listed("krusty/cases.json") if case["kubectl_agrees"]]),
    ids=lambda case: f"{case['test']}-{case['n']}",
)
def test_every_field_of_a_kustomize_unit_case_has_an_origin(case: dict[str, Any]) -> None:
    check(TextTree({tidy(path): text for path, text in case["files"].items()}), tidy(case["root"]), "fifo")
