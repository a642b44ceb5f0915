"""The alignment guide shows the patterns that align proposes from."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from argosy.gitops.analysis.alignment.field_writer_catalog import PATTERNS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "01-ARCHITECTURE" / "ARGOCD-GITOPS-ALIGNMENT.md"
TOPICS = (
    "Principles, and why",
    "Options that all applications share",
    "What is left to others",
    "Which branch is followed",
    "When one complains",
    "What never goes into Git, and who may do what",
    "For a new application",
)


def test_the_table_of_the_guide_is_made_from_the_patterns() -> None:
    spec = importlib.util.spec_from_file_location("make_pattern_table", ROOT / "tools" / "make_pattern_table.py")
    assert spec and spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = PAGE.read_text()
    assert text == tool.page(text), "python tools/make_pattern_table.py"


def test_every_kind_of_the_patterns_is_in_the_guide_with_all_its_pointers() -> None:
    text = PAGE.read_text()
    for pattern in PATTERNS:
        rows = [line for line in text.splitlines() if line.startswith(f"| {pattern.topic} |")]
        assert any(all(f"`{pointer}`" in row for pointer in pattern.pointers) for row in rows), pattern


def test_the_guide_has_its_seven_topics_and_a_checklist_of_ten() -> None:
    text = PAGE.read_text()
    assert tuple(re.findall(r"^## \d\. (.+)$", text, re.MULTILINE)) == TOPICS
    assert text.count("- [ ] ") == 10
