"""Limits on the size, depth and number of values of YAML and JSON input.

In: values and counts. Out: nothing, or a LimitError. Never: a limit that real files exceed.
"""

from __future__ import annotations

from typing import NamedTuple

from argosy.errors import LimitError

MAX_DEPTH = 100
"""Maximum nesting depth of lists and mappings, in YAML and in JSON."""


class InputLimits(NamedTuple):
    """Maxima for one text; the defaults fit the largest CRD bundles."""

    size: int = 10 * 1024 * 1024  # bytes
    depth: int = MAX_DEPTH
    nodes: int = 250_000  # values, including mapping keys
    expanded: int = 100_000  # values that aliases expand to
    documents: int = 5_000


def build_size_error(size: int, limits: InputLimits, where: str) -> LimitError:
    return LimitError(f"{size} bytes are more than the {limits.size} allowed: split the file", where=where)


def build_depth_error(depth: int, where: str, line: int = 0) -> LimitError:
    return LimitError(f"nested more than {depth} levels deep: flatten the data", where=where, line=line)


def build_nodes_error(limits: InputLimits, where: str, line: int = 0) -> LimitError:
    return LimitError(f"more than {limits.nodes} values: split the file", where=where, line=line)


def check_nodes(value: object, limits: InputLimits, where: str) -> None:
    """Check the number of values, including mapping keys. Iterative, so that deep input cannot exhaust the stack."""
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
            raise build_nodes_error(limits, where)


def check_depth(value: object, limit: int, where: str) -> None:
    """Check the nesting depth. Iterative, so that deep input cannot exhaust the stack."""
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
        raise build_depth_error(limit, where)
