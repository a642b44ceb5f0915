"""Writes the table of patterns into the alignment guide, from the data that `argosy align` proposes from.

In: argosy.gitops.analysis.alignment.field_writer_catalog. Out: the page with its table anew.
Development only. Run after a change of the patterns: python tools/make_pattern_table.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from argosy.gitops.analysis.alignment.field_writer_catalog import PATTERNS, FieldWriterPattern

PAGE = Path(__file__).parents[1] / "docs" / "01-ARCHITECTURE" / "ARGOCD-GITOPS-ALIGNMENT.md"
BEGIN = "<!-- patterns: made by tools/make_pattern_table.py -->\n"
END = "<!-- end of patterns -->\n"


def page(text: str) -> str:
    """The page with the table in its place; the rest as it is."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + BEGIN + "\n" + "\n".join(table()) + "\n\n" + END + tail


def table() -> Iterator[str]:
    yield "| what | kind | fields that others write | does nothing | because |"
    yield "|---|---|---|---|---|"
    for entry in PATTERNS:
        kind = f"{entry.kind} (`{entry.group}`)" if entry.group else entry.kind
        kind = "all" if entry.kind == "*" else kind
        yield f"| {entry.topic} | {kind} | {_needed(entry)} | {_named(entry.redundant_pointers)} | {entry.reason} |"


def _needed(pattern: FieldWriterPattern) -> str:
    owned = " (its operator writes it whole)" if pattern.is_owned else ""
    return _named(pattern.effective_pointers) + owned


def _named(pointers: tuple[str, ...]) -> str:
    return ", ".join(f"`{pointer}`" for pointer in pointers)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
