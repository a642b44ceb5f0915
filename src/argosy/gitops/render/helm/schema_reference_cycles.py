"""Rejects values schemas with endless references.

In: a chart's folder in a tree. Out: nothing, or a RenderError that names the schema. Never: validates values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from argosy.errors import RenderError
from argosy.gitops.application.file_tree_protocol import FileTree

_SCHEMA_FILE: Final = "values.schema.json"
_SAME_VALUE_KEYWORDS: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")  # they apply to the value itself
_MAX_NODES: Final = 20_000
_MAX_CHART_DEPTH: Final = 8


def reject_cyclic_schemas(tree: FileTree, folder: str, depth: int = 0) -> None:
    """Reject a schema that refers to itself for the same value: older Helm versions use all memory on it."""
    folder_prefix = f"{folder}/" if folder else ""
    entry = tree.find_entry(folder_prefix + _SCHEMA_FILE)
    if (
        entry is not None
        and entry.kind == "file"
        and _has_reference_cycle(tree.read_file(folder_prefix + _SCHEMA_FILE))
    ):
        message = "a schema refers to itself without end; remove that $ref, or set skipSchemaValidation"
        raise RenderError(message, where=folder_prefix + _SCHEMA_FILE)
    if depth < _MAX_CHART_DEPTH:
        for subchart in tree.list_folder(f"{folder_prefix}charts"):
            if subchart.kind == "folder":
                reject_cyclic_schemas(tree, f"{folder_prefix}charts/{subchart.name}", depth + 1)


def _has_reference_cycle(text: bytes) -> bool:
    try:
        root = orjson.loads(text)
    except ValueError:
        return False  # Helm reports the error
    is_done_by_node: dict[int, bool] = {}  # by node: in progress (False) or done (True)
    for node in _iterate_nodes(root):
        stack: list[tuple[dict[str, Any], Iterator[dict[str, Any]]]] = []
        if id(node) not in is_done_by_node:
            is_done_by_node[id(node)] = False
            stack.append((node, _list_same_value_schemas(node, root)))
        while stack:
            current, successors = stack[-1]
            successor = next(successors, None)
            if successor is None:
                is_done_by_node[id(current)] = True
                stack.pop()
            elif id(successor) not in is_done_by_node:
                is_done_by_node[id(successor)] = False
                stack.append((successor, _list_same_value_schemas(successor, root)))
            elif not is_done_by_node[id(successor)]:
                return True
    return False


def _iterate_nodes(root: Any) -> Iterator[dict[str, Any]]:
    pending, visited = [root], 0
    while pending and visited < _MAX_NODES:
        node = pending.pop()
        visited += 1
        if isinstance(node, dict):
            yield node
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)


def _list_same_value_schemas(node: dict[str, Any], root: Any) -> Iterator[dict[str, Any]]:
    candidates = [node.get(name) for name in _SAME_VALUE_KEYWORDS]
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        candidates.append(_resolve_pointer(root, reference[1:]))
    for candidate in candidates:
        if isinstance(candidate, list):
            yield from (part for part in candidate if isinstance(part, dict))
        elif isinstance(candidate, dict):
            yield candidate


def _resolve_pointer(root: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(root, list):
            root = root[int(name)] if name.isdecimal() and int(name) < len(root) else None
        else:
            root = root.get(name) if isinstance(root, dict) else None
    return root
