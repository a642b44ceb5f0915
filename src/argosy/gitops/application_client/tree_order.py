"""Orders nodes of a resource tree for drawing, and converts them to data.

In: nodes. Out: data; nodes with their depth. Never: asks a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from argosy.gitops.live.resource_tree import ResourceNode
from argosy.gitops.status.status_json_conversions import omit_empty
from argosy.kube.resource_key import ResourceKey


class TreeLine(NamedTuple):
    node: ResourceNode
    is_last: tuple[bool, ...]  # per level below the root: is this the last child


def node_to_wire(node: ResourceNode) -> dict[str, Any]:
    health = node.health
    return {
        **node.key._asdict(),
        "version": node.version,
        **omit_empty(
            uid=node.uid,
            createdAt=node.created,
            parentRefs=[parent.key._asdict() for parent in node.parents],
            images=list(node.images),
            health=omit_empty(status=health.health.value, message=health.message) if health and health.health else None,
        ),
    }


def list_tree_lines(nodes: Sequence[ResourceNode]) -> Iterator[TreeLine]:
    """Yield parents before children; a node without a parent in `nodes` is a root."""
    keys = {node.key for node in nodes}
    children_by_parent: dict[ResourceKey, list[ResourceNode]] = {}
    roots = []
    for node in nodes:
        parent = next(
            (candidate.key for candidate in node.parents if candidate.key in keys and candidate.key != node.key), None
        )
        if parent is None:
            roots.append(node)
        else:
            children_by_parent.setdefault(parent, []).append(node)
    for root in roots:
        yield from _walk_subtree(root, children_by_parent, ())


def _walk_subtree(
    node: ResourceNode, children_by_parent: dict[ResourceKey, list[ResourceNode]], lasts: tuple[bool, ...]
) -> Iterator[TreeLine]:
    yield TreeLine(node, lasts)
    children = children_by_parent.pop(node.key, [])  # popped: ends a cycle of owners
    for index, child in enumerate(children):
        yield from _walk_subtree(child, children_by_parent, (*lasts, index == len(children) - 1))
