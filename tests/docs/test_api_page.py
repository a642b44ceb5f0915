"""The page of the API says what the table of routes says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from argosy.web.route_table import ROUTE_TABLE

ROOT = Path(__file__).parents[2]


def test_the_page_of_the_api_is_made_from_the_table_of_routes() -> None:
    spec = importlib.util.spec_from_file_location("make_api_page", ROOT / "tools" / "make_api_page.py")
    assert spec and spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert (ROOT / "docs" / "reference" / "api.md").read_text() == tool.page(), "python tools/make_api_page.py"


def test_every_route_of_the_api_says_what_it_is_for() -> None:
    assert [f"{route.method} {route.path}" for route in ROUTE_TABLE if route.is_api and not route.summary] == []
