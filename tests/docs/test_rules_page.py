"""docs/reference/rules.md matches the rule catalogue."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from argosy.features.explain.rule_cli import render_rule_page
from argosy.gitops.analysis.rules import CATALOGUE

ROOT = Path(__file__).parents[2]


def test_rules_page_is_generated_from_the_catalogue() -> None:
    spec = importlib.util.spec_from_file_location("make_rules_page", ROOT / "tools" / "make_rules_page.py")
    assert spec and spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert (ROOT / "docs" / "reference" / "rules.md").read_text() == tool.page(), "python tools/make_rules_page.py"


def test_every_rule_page_contains_title_certainty_and_fix() -> None:
    for rule in CATALOGUE.values():
        text = "\n".join(render_rule_page(rule.id))
        assert rule.title in text and rule.certainty in text and rule.fix in text
