"""The list of Applications in a real browser: content, filters, bulk actions and live updates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from argosy.kube.objects import key_of
from support.engine import Room
from support.full_site import World, world
from support.sample_applications import bulk, furnish

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
OpenPage = Callable[..., Any]
pytestmark = pytest.mark.tier("all")  # except for tests that are marked otherwise below


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    async def all_of_it(room: Room) -> None:
        await furnish(room)
        await bulk(room)

    with world(tmp_path_factory.mktemp("apps") / "site", all_of_it) as opened_world:
        yield opened_world


@pytest.fixture
def page(site: World, open_page: OpenPage) -> Any:
    return a_page(site, open_page)


def a_page(site: World, open_page: OpenPage, who: str = "ann", **options: Any) -> Any:
    new_page = open_page(base_url=site.url, **options)
    new_page.context.add_cookies(site.cookies(who))
    return new_page


def row(page: Any, name: str) -> Any:
    return page.locator(f"#a-argocd-{name}")


def names(page: Any) -> list[str]:
    return [name.strip() for name in page.locator("#rows .name").all_inner_texts()]


@pytest.mark.tier("test")
def test_rows_show_the_status_and_its_reason(page: Any) -> None:
    page.goto("/apps")
    assert names(page) == ["broken", "bulk-one", "bulk-two", "docs", "fraud", "ranker", "web"]
    assert "Healthy" in row(page, "web").inner_text()
    assert "missing.yaml does not exist" in row(page, "broken").inner_text()
    assert "differ" in row(page, "fraud").inner_text()
    assert "waiting for healthy state of apps/Deployment/ranker" in row(page, "ranker").inner_text()
    assert "held" in row(page, "docs").inner_text()


def test_expanded_row_links_the_differing_object_and_the_diff(page: Any) -> None:
    page.goto("/apps")
    row(page, "fraud").locator("summary").click()
    opened = row(page, "fraud")
    assert opened.get_by_role("link", name="ConfigMap/fraud", exact=True).is_visible()
    opened.get_by_role("link", name="APP DIFF").click()
    page.wait_for_url("**/apps/argocd/fraud/diff")


def test_row_is_refreshed_without_leaving_the_list(page: Any) -> None:
    page.goto("/apps")
    row(page, "docs").locator("summary").click()
    row(page, "docs").get_by_role("button", name="REFRESH").click()
    page.wait_for_url("**/apps?said=refreshed")
    assert "Refresh requested" in page.inner_text("#said")


def test_filters_are_in_the_url_and_can_be_cleared(page: Any) -> None:
    page.goto("/apps")
    page.locator("#facet-health summary").click()
    page.locator("#facet-health").get_by_role("link", name="Progressing").click()
    page.wait_for_url("**/apps?health=Progressing")
    assert names(page) == ["ranker"]
    assert page.locator("#apps-count").inner_text() == "1 of 7 applications"
    page.get_by_role("link", name="clear all").click()
    page.wait_for_url("**/apps")
    assert page.locator("#apps-count").inner_text() == "7 applications"
    page.go_back()
    assert names(page) == ["ranker"]


def test_search_matches_the_reason_of_a_status(page: Any) -> None:
    page.goto("/apps")
    page.keyboard.press("/")
    page.keyboard.type("missing.yaml")
    page.keyboard.press("Enter")
    page.wait_for_url("**/apps?q=missing.yaml")
    assert names(page) == ["broken"]


def test_columns_sort_on_the_server(page: Any) -> None:
    page.goto("/apps?sort=health")
    assert names(page)[0] == "bulk-one"  # Missing sorts before Unknown
    page.goto("/apps?sort=-name")
    assert names(page)[0] == "web"


def test_search_without_matches_shows_a_message(page: Any) -> None:
    page.goto("/apps?q=nosuchthing")
    assert "No application matches these filters" in page.inner_text("main")


def test_tiles_show_the_same_applications(page: Any) -> None:
    page.goto("/apps?view=tiles")
    assert page.locator(".tile").count() == 7
    assert "production" in row(page, "fraud").inner_text()


def test_summary_lists_problem_applications_and_links_to_filtered_lists(page: Any) -> None:
    page.goto("/apps?view=summary")
    assert "broken" in page.locator(".needs-you").inner_text()
    assert "web" not in page.locator(".needs-you .name").all_inner_texts()
    page.locator(".matrix").get_by_title("1 OutOfSync and Progressing").click()
    page.wait_for_url("**/apps?sync=OutOfSync&health=Progressing")
    assert names(page) == ["ranker"]


def test_favourites_are_stored_per_browser(page: Any, site: World, open_page: OpenPage) -> None:
    page.goto("/apps/argocd/docs")
    page.locator("summary[aria-label='More actions']").click()
    page.get_by_role("button", name="Favourite").click()
    page.goto("/apps?fav=1")
    assert names(page) == ["docs"]
    row(page, "docs").get_by_role("button", name="Favourite docs").click()
    page.wait_for_url("**/apps")
    row(page, "web").get_by_role("button", name="Favourite web").click()
    page.goto("/apps?fav=1")
    assert names(page) == ["web"]
    other = a_page(site, open_page)
    other.goto("/apps?fav=1")
    assert "No application matches" in other.inner_text("main")


@pytest.mark.tier("test")
def test_bulk_sync_shows_a_plan_and_skips_running_operations(page: Any, site: World) -> None:
    page.goto("/apps")
    for name in ("bulk-one", "bulk-two", "ranker"):
        page.get_by_role("checkbox", name=f"Select {name}", exact=True).check()
    page.locator("#bulk").get_by_role("button", name="SYNC").click()
    page.wait_for_url("**/apps/plan?**")
    assert "another operation is already in progress" in page.inner_text("main")
    page.get_by_role("button", name="SYNC 2").click()
    page.wait_for_url("**/apps?said=synced-many**")
    assert "Syncs started" in page.inner_text("#said")
    site.do(lambda room: room.until_synced(name="bulk-one"))
    page.wait_for_selector("#a-argocd-bulk-one:has-text('Synced')")


def test_two_windows_show_drift_live(site: World, open_page: OpenPage) -> None:
    """Changes docs, which is held: self-heal would revert a change of web."""
    site.do(lambda room: room.until(lambda status: status["sync"]["status"] == "Synced", "docs"))
    one, other = a_page(site, open_page), a_page(site, open_page)
    for window in (one, other):
        window.goto("/apps")
        window.wait_for_selector("#pulse[data-state=live]")
    site.do(lambda room: room.change("docs", theme="dark"))
    site.do(lambda room: room.until(lambda status: status["sync"]["status"] == "OutOfSync", "docs"))
    for window in (one, other):
        window.wait_for_selector("#a-argocd-docs:has-text('OutOfSync')")
    site.do(lambda room: room.change("docs", theme="light"))
    for window in (one, other):
        window.wait_for_selector("#a-argocd-docs:not(:has-text('OutOfSync'))")


def test_new_application_is_announced_and_shown_after_a_reload(page: Any, site: World) -> None:
    page.goto("/apps?q=late")
    page.wait_for_selector("#pulse[data-state=live]")
    site.do(lambda room: room.deliver("late-comer", "late"))
    page.wait_for_selector("#changed:not([hidden])")
    page.click("#reload")
    page.wait_for_selector("#a-argocd-late-comer")
    site.do(lambda room: _gone(room, "late-comer"))


async def _gone(room: Room, name: str) -> None:
    await room.cluster.delete(key_of(await room.app(name)))


@pytest.mark.tier("test")
def test_list_is_readable_and_searchable_without_javascript(site: World, open_page: OpenPage) -> None:
    page = a_page(site, open_page, java_script_enabled=False)
    page.goto("/apps")
    assert "differ" in row(page, "fraud").inner_text()
    page.fill("#search-q", "fraud")
    page.get_by_role("button", name="Find", exact=True).click()
    expect(page.locator("#rows .name")).to_have_text(["fraud"])


def test_user_without_applications_sees_getting_started_commands(site: World, open_page: OpenPage) -> None:
    page = a_page(site, open_page, "bob")
    page.goto("/apps")
    assert "No applications yet" in page.inner_text("main")
    assert page.locator(".command").count() == 3


@pytest.mark.tier("test")
def test_read_only_user_has_no_sync_button(site: World, open_page: OpenPage) -> None:
    page = a_page(site, open_page, "rita")
    page.goto("/apps/argocd/fraud")
    assert page.get_by_role("link", name="APP DIFF").is_visible()
    assert page.get_by_role("link", name="SYNC", exact=True).count() == 0
    page.goto("/apps/argocd/fraud/sync")
    assert "You may not sync this application" in page.inner_text("main")


def test_list_with_all_states_is_accessible_and_fits_a_phone(page: Any, axe: Any) -> None:
    page.goto("/apps?sort=-sync")
    axe(page)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    axe(page, "by night", only=["color-contrast"])
    page.set_viewport_size({"width": 320, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
