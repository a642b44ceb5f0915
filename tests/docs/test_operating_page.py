"""docs/reference/operating.md lists exactly the metrics that argosy exports."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "operating.md").read_text()
SOURCES = ("gitops/engine/counters.py", "gitops/engine/metrics.py", "gitops/status/metrics.py", "web/api/metrics.py")
NAME = re.compile(r"(?:argocd|argosy|workqueue|process)_[a-z0-9_]+")


def list_metric_names() -> set[str]:
    names: set[str] = set()
    for source in SOURCES:
        for node in ast.walk(ast.parse((ROOT / "src" / "argosy" / source).read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value):
                names.add(node.value)
    return names


def test_operating_page_lists_exactly_the_exported_metrics() -> None:
    explained = {name for row in re.findall(r"^\| (`[^|]+) \|", PAGE, re.MULTILINE) for name in NAME.findall(row)}
    assert len(list_metric_names()) > 25
    assert list_metric_names() - explained == set()
    assert explained - list_metric_names() == set()
