"""Tests deep links of Applications, rendered from settings."""

from __future__ import annotations

import pytest

from argosy.gitops.application_client.deep_links import DeepLink, render_links

VALUES = {"app": {"metadata": {"name": "models"}, "spec": {"project": "default"}}}


def test_link_is_rendered_from_template_if_condition_holds() -> None:
    text = """
    - {url: "https://x.example/{{.app.metadata.name}}", title: X, description: About, icon.class: fa-x}
    - {url: "https://no.example", title: No, if: app.spec.project == 'other'}
    """
    assert render_links(text, VALUES, "argocd-cm") == ([DeepLink("https://x.example/models", "X", "About", "fa-x")], [])


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "data:text/html,x", "/relative", "https:///nowhere", "", "https://x.example/a b",
     "https://x.example/\\n", "JaVaScRiPt:alert(1)", "http://[::1"],
)  # fmt: skip
def test_non_http_or_malformed_url_is_rejected(url: str) -> None:
    links, faults = render_links(f'[{{url: "{url}", title: Bad}}]', VALUES, "argocd-cm")
    assert links == [] and "entry 1" in faults[0]


@pytest.mark.parametrize("text", ["[", "{}", "- 7", "text", ""])
def test_malformed_link_settings_give_no_links(text: str) -> None:
    assert render_links(text, VALUES, "argocd-cm")[0] == []


def test_invalid_link_does_not_affect_other_links() -> None:
    text = (
        '[{url: "https://x.example/{{.bad", title: A}, {url: "https://y.example", title: B, if: "((("}, '
        '{url: "https://z.example", title: C}]'
    )
    links, faults = render_links(text, VALUES, "argocd-cm")
    assert [link.title for link in links] == ["C"] and len(faults) == 2
