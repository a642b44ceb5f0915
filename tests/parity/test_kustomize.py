"""Kustomize's own cases and those of public repositories: the same manifests in the same order.

The cases are next to the checkout, not in it; without them these tests are skipped.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.gitops.application.file_tree_protocol import TreeEntry
from argosy.gitops.render.kustomize import build
from argosy.kube.objects import YamlDialect, read_yaml_documents
from support.file_trees import TextTree

CASES = Path(__file__).parents[3] / "shared" / "data" / "kustomize"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="Kustomize's cases are not here")

KNOWN: frozenset[str] = frozenset()
"""Cases that are known to differ; one that no longer does must leave this list."""


class DiskTree:
    """A folder on disk; entry ids are paths, which are stable within one run."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find_entry(self, path: str) -> TreeEntry | None:
        full_path = self.root / path
        kind: Any = (
            "link"
            if full_path.is_symlink()
            else "file"
            if full_path.is_file()
            else "folder"
            if full_path.is_dir()
            else None
        )
        return kind and TreeEntry(full_path.name, kind, str(full_path))

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        names = sorted(child.name for child in (self.root / path).iterdir())
        return [entry for name in names if (entry := self.find_entry(f"{path}/{name}".lstrip("/")))]

    def read_file(self, path: str) -> bytes:
        full_path = self.root / path
        return bytes(full_path.readlink()) if full_path.is_symlink() else full_path.read_bytes()


def tidy(path: str) -> str:
    return "" if path in (".", "/") else posixpath.normpath(path).lstrip("/")


def listed(file: str) -> list[dict[str, Any]]:
    return json.loads((CASES / file).read_text()) if CASES.is_dir() else []


def unit_cases() -> list[dict[str, Any]]:
    return [case for case in listed("krusty/cases.json") if case["kubectl_agrees"]]


def compare(name: str, tree: DiskTree | TextTree, path: str, order: str, expected: str | bytes) -> None:
    expected_documents = [
        document for document in read_yaml_documents(expected, dialect=YamlDialect.KUSTOMIZE) if document is not None
    ]
    try:
        result: Any = build(tree, path, order=order)
    except UserError as error:
        result = str(error)
    if name in KNOWN:
        assert result != expected_documents, f"{name} agrees now: take it off the list"
    else:
        assert result == expected_documents


@pytest.mark.parametrize("case", listed("cases.json"), ids=lambda case: case["input"])
def test_public_kustomization_renders_like_kubectl(case: dict[str, Any]) -> None:
    repository, _, path = case["input"].partition("/")
    golden = (CASES / "golden" / f"{case['sha256']}.yaml").read_bytes()
    compare(case["input"], DiskTree(CASES / "inputs" / repository), path, "legacy", golden)


@pytest.mark.parametrize("case", unit_cases(), ids=lambda case: f"{case['test']}-{case['n']}")
def test_kustomize_unit_case_renders_as_expected(case: dict[str, Any]) -> None:
    # These cases were recorded in input order.
    compare(
        case["test"],
        TextTree({tidy(path): text for path, text in case["files"].items()}),
        tidy(case["root"]),
        "fifo",
        case["expected"],
    )


def test_all_495_cases_are_listed() -> None:
    assert len(listed("cases.json")) == 322
    assert len(unit_cases()) == 173
