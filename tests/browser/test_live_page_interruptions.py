"""Open pages in a real browser after a session is renewed or expires, and after the Application is deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from argosy.kube.resource_key import ResourceKey
from support.engine import CONTROL, Room, config_map
from support.full_site import World, world

OpenPage = Callable[..., Any]
MODELS = "/apps/argocd/models"
REFUSED = ["404", "Failed to load resource", "MIME type", "EventSource"]
pytestmark = pytest.mark.tier("all")  # test_gallery.py and test_app_pages.py test a lost connection and session


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    async def one_application(room: Room) -> None:
        room.repository.push({"app/settings.yaml": config_map(a="one", b="two")})
        await room.deliver()
        await room.until(lambda status: status["sync"]["status"] == "OutOfSync")

    with world(tmp_path_factory.mktemp("trouble") / "site", one_application) as opened_world:
        yield opened_world


def opened(site: World, open_page: OpenPage, at: str = MODELS) -> Any:
    page = open_page(base_url=site.url)
    page.clock.install()
    page.expected += REFUSED
    page.context.add_cookies(site.cookies("ann"))
    page.goto(at)
    page.wait_for_selector("#pulse[data-state=live]")
    return page


async def _synced(room: Room) -> None:
    await room.sync()
    await room.until_synced()


async def _deleted(room: Room) -> None:
    await room.cluster.delete(ResourceKey("argoproj.io", "Application", CONTROL, "models"))


def test_page_stays_live_after_session_renewal_in_another_tab(site: World, open_page: OpenPage) -> None:
    page = opened(site, open_page)
    site.people.past.add("ann")  # expires the token that the stream was opened with
    page.wait_for_event("requestfinished", lambda request: "/live" in request.url)
    site.people.past.discard("ann")  # another tab has renewed the session
    site.do(_synced)
    page.wait_for_selector("#app-head:has-text('Synced')")
    page.wait_for_selector("#pulse[data-state=live]")
    assert page.is_hidden("#signed-out")


def test_expired_session_shows_a_notice_and_stops_requests(site: World, open_page: OpenPage) -> None:
    page = opened(site, open_page)
    requested_urls: list[str] = []
    site.people.past.add("ann")
    try:
        expect(page.locator("#signed-out")).to_be_visible()
        page.on("request", lambda request: requested_urls.append(request.url))
        page.clock.run_for(60_000)
        page.evaluate("() => fetch('/login?last')")  # sent after all requests of that minute
        assert requested_urls == [f"{site.url}/login?last"]
    finally:
        site.people.past.discard("ann")


def test_page_of_a_deleted_application_says_so(site: World, open_page: OpenPage) -> None:
    page = opened(site, open_page)
    site.do(_deleted)
    expect(page.locator("#gone")).to_contain_text("was deleted")
    expect(page.locator("#says")).to_contain_text("was deleted")
    assert page.is_hidden("#signed-out")
    page.get_by_role("link", name="All applications").click()
    page.wait_for_url("**/apps")
