"""Validates the types of fields that refer to other resources. In: resources and field specs.

Out: nothing, or an error. Never: changes a field, or checks that a name exists.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.gitops.render.kustomize.field_spec_traversal import split_field_path
from argosy.gitops.render.kustomize.gvk import Gvk
from argosy.gitops.render.kustomize.resource import KustomizeResource
from argosy.gitops.render.kustomize.transformer_config import PathTree, TransformerConfig

_PATH_END: Final = ""  # as a key: a path ends here


class _InvalidReference(Exception):
    """A field of the wrong type; its path is filled in while the error propagates."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.path: list[str] = []


def check_reference_fields(resources: list[KustomizeResource], config: TransformerConfig) -> None:
    """k8s: every field that may refer to a resource is checked, even if no name changed."""
    trees_by_gvk = config.reference_paths
    for resource in resources:
        gvk = resource.gvk
        path_tree = trees_by_gvk.get(gvk)
        if path_tree is None:
            path_tree = trees_by_gvk[gvk] = _build_path_tree(config, gvk)
        if path_tree:
            try:
                _check_node(resource.manifest, path_tree)
            except _InvalidReference as error:
                path = error.path[::-1]
                raise resource.build_error(f"{resource.id}: {'/'.join(path)} {error}: correct it", *path) from None


def _build_path_tree(config: TransformerConfig, gvk: Gvk) -> PathTree:
    path_tree: PathTree = {}
    for _, specs in config.name_references:
        for spec in specs:
            if gvk.is_selected_by(spec.gvk):
                node = path_tree
                for name, _ in split_field_path(spec.path):
                    node = node.setdefault(name, {})
                node[_PATH_END] = {}
    return path_tree


def _check_node(node: Any, path_tree: PathTree) -> None:
    if type(node) is dict:
        for name, value in node.items():
            subtree = path_tree.get(name)
            if subtree is None or value is None:
                continue
            try:
                if _PATH_END in subtree:
                    _check_reference(value)
                if len(subtree) > 1 or _PATH_END not in subtree:
                    _check_node(value, subtree)
            except _InvalidReference as error:
                error.path.append(name)
                raise
    elif type(node) is list:
        for element in node:
            _check_node(element, path_tree)
    elif node is not None:
        raise _InvalidReference(f"is {str(node)[:40]!r}, not a map with {next(name for name in path_tree if name)}")


def _check_reference(value: Any) -> None:
    for element in value if type(value) is list else (value,):
        if type(element) is dict and "name" not in element:
            raise _InvalidReference("has a map without a name")
        if type(element) is list:
            raise _InvalidReference("has a list in a list")
