"""Rules for templates: no URLs from data in attributes, no inline style or script, no trusted values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from argosy.web.page_templates import FEATURES_FOLDER, TEMPLATES_FOLDER
from argosy.web.static_files import STATIC_FOLDER

LINKS = "parts/link.html"  # the only template that puts a URL from data into an attribute
FIXED = re.compile(r"\{\{ static\(")  # static files of argosy
KNOWN = {("layout.html", "{{ url }}")}  # the layout's own navigation links
RULES = {
    "an address from data": re.compile(r"""\b(?:href|src|action|formaction|poster)=["']?(?=[^"'>]*\{\{)([^"'>]*)"""),
    "a style of its own": re.compile(r"\sstyle\s*="),
    "a script of its own": re.compile(r"\son[a-z]+\s*=|<script(?![^>]*\ssrc=)|javascript:"),
    "a value that is trusted": re.compile(r"\|\s*safe\b|\bautoescape\b"),
    "something from elsewhere": re.compile(r"""(?:href|src|action)=["']?(?:https?:)?//"""),
}
MOST_SCRIPT = 12 * 1024


def is_known(name: str, address: str) -> bool:
    return name == LINKS or (name, address) in KNOWN or address.startswith("#") or bool(FIXED.match(address))


def broken(name: str, text: str) -> list[str]:
    text = re.sub(r"\{#.*?#\}", "", text, flags=re.DOTALL)
    return [
        f"{name}: {rule}: {match[0][:80]}"
        for rule, pattern in RULES.items()
        for match in pattern.finditer(text)
        if rule != "an address from data" or not is_known(name, match[1])
    ]


TEMPLATE_FILES = {path.relative_to(TEMPLATES_FOLDER).as_posix(): path for path in TEMPLATES_FOLDER.rglob("*.html")}
TEMPLATE_FILES |= {f"{path.parents[1].name}/{path.name}": path for path in FEATURES_FOLDER.glob("*/templates/*.html")}


@pytest.mark.parametrize("name", sorted(TEMPLATE_FILES))
def test_templates_follow_the_rules(name: str) -> None:
    assert broken(name, TEMPLATE_FILES[name].read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        '<a href="{{ app.url }}">',
        "<a href='/apps/{{ name }}'>",
        '<img src="{{ picture }}">',
        '<form action="{{ where }}">',
        '<p style="width: 1px">',
        '<p onclick="go()">',
        "<script>go()</script>",
        "{{ html|safe }}",
        "{% autoescape false %}",
        '<script src="https://cdn.example/x.js">',
    ],
)
def test_template_that_breaks_a_rule_is_detected(text: str) -> None:
    assert len(broken("page.html", text)) == 1


def test_script_size_is_limited() -> None:
    assert (STATIC_FOLDER / "argosy.js").stat().st_size <= MOST_SCRIPT


def test_static_files_load_nothing_external() -> None:
    for name in ("argosy.css", "argosy.js", "sprite.svg"):
        text = Path(STATIC_FOLDER / name).read_text().replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text and "@import" not in text and "eval(" not in text
