"""Checks patches that change an argument by its position: they break silently if the order changes.

In: an overlay and the manifests of base. Out: findings, one sentence each. Never: reports bad YAML; the linter does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from documents import InvalidYaml, get_nested, parse_documents, read_mappings

POSITION = re.compile(r"(/spec/containers/(\d+)/args)/(\d+)")


def check_positions(overlay: Path, base_manifests: list[dict[str, Any]]) -> Iterator[str]:
    for patch in read_mappings(overlay / "kustomization.yaml")[0].get("patches") or []:
        operations = read_operations(patch)
        tested_lists = {str(entry.get("path")).rpartition("/")[0] for entry in operations if entry.get("op") == "test"}
        for operation in operations:
            match = POSITION.fullmatch(str(operation.get("path")))
            if not match or operation.get("op") == "test":
                continue
            length = len(read_arguments(get_nested(patch, "target"), base_manifests, int(match[2])))
            index = int(match[3])
            if index >= length + (operation.get("op") == "add"):
                yield f"{match[0]}: base has {length} arguments, counted from 0"
            elif match[1] not in tested_lists:
                yield f"{match[0]}: put a test of args/{max(index - 1, 0)} before it, to detect a changed order"


def read_operations(patch: Any) -> list[dict[str, Any]]:
    try:
        documents = parse_documents(str(get_nested(patch, "patch") or ""))
    except InvalidYaml:
        return []
    lists = [document for document in documents if isinstance(document, list)]
    return [operation for entries in lists for operation in entries if isinstance(operation, dict)]


def read_arguments(target: Any, base_manifests: list[dict[str, Any]], container: int) -> list[str]:
    for manifest in base_manifests:
        has_name = get_nested(manifest, "metadata", "name") == get_nested(target, "name")
        if has_name and manifest.get("kind") == get_nested(target, "kind"):
            containers = get_nested(manifest, "spec", "containers") or []
            return list(get_nested(containers[container], "args") or []) if container < len(containers) else []
    return []
