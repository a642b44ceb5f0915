"""The alignment guide shows the patterns that `argosy align` proposes changes from."""

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


def test_pattern_table_is_generated_from_the_patterns() -> None:
    spec = importlib.util.spec_from_file_location("make_pattern_table", ROOT / "tools" / "make_pattern_table.py")
    assert spec and spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = PAGE.read_text()
    assert text == tool.page(text), "python tools/make_pattern_table.py"


def test_guide_lists_every_pattern_with_all_its_json_pointers() -> None:
    text = PAGE.read_text()
    for pattern in PATTERNS:
        rows = [line for line in text.splitlines() if line.startswith(f"| {pattern.topic} |")]
        assert any(all(f"`{pointer}`" in row for pointer in pattern.pointers) for row in rows), pattern


def test_guide_has_seven_topics_and_a_ten_item_checklist() -> None:
    text = PAGE.read_text()
    assert tuple(re.findall(r"^## \d\. (.+)$", text, re.MULTILINE)) == TOPICS
    assert text.count("- [ ] ") == 10
