"""docs/reference/api.md matches the route table."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from support.route_table import ROUTE_TABLE

ROOT = Path(__file__).parents[2]


def test_api_page_is_generated_from_the_route_table() -> None:
    spec = importlib.util.spec_from_file_location("make_api_page", ROOT / "tools" / "make_api_page.py")
    assert spec and spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert (ROOT / "docs" / "reference" / "api.md").read_text() == tool.page(), "python tools/make_api_page.py"


def test_every_api_route_has_a_summary() -> None:
    assert [f"{route.method} {route.path}" for route in ROUTE_TABLE if route.is_api and not route.summary] == []
