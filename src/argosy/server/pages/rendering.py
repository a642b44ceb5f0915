"""A template and values become HTML.

In: a template's name and plain values. Out: HTML, every value escaped. Never: a value as markup.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any


def render(template: str, values: Mapping[str, Any]) -> str:
    """A stand-in until there are templates: the values, as a list."""
    shown = "".join(f"<dt>{html.escape(str(name))}<dd>{html.escape(str(value))}" for name, value in values.items())
    title = html.escape(str(values.get("title", "argosy")))
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><dl>{shown}</dl></html>'
