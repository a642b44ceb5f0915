"""Finds the template file, and if possible the line, that writes a field.

In: manifests and their templates. Out: a file, and a line if the key appears once. Never: a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.application.step_results import FieldOrigin
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey


class TemplateOrigins:
    """Implements `FieldOrigins`. Files are read on first use."""

    def __init__(self, tree: FileTree, path_manifest_pairs: Sequence[tuple[str, Manifest]]) -> None:
        self._tree, self._path_manifest_pairs = tree, path_manifest_pairs
        self._files: dict[ResourceKey, str] | None = None

    def find(self, key: ResourceKey, pointer: str) -> FieldOrigin | None:
        if self._files is None:
            self._files = {
                key_of(item): file for file, manifest in self._path_manifest_pairs for item in _flatten_list(manifest)
            }
        file = self._files.get(key)
        return FieldOrigin(file, self._find_line(file, pointer)) if file else None

    def _find_line(self, file: str, pointer: str) -> int:
        """Return the line of the innermost named field, if exactly one line of the template starts with that name."""
        steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
        entry = self._tree.find_entry(file)
        if not steps or entry is None or entry.kind != "file":
            return 0
        name = next((pointer_step for pointer_step in reversed(steps) if not pointer_step.isdecimal()), "")
        field = re.compile(rf"""\s*(?:-\s+)*["']?{re.escape(name)}["']?\s*:""")
        lines = self._tree.read_file(file).decode("utf-8", "replace").splitlines()
        line_numbers = [number for number, line in enumerate(lines, start=1) if name and field.match(line)]
        return line_numbers[0] if len(line_numbers) == 1 else 0


def _flatten_list(manifest: Manifest) -> Iterator[Manifest]:
    items = manifest.get("items")
    if str(manifest.get("kind", "")).endswith("List") and isinstance(items, list):
        yield from (item for item in items if isinstance(item, dict) and _has_identity(item))
    elif _has_identity(manifest):
        yield manifest


def _has_identity(manifest: Manifest) -> bool:
    metadata = manifest.get("metadata")
    return "apiVersion" in manifest and "kind" in manifest and isinstance(metadata, dict) and "name" in metadata
