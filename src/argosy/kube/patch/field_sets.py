"""Sets of field paths, in the format of managedFields (FieldsV1).

In: FieldsV1, or trees that other modules of this package build. Out: new sets. Never: changes a set or a tree.

A tree is FieldsV1 itself: a map from path element to subtree. An empty subtree is a member without children; `.` in a
subtree marks a member that has children. No conversion is needed to read or write FieldsV1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from argosy.errors import PatchError
from argosy.kube.patch.fields_v1_path_elements import SELF, canonicalize, element_sort_key, render_element

Tree = dict[str, Any]
LEAF: Final[Tree] = {}


class FieldSet:
    """An immutable set of paths; a path is a sequence of path elements. FieldsV1 is parsed and checked on first use."""

    __slots__ = ("_raw", "_tree")

    def __init__(self, tree: Tree | None = None) -> None:
        self._tree: Tree | None = tree if tree is not None else LEAF
        self._raw: Any = None

    @classmethod
    def parse(cls, fields_v1: Any) -> FieldSet:
        field_set = cls()
        field_set._raw, field_set._tree = fields_v1, None
        return field_set

    @classmethod
    def from_paths(cls, *paths: Sequence[str]) -> FieldSet:
        tree: Tree = {}
        for path in paths:
            branch: Tree = LEAF
            for element in reversed(path):
                branch = {element: branch}
            tree = union(tree, branch)
        return cls(tree)

    @property
    def tree(self) -> Tree:
        if self._tree is None:
            self._tree = parse_tree(self._raw)
        return self._tree

    def to_wire(self) -> Tree:
        """Return FieldsV1, in the server's order."""
        return self._raw if self._tree is None else self._tree

    def paths(self) -> Iterator[tuple[str, ...]]:
        """Iterate over every member; siblings come before their children."""
        return _paths(self.tree, ())

    def without_subtrees(self, other: FieldSet) -> FieldSet:
        """Remove the members of `other` and everything below them."""
        return FieldSet(remove_subtrees(self.tree, other.tree))

    def __or__(self, other: FieldSet) -> FieldSet:
        return FieldSet(union(self.tree, other.tree))

    def __sub__(self, other: FieldSet) -> FieldSet:
        return FieldSet(difference(self.tree, other.tree))

    def __and__(self, other: FieldSet) -> FieldSet:
        return FieldSet(intersection(self.tree, other.tree))

    def __contains__(self, path: Sequence[str]) -> bool:
        node: Tree | None = self.tree
        for element in path:
            node = node.get(element) if node else None
        return bool(path) and node is not None and is_member(node)

    def __bool__(self) -> bool:
        return bool(self.tree)

    def __len__(self) -> int:
        return sum(1 for _ in self.paths())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and (self is other or self.tree == other.tree)

    def __hash__(self) -> int:
        return hash(frozenset(self.paths()))

    def __repr__(self) -> str:
        return f"FieldSet({', '.join(format_path(path) for path in self.paths())})"


def format_path(path: Sequence[str]) -> str:
    """Format a path for messages: `.spec.containers[name="c"].image`."""
    return "".join(map(render_element, path))


def is_member(node: Tree) -> bool:
    return not node or SELF in node


def sort_elements(node: Tree) -> Tree:
    """Sort elements in the server's order. Only keys, values and indices need more than text order."""
    if len(node) < 2:
        return node
    names = sorted(node)
    if names[-1] >= "g":
        names.sort(key=element_sort_key)
    return node if names == list(node) else {name: node[name] for name in names}


def parse_tree(raw: Any) -> Tree:
    """Read FieldsV1 from any client into a canonical tree."""
    if raw is None:
        return LEAF
    tree = _parse_node(raw)
    return {key: node for key, node in tree.items() if key != SELF}


def _parse_node(raw: Any) -> Tree:
    if type(raw) is not dict and not isinstance(raw, Mapping):  # almost always a dict; the other check is slow
        raise PatchError(f"fields must be a map, not {type(raw).__name__}")
    node: Tree = {}
    for name, child in raw.items():
        if name == SELF:
            node[SELF] = LEAF
        elif name.startswith("f:"):  # canonical, and by far the most frequent
            node[name] = _parse_node(child) if child else LEAF
        elif (element := canonicalize(name)) is not None:
            node[element] = _parse_node(child) if child else LEAF
    return LEAF if len(node) == 1 and SELF in node else sort_elements(node)


def _paths(tree: Tree, prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for element, node in tree.items():
        if element != SELF and is_member(node):
            yield (*prefix, element)
    for element, node in tree.items():
        if node:
            yield from _paths(node, (*prefix, element))


def _canonical_node(node: Tree) -> Tree | None:
    """Return the node in canonical form, None if it is empty."""
    if not node:
        return None
    return LEAF if len(node) == 1 and SELF in node else node


def union(left: Tree, right: Tree) -> Tree:
    if left is right or not right:
        return left
    if not left:
        return right
    result = dict(left)
    for element, node in right.items():
        left_node = left.get(element)
        if left_node is None:
            result[element] = node
        elif left_node is not node:
            result[element] = _union_nodes(left_node, node)
    return sort_elements(result) if len(result) > len(left) else result


def _union_nodes(left: Tree, right: Tree) -> Tree:
    if left and right:
        return union(left, right)
    node = left or right
    return node if is_member(node) else {SELF: LEAF, **node}


def difference(left: Tree, right: Tree) -> Tree:
    """Return the members of `left` that are not in `right`; a parent and its children are different members."""
    if not right:
        return left
    result: Tree = {}
    for element, node in left.items():
        right_node = right.get(element)
        kept = node if right_node is None else _difference_nodes(node, right_node)
        if kept is not None:
            result[element] = kept
    return result


def _difference_nodes(left: Tree, right: Tree) -> Tree | None:
    if not left:
        return None if is_member(right) else left
    return _canonical_node(difference(left, right or {SELF: LEAF}))


def intersection(left: Tree, right: Tree) -> Tree:
    result: Tree = {}
    for element, node in left.items():
        right_node = right.get(element)
        if right_node is not None and (shared := _intersection_nodes(node, right_node)) is not None:
            result[element] = shared
    return result


def _intersection_nodes(left: Tree, right: Tree) -> Tree | None:
    if not left or not right:
        return LEAF if is_member(left) and is_member(right) else None
    return _canonical_node(intersection(left, right))


def remove_subtrees(tree: Tree, excluded: Tree) -> Tree:
    result: Tree = {}
    for element, node in tree.items():
        excluded_node = excluded.get(element)
        if excluded_node is None:
            result[element] = node
        elif element != SELF and not is_member(excluded_node):
            kept = _canonical_node(remove_subtrees(node, excluded_node)) if node else node
            if kept is not None:
                result[element] = kept
    return result
