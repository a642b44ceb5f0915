"""Manifests and their positions in a file. In: a name and a text. Out: located manifests. Never: reads a file."""

from __future__ import annotations

from typing import NamedTuple

from argosy.kube.objects import Manifest, read_manifests
from argosy.kube.objects.field_lines import Lines, Path


class Source:
    """One file, or standard input."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.lines = Lines(text)

    def located(self) -> list[Located]:
        return [Located(manifest, self, at) for at, manifest in enumerate(read_manifests(self.text, where=self.name))]


class Located(NamedTuple):
    """A manifest, its file, and its index in the file."""

    manifest: Manifest
    source: Source
    number: int

    @property
    def file(self) -> str:
        return self.source.name

    def line(self, path: Path) -> int:
        """Return the line of a field in the file."""
        return self.source.lines.of_field(self.number, path)

    def line_in(self, path: Path, line: int) -> int:
        """Return the file line of a line within the text of a field."""
        return self.source.lines.of_text(self.number, path, line)
