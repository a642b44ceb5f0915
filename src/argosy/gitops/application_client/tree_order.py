"""Orders nodes of a resource tree for drawing, and converts them to data.

In: nodes. Out: data; nodes with their depth. Never: asks a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from argosy.gitops.live.resource_tree import Node
from argosy.gitops.status.wire_format import given
from argosy.kube.names import ResourceKey


class Branch(NamedTuple):
    node: Node
    is_last: tuple[bool, ...]  # per level below the root: is this the last child


def node_data(node: Node) -> dict[str, Any]:
    health = node.health
    return {
        **node.key._asdict(),
        "version": node.version,
        **given(
            uid=node.uid,
            createdAt=node.created,
            parentRefs=[parent.key._asdict() for parent in node.parents],
            images=list(node.images),
            health=given(status=health.health.value, message=health.message) if health and health.health else None,
        ),
    }


def branches(nodes: Sequence[Node]) -> Iterator[Branch]:
    """Yield parents before children; a node without a parent in `nodes` is a root."""
    here = {node.key for node in nodes}
    below: dict[ResourceKey, list[Node]] = {}
    roots = []
    for node in nodes:
        parent = next((each.key for each in node.parents if each.key in here and each.key != node.key), None)
        if parent is None:
            roots.append(node)
        else:
            below.setdefault(parent, []).append(node)
    for root in roots:
        yield from _below(root, below, ())


def _below(node: Node, below: dict[ResourceKey, list[Node]], lasts: tuple[bool, ...]) -> Iterator[Branch]:
    yield Branch(node, lasts)
    children = below.pop(node.key, [])  # popped: ends a cycle of owners
    for place, child in enumerate(children):
        yield from _below(child, below, (*lasts, place == len(children) - 1))
