"""Table rows as the API server prints them, for tests of printer columns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from argosy.kube.resource_key import GroupKind, split_api_version
from argosy.kube.schema import columns

NOW = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC)
Manifest = dict[str, Any]


def ago(**parts: float) -> str:
    return (NOW - timedelta(**parts)).strftime("%Y-%m-%dT%H:%M:%SZ")


def build_manifest(api_version: str, kind: str, metadata: Manifest | None = None, **fields: Any) -> Manifest:
    about = {"name": "x", "creationTimestamp": ago(seconds=22), **(metadata or {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": about, **fields}


def row(manifest: Manifest) -> dict[str, Any]:
    group, version = split_api_version(manifest["apiVersion"])
    kind_columns = columns.get_columns(GroupKind(group, manifest["kind"]), version)
    cells = kind_columns.build_cells(manifest, NOW)
    assert len(cells) == len(kind_columns.definitions), "a row must be as wide as its header"
    return {column["name"]: cell for column, cell in zip(kind_columns.definitions, cells)}
