"""Accessibility of every page: axe-core in both themes, phone width, no JavaScript, keyboard only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.deadlines import HANG_SECONDS
from support.demo import Demo, demo
from support.full_site import World, world

Opens = Callable[..., Any]
pytestmark = pytest.mark.tier("all")  # test_gallery.py checks one page with axe-core in every run
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

APP = "/apps/openshift-gitops/llmops-staging"
SERVICE = f"{APP}/r/serving.kserve.io/InferenceService/llmops-staging/staging-qwen25-05b-instruct"
PAGES = (
    "/apps",
    "/apps?view=tiles",
    "/apps?view=summary",
    "/apps?q=nothing-is-called-so",
    APP,
    f"{APP}/tree?show=problems",
    f"{APP}/resources",
    f"{APP}/operation",
    f"{APP}/diff",
    f"{APP}/diff?format=yaml",
    f"{APP}/events",
    f"{APP}/logs",
    f"{APP}/history",
    f"{APP}/parameters",
    f"{APP}/manifest",
    f"{APP}/settings",
    f"{APP}/sync",
    f"{APP}/delete",
    f"{APP}/rollback",
    "/apps/plan?do=sync&app=openshift-gitops/llmops-staging&app=openshift-gitops/llmops-dev",
    SERVICE,
    f"{SERVICE}/delete",
    f"{SERVICE}?tab=health",
    f"{SERVICE}?tab=fields",
    f"{SERVICE}?tab=diff",
    f"{SERVICE}?tab=live",
    f"{SERVICE}?tab=events",
    "/models",
    "/models/llmops-dev/dev-qwen25-05b-instruct",
    "/notebooks",
    "/environments",
    "/activity",
    "/doctor",
    "/settings",
    "/settings/appearance",
    "/settings/projects",
    "/settings/projects/default",
    "/settings/repositories",
    "/settings/clusters",
    "/settings/health",
    "/settings/accounts",
    "/api/docs",
    "/apps/openshift-gitops/there-is-none",
)
MISSING = "/apps/openshift-gitops/there-is-none"
PARTS = 4
WIDE = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo(tmp_path_factory.mktemp("home"), "--port", "0", "--api-port", "0", "--no-browser") as ready:
        yield ready


@pytest.fixture(scope="module")
def signed_in(staged: Demo, chromium: Any) -> dict[str, Any]:
    """Base URL and cookies after signing in with the printed login URL."""
    url_match = re.search(r"(http://\S+)/enter\?code=\S+", staged.printed)
    assert url_match, staged.printed
    context = chromium.new_context()
    context.set_default_timeout(HANG_SECONDS * 1000)
    page = context.new_page()
    page.goto(url_match[0])
    page.wait_for_url("**/apps")
    state = context.storage_state()
    context.close()
    return {"base_url": url_match[1], "storage_state": state}


@pytest.mark.parametrize("part", range(PARTS))
def test_pages_are_accessible_at_any_width(open_page: Opens, signed_in: dict[str, Any], axe: Any, part: int) -> None:
    """Load many pages in one window: opening a window costs more than loading a page."""
    page = open_page(**signed_in)
    page.expected += ["404 (Not Found)"]
    for path in PAGES[part::PARTS]:
        page.set_viewport_size(WIDE)
        answer = page.goto(path)
        assert answer.status == (404 if path == MISSING else 200), path
        assert page.locator("h1").count() == 1, path
        axe(page)
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
        axe(page, f"{path}, dark", only=["color-contrast"])
        for width in (640, 320):  # a window of 1280 px zoomed to 200 and 400 per cent
            page.set_viewport_size({"width": width, "height": 640})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{path}, {width}"


def test_every_page_is_readable_without_javascript(open_page: Opens, signed_in: dict[str, Any]) -> None:
    page = open_page(**signed_in, java_script_enabled=False)
    page.expected += ["404 (Not Found)"]
    for path in PAGES:
        page.goto(path)
        assert page.locator("h1").is_visible(), path
        assert len(page.locator("main").inner_text()) > 40, path
        unseen = page.locator(".find:visible, .copy:visible").count()
        assert unseen == 0, f"{path}: a button that needs a script"


def test_login_page_passes_axe_in_both_themes(open_page: Opens, signed_in: dict[str, Any], axe: Any) -> None:
    page = open_page(base_url=signed_in["base_url"])
    page.goto("/apps")
    assert "/login" in page.url
    axe(page)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    axe(page, "the way in, dark", only=["color-contrast"])


def test_choosing_a_theme_applies_it_and_stays_on_the_page(open_page: Opens, signed_in: dict[str, Any]) -> None:
    page = open_page(**signed_in)
    page.goto("/apps?view=tiles")
    page.click("[popovertarget=me]")
    page.click("#me button[value=dark]")
    page.wait_for_selector("html[data-theme=dark]")
    assert page.url.endswith("/apps?view=tiles")


def test_out_of_sync_application_is_found_diffed_and_synced_by_keyboard(
    open_page: Opens, signed_in: dict[str, Any]
) -> None:
    page = open_page(**signed_in)
    page.goto("/models")
    page.keyboard.press("Control+k")
    page.keyboard.type("llmops-staging")
    expect(page.locator("#palette-list [aria-selected=true]")).to_contain_text("llmops-staging")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{APP}")
    expect(page.locator("main")).to_contain_text("1 Git change")
    page.keyboard.press("d")
    page.wait_for_url(f"**{APP}/diff*")
    expect(page.locator("main")).to_contain_text("limits.cpu")
    page.keyboard.press("s")
    page.wait_for_url(f"**{APP}/sync*")
    press_until(page, "SYNCHRONIZE")
    page.keyboard.press("Enter")
    page.wait_for_url("**said=*")
    expect(page.locator("#app-head, main").first).to_contain_text("Synced")


def press_until(page: Any, word: str) -> None:
    """Press Tab until the button with this text has the focus."""
    for _ in range(150):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.innerText || ''").strip().upper() == word:
            return
    raise AssertionError(f"no way to {word} by the keyboard")


# -- empty installation --


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    async def nothing(room: Any) -> None:
        """An empty installation."""

    with world(tmp_path_factory.mktemp("bare"), nothing) as opened_world:
        yield opened_world


@pytest.mark.parametrize("path", ["/apps", "/apps?view=tiles", "/models", "/notebooks", "/environments"])
def test_empty_page_says_how_to_add_content(open_page: Opens, bare: World, axe: Any, path: str) -> None:
    page = open_page()
    page.context.add_cookies(bare.cookies())
    assert page.goto(bare.url + path).status == 200
    assert page.locator(".empty .command, .empty p").count() > 0
    axe(page)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    axe(page, f"{path}, dark", only=["color-contrast"])
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_not_found_page_mentions_missing_permission_and_is_accessible(open_page: Opens, bare: World, axe: Any) -> None:
    page = open_page()
    page.expected += ["404 (Not Found)"]
    page.context.add_cookies(bare.cookies("bob"))
    page.goto(f"{bare.url}/apps/argocd/secret-plans")
    assert "or you do not have permission to see it" in page.inner_text("main")
    axe(page)
