"""Evaluates the annotation manifest-generate-paths: which paths must change before the next render.

In: a tree and the annotation. Out: an id for each path. Never: forces a render; it can only avoid one.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Final

from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.application.step_results import RenderInput
from argosy.languages.globs import compile_name_glob

GENERATE_PATHS_ANNOTATION: Final = "argocd.argoproj.io/manifest-generate-paths"
GENERATE_PATHS_SCOPE: Final = "paths"
"""Scope of these inputs: paths and globs from the root of the source's tree."""


def build_generate_path_inputs(tree: FileTree, annotation: str, source_path: str) -> dict[RenderInput, str]:
    """Return one input per path of the annotation; empty if the annotation is empty."""
    paths = list_generate_paths(annotation, source_path)
    return {RenderInput(GENERATE_PATHS_SCOPE, path): _compute_path_id(tree, path) for path in paths}


def list_generate_paths(annotation: str, source_path: str) -> list[str]:
    """Return the paths of the annotation from the root of the tree."""
    items = [item.strip() for item in annotation.split(";")]
    return sorted({_resolve_from_root(item, source_path) for item in items if item})


def are_generate_paths_unchanged(inputs: Mapping[RenderInput, str], trees: Mapping[str, FileTree]) -> bool:
    """True if there are such paths and nothing below them changed."""
    if "" not in trees:
        return False
    path_ids = [(path, id) for (scope, path), id in inputs.items() if scope == GENERATE_PATHS_SCOPE]
    return bool(path_ids) and all(_compute_path_id(trees[""], path) == id for path, id in path_ids)


def _resolve_from_root(item: str, source_path: str) -> str:
    # argo: a path with a leading slash starts at the root, any other at the source's path; `..` may leave that path.
    path = item if item.startswith("/") else f"/{source_path}/{item}"
    return posixpath.normpath(path).strip("/")


def _compute_path_id(tree: FileTree, path: str) -> str:
    if not re.search(r"[*?\[\\]", path):
        entry = tree.find_entry(path)
        return f"{entry.kind} {entry.id}" if entry else ""
    digest = hashlib.sha256()
    for line in _list_matching_entries(tree, "", path.split("/")):
        digest.update(line.encode("utf-8", "surrogateescape") + b"\n")
    return digest.hexdigest()


def _list_matching_entries(tree: FileTree, folder: str, path_patterns: list[str]) -> Iterator[str]:
    """argo: a star matches within one folder; a matching folder counts with everything below it."""
    pattern = compile_name_glob(path_patterns[0])
    for entry in tree.list_folder(folder):
        if pattern.fullmatch(entry.name):
            path = f"{folder}/{entry.name}" if folder else entry.name
            if len(path_patterns) == 1:
                yield f"{path} {entry.kind} {entry.id}"
            elif entry.kind == "folder":
                yield from _list_matching_entries(tree, path, path_patterns[1:])
