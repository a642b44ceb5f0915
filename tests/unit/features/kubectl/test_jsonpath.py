"""Templates of `-o jsonpath=...`."""

from __future__ import annotations

import pytest

from argosy.errors import UserError
from argosy.features.kubectl.jsonpath import render_template

PODS = {"items": [{"metadata": {"name": "a"}, "n": 1, "on": True}, {"metadata": {"name": "b"}, "labels": {"x": "y"}}]}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.items[0].metadata.name}", "a"),
        ("{.items[*].metadata.name}", "a b"),
        ('{range .items[*]}{"pod "}{.metadata.name}{"\\n"}{end}', "pod a\npod b\n"),
        ("{range .items[*]}{@.metadata.name}={.n},{end}", "a=1,b=,"),
        ("{.items[0].on}", "true"),
        ("{.items[1].labels}", '{"x":"y"}'),
        ("{.missing.field}", ""),
        ("https://{.items[1].labels.x}{'\\n'}", "https://y\n"),
        ("{range .items[*]}{range .labels}{.x}{end};{end}", ";y;"),
        ("{range .items[*]}{$.items[0].metadata.name}{end}", "aa"),
        ('{.items[?(@.metadata.name=="b")].labels.x}', "y"),
    ],
)
def test_jsonpath_template_renders_like_kubectl(template: str, text: str) -> None:
    assert render_template(template, PODS) == text


@pytest.mark.parametrize("template", ["{range .items[*]}x", "x{end}", "{.a[}"])
def test_malformed_jsonpath_template_is_rejected(template: str) -> None:
    with pytest.raises(UserError):
        render_template(template, PODS)
