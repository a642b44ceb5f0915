"""Checks patches that change an argument by its position: they break silently if the order changes.

In: an overlay and the manifests of base. Out: findings, one sentence each. Never: reports bad YAML; the linter does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from documents import Broken, dig, parse, read

POSITION = re.compile(r"(/spec/containers/(\d+)/args)/(\d+)")


def check_positions(overlay: Path, originals: list[dict[str, Any]]) -> Iterator[str]:
    for patch in read(overlay / "kustomization.yaml")[0].get("patches") or []:
        operations = operations_of(patch)
        tested = {str(each.get("path")).rpartition("/")[0] for each in operations if each.get("op") == "test"}
        for operation in operations:
            found = POSITION.fullmatch(str(operation.get("path")))
            if not found or operation.get("op") == "test":
                continue
            length = len(arguments_of(dig(patch, "target"), originals, int(found[2])))
            index = int(found[3])
            if index >= length + (operation.get("op") == "add"):
                yield f"{found[0]}: base has {length} arguments, counted from 0"
            elif found[1] not in tested:
                yield f"{found[0]}: put a test of args/{max(index - 1, 0)} before it, to detect a changed order"


def operations_of(patch: Any) -> list[dict[str, Any]]:
    try:
        documents = parse(str(dig(patch, "patch") or ""))
    except Broken:
        return []
    return [each for document in documents if isinstance(document, list) for each in document if isinstance(each, dict)]


def arguments_of(target: Any, originals: list[dict[str, Any]], container: int) -> list[str]:
    for original in originals:
        if original.get("kind") == dig(target, "kind") and dig(original, "metadata", "name") == dig(target, "name"):
            containers = dig(original, "spec", "containers") or []
            return list(dig(containers[container], "args") or []) if container < len(containers) else []
    return []
