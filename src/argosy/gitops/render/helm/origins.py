"""Finds the template file, and if possible the line, that writes a field.

In: manifests and their templates. Out: a file, and a line if the key appears once. Never: a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from argosy.gitops.application.file_tree import Tree
from argosy.gitops.application.step_results import Origin
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of


class TemplateOrigins:
    """Implements `Origins`. Files are read on first use."""

    def __init__(self, tree: Tree, made: Sequence[tuple[str, Manifest]]) -> None:
        self._tree, self._made = tree, made
        self._files: dict[ResourceKey, str] | None = None

    def find(self, key: ResourceKey, pointer: str) -> Origin | None:
        if self._files is None:
            self._files = {key_of(each): file for file, manifest in self._made for each in _objects(manifest)}
        file = self._files.get(key)
        return Origin(file, self._line(file, pointer)) if file else None

    def _line(self, file: str, pointer: str) -> int:
        """Return the line of the innermost named field, if exactly one line of the template starts with that name."""
        names = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
        entry = self._tree.entry(file)
        if not names or entry is None or entry.kind != "file":
            return 0
        name = next((each for each in reversed(names) if not each.isdecimal()), "")
        field = re.compile(rf"""\s*(?:-\s+)*["']?{re.escape(name)}["']?\s*:""")
        lines = self._tree.read(file).decode("utf-8", "replace").splitlines()
        found = [number for number, line in enumerate(lines, start=1) if name and field.match(line)]
        return found[0] if len(found) == 1 else 0


def _objects(manifest: Manifest) -> Iterator[Manifest]:
    items = manifest.get("items")
    if str(manifest.get("kind", "")).endswith("List") and isinstance(items, list):
        yield from (each for each in items if isinstance(each, dict) and _is_whole(each))
    elif _is_whole(manifest):
        yield manifest


def _is_whole(manifest: Manifest) -> bool:
    metadata = manifest.get("metadata")
    return "apiVersion" in manifest and "kind" in manifest and isinstance(metadata, dict) and "name" in metadata
