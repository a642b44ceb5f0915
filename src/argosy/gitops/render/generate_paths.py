"""The annotation manifest-generate-paths: what must change before an application is rendered again.

In: a tree and the annotation. Out: an id for each of its paths. Never: decides that something must be rendered; it can
only spare it.
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
"""The place of these inputs: paths from the root of the source's tree, globs among them."""


def generate_path_inputs(tree: Tree, annotation: str, source_path: str) -> dict[Input, str]:
    """Nothing where the annotation names nothing."""
    written = [item.strip() for item in annotation.split(";")]
    paths = {_from_root(item, source_path) for item in written if item}
    return {Input(PATHS, path): _id(tree, path) for path in sorted(paths)}


def paths_are_current(inputs: Mapping[Input, str], trees: Mapping[str, Tree]) -> bool:
    """Are there such paths, and is everything below them as it was?"""
    if "" not in trees:
        return False
    named = [(path, id) for (place, path), id in inputs.items() if place == PATHS]
    return bool(named) and all(_id(trees[""], path) == id for path, id in named)


def _from_root(item: str, source_path: str) -> str:
    # argo: from the root where it starts with a slash, else from the source's path; `..` may leave that.
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
    """argo: a star stays within one folder; what matches counts with all that is below it."""
    pattern = path_pattern(steps[0])
    for entry in tree.listing(folder):
        if pattern.fullmatch(entry.name):
            path = f"{folder}/{entry.name}" if folder else entry.name
            if len(steps) == 1:
                yield f"{path} {entry.kind} {entry.id}"
            elif entry.kind == "folder":
                yield from _matches(tree, path, steps[1:])
