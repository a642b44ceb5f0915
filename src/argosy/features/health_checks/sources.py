"""Files as they were read. In: a name and a text. Out: manifests that know where they stand. Never: reads a file."""

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
    """A manifest, the file that it stands in, and its number there."""

    manifest: Manifest
    source: Source
    number: int

    @property
    def file(self) -> str:
        return self.source.name

    def line(self, path: Path) -> int:
        """Where a field of it stands in the file."""
        return self.source.lines.of_field(self.number, path)

    def line_in(self, path: Path, line: int) -> int:
        """Where a line of the text in a field stands in the file."""
        return self.source.lines.of_text(self.number, path, line)
