"""Finds Git submodules in a source's path.

In: a tree, a path. Out: the submodule that contains the path, if any. Never: fetches a submodule.
"""

from __future__ import annotations

import re
from typing import Final

from argosy.gitops.application.file_tree import Tree

FILE: Final = ".gitmodules"
_PATH: Final = re.compile(r'^[ \t]*path[ \t]*=[ \t]*"?([^"\r\n]+?)"?[ \t]*$', re.MULTILINE)


def find_submodule(tree: Tree, path: str) -> str | None:
    """Return the submodule folder that is or contains this path; None if the files belong to this repository."""
    entry = tree.entry(FILE)
    if entry is None or entry.kind != "file":
        return None
    declared = (each.strip("/") for each in _PATH.findall(tree.read(FILE).decode("utf-8", "replace")))
    found = next((each for each in declared if path == each or path.startswith(f"{each}/")), None)
    return found if found is not None and not tree.listing(path) else None


def submodule_text(submodule: str) -> str:
    return (
        f"{submodule} is a Git submodule, and submodules are not supported: use the submodule's own repository as the"
        " source, or copy its files into this one"
    )
