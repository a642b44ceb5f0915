"""Evaluates the annotation manifest-generate-paths: which paths must change before the next render.

In: a tree and the annotation. Out: an id for each path. Never: forces a render; it can only avoid one.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Final

from argosy.gitops.application.file_tree import Tree
from argosy.gitops.application.step_results import Input
from argosy.languages.globs import path_pattern

ANNOTATION: Final = "argocd.argoproj.io/manifest-generate-paths"
PATHS: Final = "paths"
"""Scope of these inputs: paths and globs from the root of the source's tree."""


def generate_path_inputs(tree: Tree, annotation: str, source_path: str) -> dict[Input, str]:
    """Return one input per path of the annotation; empty if the annotation is empty."""
    written = [item.strip() for item in annotation.split(";")]
    paths = {_from_root(item, source_path) for item in written if item}
    return {Input(PATHS, path): _id(tree, path) for path in sorted(paths)}


def paths_are_current(inputs: Mapping[Input, str], trees: Mapping[str, Tree]) -> bool:
    """True if there are such paths and nothing below them changed."""
    if "" not in trees:
        return False
    named = [(path, id) for (place, path), id in inputs.items() if place == PATHS]
    return bool(named) and all(_id(trees[""], path) == id for path, id in named)


def _from_root(item: str, source_path: str) -> str:
    # argo: a path with a leading slash starts at the root, any other at the source's path; `..` may leave that path.
    path = item if item.startswith("/") else f"/{source_path}/{item}"
    return posixpath.normpath(path).strip("/")


def _id(tree: Tree, path: str) -> str:
    if not re.search(r"[*?\[\\]", path):
        entry = tree.entry(path)
        return f"{entry.kind} {entry.id}" if entry else ""
    digest = hashlib.sha256()
    for line in _matches(tree, "", path.split("/")):
        digest.update(line.encode("utf-8", "surrogateescape") + b"\n")
    return digest.hexdigest()


def _matches(tree: Tree, folder: str, steps: list[str]) -> Iterator[str]:
    """argo: a star matches within one folder; a matching folder counts with everything below it."""
    pattern = path_pattern(steps[0])
    for entry in tree.listing(folder):
        if pattern.fullmatch(entry.name):
            path = f"{folder}/{entry.name}" if folder else entry.name
            if len(steps) == 1:
                yield f"{path} {entry.kind} {entry.id}"
            elif entry.kind == "folder":
                yield from _matches(tree, path, steps[1:])
