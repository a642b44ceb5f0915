"""Rejects values schemas with endless references.

In: a chart's folder in a tree. Out: nothing, or a RenderError that names the schema. Never: validates values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from argosy.errors import RenderError
from argosy.gitops.application.file_tree import Tree

_NAME: Final = "values.schema.json"
_SAME_VALUE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")  # they apply to the value itself
_MOST: Final = 20_000
_DEEPEST: Final = 8


def check_schemas(tree: Tree, folder: str, depth: int = 0) -> None:
    """Reject a schema that refers to itself for the same value: older Helm versions use all memory on it."""
    lead = f"{folder}/" if folder else ""
    entry = tree.entry(lead + _NAME)
    if entry is not None and entry.kind == "file" and _is_endless(tree.read(lead + _NAME)):
        message = "a schema refers to itself without end; remove that $ref, or set skipSchemaValidation"
        raise RenderError(message, where=lead + _NAME)
    if depth < _DEEPEST:
        for each in tree.listing(f"{lead}charts"):
            if each.kind == "folder":
                check_schemas(tree, f"{lead}charts/{each.name}", depth + 1)


def _is_endless(text: bytes) -> bool:
    try:
        root = orjson.loads(text)
    except ValueError:
        return False  # Helm reports the error
    state: dict[int, bool] = {}  # by node: in progress (False) or done (True)
    for node in _all_nodes(root):
        stack: list[tuple[dict[str, Any], Iterator[dict[str, Any]]]] = []
        if id(node) not in state:
            state[id(node)] = False
            stack.append((node, _same_value(node, root)))
        while stack:
            here, others = stack[-1]
            other = next(others, None)
            if other is None:
                state[id(here)] = True
                stack.pop()
            elif id(other) not in state:
                state[id(other)] = False
                stack.append((other, _same_value(other, root)))
            elif not state[id(other)]:
                return True
    return False


def _all_nodes(root: Any) -> Iterator[dict[str, Any]]:
    open_ones, seen = [root], 0
    while open_ones and seen < _MOST:
        node = open_ones.pop()
        seen += 1
        if isinstance(node, dict):
            yield node
            open_ones.extend(node.values())
        elif isinstance(node, list):
            open_ones.extend(node)


def _same_value(node: dict[str, Any], root: Any) -> Iterator[dict[str, Any]]:
    found = [node.get(name) for name in _SAME_VALUE]
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        found.append(_pointed(root, reference[1:]))
    for each in found:
        if isinstance(each, list):
            yield from (part for part in each if isinstance(part, dict))
        elif isinstance(each, dict):
            yield each


def _pointed(root: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(root, list):
            root = root[int(name)] if name.isdecimal() and int(name) < len(root) else None
        else:
            root = root.get(name) if isinstance(root, dict) else None
    return root
