"""How much input a reader takes. In: counts. Out: nothing, or a LimitError. Never: a limit that real files exceed."""

from __future__ import annotations

from typing import NamedTuple

from argosy.errors import LimitError

DEPTH = 100
"""How deep lists and mappings may nest, in YAML and in JSON."""


class Limits(NamedTuple):
    """What one text may hold; the defaults fit the largest bundles of custom resource definitions."""

    size: int = 10 * 1024 * 1024
    depth: int = DEPTH
    nodes: int = 250_000
    expanded: int = 100_000
    documents: int = 5_000


def size_error(size: int, limits: Limits, where: str) -> LimitError:
    return LimitError(f"{size} bytes are more than the {limits.size} allowed: split the file", where=where)


def depth_error(depth: int, where: str, line: int = 0) -> LimitError:
    return LimitError(f"nested more than {depth} levels deep: flatten the data", where=where, line=line)


def nodes_error(limits: Limits, where: str, line: int = 0) -> LimitError:
    return LimitError(f"more than {limits.nodes} values: split the file", where=where, line=line)


def check_nodes(value: object, limits: Limits, where: str) -> None:
    """How many values there are, keys of mappings included. Without recursion: no depth can exhaust the stack."""
    count, open_values = 1, [value]
    while open_values:
        parent = open_values.pop()
        if type(parent) is dict:
            count += 2 * len(parent)
            open_values.extend(parent.values())
        elif type(parent) is list:
            count += len(parent)
            open_values.extend(parent)
        if count > limits.nodes:
            raise nodes_error(limits, where)


def check_depth(value: object, limit: int, where: str) -> None:
    """Level by level, so that no depth can exhaust the stack."""
    level = [value] if type(value) in (dict, list) else []
    for _ in range(limit):
        if not level:
            return
        level = [
            child
            for parent in level
            for child in (parent.values() if type(parent) is dict else parent)  # type: ignore[attr-defined]
            if type(child) in (dict, list)
        ]
    if level:
        raise depth_error(limit, where)
