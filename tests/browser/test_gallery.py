"""Page components in a real browser: accessibility, live patches, streams and keyboard shortcuts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from argosy.web.page_templates import render_macro
from support import component_gallery
from support.deadlines import wait_until
from support.gallery_server import Gallery

Opens = Callable[..., Any]
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect


def row(**changes: Any) -> str:
    return render_macro(
        "applications/parts_apps.html",
        "app_row",
        component_gallery.app("fraud", "production", "Synced", "Healthy", **changes),
    )


@pytest.fixture
def live(tab: Any, gallery_site: Gallery) -> Any:
    gallery_site.drop()
    tab.goto(f"{gallery_site.url}/gallery?live=1")
    tab.wait_for_selector("#pulse[data-state=live]")
    return tab


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.tier("all"))])
@pytest.mark.parametrize("width", [1280, pytest.param(320, marks=pytest.mark.tier("all"))])
def test_gallery_is_accessible(open_page: Opens, gallery_site: Gallery, axe: Any, theme: str, width: int) -> None:
    page = open_page(viewport={"width": width, "height": 900})
    page.goto(f"{gallery_site.url}/gallery?theme={theme}")
    axe(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.tier("all")
def test_gallery_is_readable_without_javascript(open_page: Opens, gallery_site: Gallery) -> None:
    page = open_page(java_script_enabled=False)
    page.goto(f"{gallery_site.url}/gallery")
    assert page.locator("h1").inner_text() == "Application fraud"
    assert page.get_by_text("Deployment fraud-predictor: image").first.is_visible()
    assert page.locator(".find").is_hidden()


def test_a_patch_replaces_an_element_and_keeps_the_focus(live: Any, gallery_site: Gallery) -> None:
    live.focus("#a-argocd-fraud a")
    gallery_site.patch({"a-argocd-fraud": row()}, say="fraud is Healthy")
    live.wait_for_selector("#a-argocd-fraud :text('Healthy')")
    assert live.evaluate("document.activeElement.closest('tr').id") == "a-argocd-fraud"
    expect(live.locator("#says")).to_have_text("fraud is Healthy")
    assert live.locator("#as-of").inner_text() == "as of 12:04:00"


@pytest.mark.tier("all")
def test_patch_keeps_an_open_details_element_open(live: Any, gallery_site: Gallery) -> None:
    live.click("#fold-conditions summary")
    opened = "<details class='fold' id='fold-conditions'><summary>Conditions</summary><p>Three.</p></details>"
    gallery_site.patch({"fold-conditions": opened})
    live.wait_for_selector("#fold-conditions :text('Three.')")
    assert live.locator("#fold-conditions").get_attribute("open") is not None


def test_patch_does_not_replace_a_form_being_edited(live: Any, gallery_site: Gallery) -> None:
    live.evaluate("document.getElementById('f-revision').closest('form').id = 'sync-form'")
    live.fill("#f-revision", "v1.5")
    gallery_site.patch({"sync-form": "<form id='sync-form'></form>"})
    live.wait_for_selector("#changed:not([hidden])")
    assert live.input_value("#f-revision") == "v1.5"


@pytest.mark.tier("all")
def test_patched_form_gets_the_csrf_token_of_the_page(live: Any, gallery_site: Gallery) -> None:
    gallery_site.patch({"chips": '<form id="chips" method="post" action="/x"><input type="hidden" name="csrf"></form>'})
    live.wait_for_selector("form#chips", state="attached")
    assert live.input_value("#chips input") == "token"


@pytest.mark.tier("all")
def test_title_and_favicon_follow_the_page_state(live: Any, gallery_site: Gallery) -> None:
    assert live.title() == "✖ fraud · Degraded – argosy"
    assert "favicon-bad" in (live.get_attribute("#favicon", "href") or "")
    gallery_site.patch({"page-state": render_macro("parts/page.html", "page_mark", "ok", "fraud · Healthy")})
    expect(live).to_have_title("fraud · Healthy – argosy")
    assert "favicon-ok" in (live.get_attribute("#favicon", "href") or "")


def test_heartbeat_marks_the_page_stale_and_fresh_again(live: Any, gallery_site: Gallery) -> None:
    live.expected += ["Failed to load resource", "ERR_"]
    gallery_site.event("beat", {"at": "2026-11-15T12:05:00Z", "isUp": False})
    live.wait_for_selector("html.is-stale")
    expect(live.locator("#says")).to_have_text("Connection lost. This page may be old.")
    gallery_site.event("beat", {"at": "2026-11-15T12:05:20Z", "isUp": True})
    live.wait_for_selector("html:not(.is-stale)")


def test_silent_stream_is_replaced_by_a_new_connection(tab: Any, gallery_site: Gallery) -> None:
    gallery_site.drop()
    tab.clock.install()
    tab.goto(f"{gallery_site.url}/gallery?live=1")
    tab.wait_for_selector("#pulse[data-state=live]")
    tab.clock.run_for(60_000)
    tab.wait_for_function("() => document.documentElement.classList.contains('is-stale') === false")
    wait_until(lambda: len(gallery_site.streams) > 1, "another stream")
    gallery_site.event("beat", {"at": "2026-11-15T12:04:00Z", "isUp": True})
    tab.wait_for_selector("#pulse[data-state=live]")


def test_markup_in_a_patch_is_escaped(live: Any, gallery_site: Gallery) -> None:
    bad = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    gallery_site.patch({"a-argocd-fraud": row(why=bad)})
    live.wait_for_selector("#a-argocd-fraud :text('onerror')")
    assert live.locator("#a-argocd-fraud img, #a-argocd-fraud script").count() == 0


@pytest.mark.tier("all")
def test_shortcut_help_lists_the_keys_of_the_page(tab: Any, gallery_site: Gallery) -> None:
    tab.goto(f"{gallery_site.url}/gallery")
    tab.keyboard.press("?")
    tab.wait_for_selector("dialog#keys[open]")
    keys_text = tab.locator("#keys-list").inner_text()
    assert "App Diff" in keys_text and "Go to Models" in keys_text
    tab.keyboard.press("Escape")
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.id") == "search-q"


@pytest.mark.tier("all")
def test_single_key_shortcuts_can_be_switched_off(tab: Any, gallery_site: Gallery) -> None:
    tab.goto(f"{gallery_site.url}/gallery?keys=off")
    tab.keyboard.press("?")
    assert tab.locator("dialog#keys").is_hidden()
    tab.keyboard.press("Control+k")
    assert tab.locator("dialog#palette").is_visible()


@pytest.mark.tier("all")
def test_j_and_k_move_between_rows(tab: Any, gallery_site: Gallery) -> None:
    tab.goto(f"{gallery_site.url}/gallery")
    for key in ("j", "j", "k", "j"):
        tab.keyboard.press(key)
    assert tab.evaluate("document.activeElement.closest('[data-row]').id") == "a-argocd-fraud-staging"


@pytest.mark.tier("all")
def test_tree_is_one_tab_stop_and_navigated_with_arrow_keys(tab: Any, gallery_site: Gallery) -> None:
    tab.goto(f"{gallery_site.url}/gallery")
    assert tab.locator("[role=tree] [tabindex='0']").count() == 1
    tab.focus("[role=treeitem][tabindex='0']")
    for key in ("ArrowDown", "ArrowDown", "ArrowLeft", "ArrowLeft"):
        tab.keyboard.press(key)
    here = "document.activeElement.querySelector('.node').id"
    assert tab.evaluate(here) == "r--ReplicaSet-mlops-fraud-predictor-7c9f"
    assert tab.evaluate("document.activeElement.ariaExpanded") == "false"


@pytest.mark.tier("all")
def test_palette_shows_search_results_of_the_server(tab: Any, gallery_site: Gallery) -> None:
    gallery_site.found = [
        {"kind": "application", "text": "fraud", "url": "/apps/argocd/fraud"},
        {"kind": "model", "text": "fraud model", "url": "/models/mlops/fraud"},
    ]
    tab.goto(f"{gallery_site.url}/gallery")
    tab.keyboard.press("Control+k")
    tab.keyboard.type("fraud")
    tab.wait_for_selector("#palette-1")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/models/mlops/fraud")


@pytest.mark.tier("all")
def test_search_is_submitted_on_enter(tab: Any, gallery_site: Gallery) -> None:
    tab.goto(f"{gallery_site.url}/gallery?env=production")
    tab.fill("#search-q", "churn")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/gallery?*q=churn")


@pytest.mark.tier("all")
def test_log_follows_its_end_until_scrolled_up(tab: Any, gallery_site: Gallery) -> None:
    tab.set_viewport_size({"width": 1280, "height": 400})
    tab.goto(f"{gallery_site.url}/gallery")
    left = tab.evaluate("(log => log.scrollHeight - log.scrollTop - log.clientHeight)(document.getElementById('log'))")
    assert left <= 2
    tab.evaluate("document.getElementById('log').scrollTop = 0")
    tab.wait_for_selector("#log[data-locked]")


@pytest.mark.tier("all")
def test_clicked_facet_does_not_widen_the_page_on_a_phone(open_page: Opens, gallery_site: Gallery) -> None:
    page = open_page(viewport={"width": 320, "height": 700})
    page.goto(f"{gallery_site.url}/gallery")
    page.click("#facet-project summary")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.tier("all")
def test_many_background_pages_do_not_block_live_updates(open_page: Opens, gallery_site: Gallery) -> None:
    """A browser opens at most six connections to one host: the stream of a seventh page would wait forever."""
    gallery_site.drop()
    first = open_page()
    pages = [first, *(first.context.new_page() for _ in range(7))]
    for page in pages:
        page.goto(f"{gallery_site.url}/gallery?live=1")
        page.wait_for_selector("#pulse[data-state=live]")
        page.evaluate(HIDE)
    visible_page = pages[-1]
    visible_page.evaluate(SHOW)
    visible_page.wait_for_selector("#pulse[data-state=live]")
    gallery_site.patch({"page-state": render_macro("parts/page.html", "page_mark", "ok", "fraud · Healthy")})
    expect(visible_page).to_have_title("fraud · Healthy – argosy")
    expect(first).to_have_title("fraud · Healthy – argosy")


HIDE = """() => {
  Object.defineProperty(document, 'hidden', {get: () => window.isBehind, configurable: true});
  window.isBehind = true;
  document.dispatchEvent(new Event('visibilitychange'));
}"""
SHOW = "() => { window.isBehind = false; document.dispatchEvent(new Event('visibilitychange')); }"


@pytest.mark.tier("all")
def test_page_is_stale_while_the_server_refuses_the_stream(tab: Any, gallery_site: Gallery) -> None:
    tab.expected += ["503", "Failed to load resource"]
    tab.clock.install()
    gallery_site.is_refusing = True
    try:
        tab.goto(f"{gallery_site.url}/gallery?live=1")
        for _ in range(3):
            tab.clock.run_for(6000)
        tab.wait_for_selector("html.is-stale")
    finally:
        gallery_site.is_refusing = False
    tab.clock.run_for(6000)
    tab.wait_for_selector("html:not(.is-stale)")
