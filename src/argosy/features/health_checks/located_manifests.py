"""Manifests and their positions in a file. In: a name and a text. Out: located manifests. Never: reads a file."""

from __future__ import annotations

from typing import NamedTuple

from argosy.kube.objects import Manifest, read_manifests
from argosy.kube.objects.field_lines import FieldLines, ManifestPath


class ManifestText:
    """One file, or standard input."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.lines = FieldLines(text)

    def list_manifests(self) -> list[LocatedManifest]:
        return [
            LocatedManifest(manifest, self, index)
            for index, manifest in enumerate(read_manifests(self.text, where=self.name))
        ]


class LocatedManifest(NamedTuple):
    """A manifest, its file, and its index in the file."""

    manifest: Manifest
    source: ManifestText
    number: int

    @property
    def file(self) -> str:
        return self.source.name

    def find_field_line(self, path: ManifestPath) -> int:
        """Return the line of a field in the file."""
        return self.source.lines.find_field_line(self.number, path)

    def find_text_line(self, path: ManifestPath, line: int) -> int:
        """Return the file line of a line within the text of a field."""
        return self.source.lines.find_text_line(self.number, path, line)
