"""Less common actions on Application pages in a real browser, and live updates in several windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from argosy import annotations as names
from argosy.kube.resource_key import ResourceKey
from support.engine import Room, config_map
from support.full_site import World, world
from support.sample_applications import CONTROL, bulk, event, furnish

OpenPage = Callable[..., Any]
pytestmark = pytest.mark.tier("all")  # test_app_pages.py and test_apps_pages.py test the common actions
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
SHUT = {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]}
MANY = 52


async def many(room: Room) -> None:
    """Create more Applications than fit on a page, all with skip-reconcile."""
    for number in range(MANY):
        metadata = {"annotations": {"argocd.argoproj.io/skip-reconcile": "true"}}
        await room.deliver(f"many-{number:02}", "docs", metadata=metadata)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    async def all_of_it(room: Room) -> None:
        await furnish(room)
        await bulk(room)
        await many(room)
        await room.project("shut", syncWindows=[SHUT], sourceRepos=["*"], orphanedResources={"warn": False})
        await room.deliver("night", "late", project="shut")

    with world(tmp_path_factory.mktemp("actions") / "site", all_of_it) as opened_world:
        yield opened_world


def a_page(site: World, open_page: OpenPage, **options: Any) -> Any:
    new_page = open_page(base_url=site.url, **options)
    new_page.context.add_cookies(site.cookies())
    return new_page


@pytest.fixture
def page(site: World, open_page: OpenPage) -> Any:
    return a_page(site, open_page)


def listed(page: Any) -> list[str]:
    return [name.strip() for name in page.locator("#rows .name").all_inner_texts()]


def annotations(site: World, name: str) -> dict[str, str]:
    return dict(site.do(lambda room: room.app(name))["metadata"].get("annotations") or {})


# -- the list ------------------------------------------------------------------------------------------------------


def test_list_is_paged_sorted_and_filtered_by_clicks(page: Any) -> None:
    page.goto("/apps")
    assert page.title().startswith("✖ ")  # one of them is in a bad state
    assert len(listed(page)) == 50
    page.get_by_role("link", name="Next").click()
    page.wait_for_url("**page=2**")
    assert listed(page)[-1] == "web" and len(listed(page)) == MANY + 8 - 50
    page.get_by_role("link", name="Previous").click()
    page.wait_for_url("**page=1**")
    page.goto("/apps?q=many-0")
    assert not page.title().startswith("✖ ")
    page.get_by_role("link", name="Name").click()
    page.wait_for_url("**sort=**")
    assert listed(page)[0] == "many-09"
    page.get_by_role("link", name="Tiles").click()
    page.wait_for_url("**view=tiles**")
    assert page.locator(".tile").count() == 10
    page.goto("/apps")
    page.get_by_role("link", name="Held").click()
    page.wait_for_url("**held=**")
    assert listed(page) == ["docs"]
    page.goto("/apps")
    page.locator("#facet-sync summary").click()
    page.locator("#facet-sync").get_by_role("link", name="OutOfSync").click()
    page.wait_for_url("**sync=OutOfSync**")
    assert "fraud" in listed(page) and "web" not in listed(page)


def test_bulk_refresh_covers_page_and_sync_skips_closed_windows(page: Any, site: World) -> None:
    page.goto("/apps?q=many-0")
    page.locator("thead input[type=checkbox]").check()
    page.locator("#bulk").get_by_role("button", name="REFRESH").click()
    page.wait_for_url("**/apps/plan?**")
    page.get_by_role("button", name="REFRESH 10").click()
    page.wait_for_url("**/apps?said=refreshed-many**")
    assert annotations(site, "many-03")[names.REFRESH] == "normal"
    page.expected = ["409"]
    page.goto("/apps/plan?do=sync&app=argocd/night&app=argocd/bulk-one")
    assert "skipped" in page.inner_text("main") and "blocked by sync window" in page.inner_text("main")
    page.get_by_label("Dry run").check()
    page.locator("input[name=app]").first.evaluate("box => box.value = 'argocd/night'")  # its window closed just now
    page.get_by_role("button", name="SYNC 1").click()
    expect(page.locator("main")).to_contain_text("0 of 1 were started")
    assert "blocked by sync window" in page.inner_text("main")


# -- one Application -----------------------------------------------------------------------------------------------


def test_closed_sync_window_is_shown_and_blocks_a_manual_sync(page: Any, site: World) -> None:
    page.expected = ["403"]
    page.goto("/apps/argocd/night")
    assert "Manual syncs are blocked, too" in page.inner_text("#app-banners")
    page.goto("/apps/argocd/night/sync")
    page.get_by_role("button", name="SYNCHRONIZE").click()
    expect(page.locator("main")).to_contain_text("blocked by sync window")
    assert "operation" not in site.do(lambda room: room.app("night"))


def test_application_is_held_with_a_reason_hard_refreshed_and_released(page: Any, site: World) -> None:
    page.goto("/apps/argocd/many-01/settings")
    page.fill("input[name=reason]", "a night off")
    page.get_by_role("button", name="Hold").last.click()
    page.wait_for_url("**said=held")
    expect(page.locator("#app-banners")).to_contain_text("a night off")
    assert page.inner_text("body").count("a night off") == 1
    assert "a night off" in annotations(site, "many-01")["argosy.dev/hold"]
    page.keyboard.press(".")
    page.get_by_role("button", name="Hard refresh").click()
    page.wait_for_url("**said=refreshed-hard")
    assert annotations(site, "many-01")[names.REFRESH] == "hard"
    page.get_by_role("button", name="Release").first.click()
    page.wait_for_url("**said=released")
    assert "argosy.dev/hold" not in annotations(site, "many-01")


def test_running_sync_is_terminated(page: Any, site: World) -> None:
    page.goto("/apps/argocd/ranker/operation")
    page.keyboard.press(".")
    page.get_by_role("button", name="Terminate operation").click()
    page.wait_for_url("**said=terminated")
    site.do(lambda room: room.until_over("ranker"))
    page.wait_for_selector("#operation:has-text('terminated')")


def test_sync_rejects_an_unknown_revision_and_prunes_on_request(page: Any, site: World) -> None:
    page.goto("/apps/argocd/fraud/diff?with=main")
    assert "not with the target revision" not in page.inner_text("main")
    page.get_by_role("link", name="Changes in the cluster").click()
    page.wait_for_url("**show=cluster**")
    page.goto("/apps/argocd/fraud/sync")
    page.fill("input[name=revision]", "nosuchbranch")
    page.expected = ["400"]
    page.get_by_role("button", name="SYNCHRONIZE").click()
    expect(page.locator("main")).to_contain_text("nosuchbranch")
    page.goto("/apps/argocd/fraud/sync")
    page.get_by_role("checkbox", name="PRUNE").first.check()
    page.get_by_role("button", name="SYNCHRONIZE").click()
    page.wait_for_url("**said=synced")
    site.do(lambda room: room.until_gone("ConfigMap", "fraud-extra"))


def test_trees_and_resources_are_searched(page: Any) -> None:
    page.goto("/apps/argocd/web/tree?q=settings")
    assert page.locator("#tree .name").all_inner_texts() == ["settings"]
    assert "Synced" in page.inner_text("#tree")
    page.goto("/apps/argocd/web/resources?q=service")
    assert "Service" in page.inner_text("main") and "ConfigMap" not in page.locator("main tbody").inner_text()
    page.goto("/apps/argocd/web/r/apps/Deployment/ml/web?tab=desired")
    assert "replicas: 2" in page.inner_text("main")
    page.goto("/apps/argocd/web/parameters")
    assert page.locator("main").inner_text().strip()


def test_tree_is_filtered_by_kind_and_resources_are_sorted(page: Any) -> None:
    page.goto("/apps/argocd/web/tree")
    page.select_option("#pick-kind", "Service")
    page.wait_for_url("**kind=Service**")
    assert page.locator("#tree .name").count() == 1
    page.goto("/apps/argocd/web/resources")
    page.get_by_role("link", name="Name", exact=True).click()
    page.wait_for_url("**sort=**")
    rows = page.locator("table.resources tbody tr")
    assert rows.count() >= 3 and rows.first.inner_text() != rows.last.inner_text()


def test_orphaned_resources_are_shown_on_request(page: Any, site: World) -> None:
    stray = {**config_map("stray", a="b"), "metadata": {"name": "stray", "namespace": "ml"}}
    site.do(lambda room: room.cluster.create(stray))
    page.goto("/apps/argocd/night/tree")
    assert page.get_by_text("stray").count() == 0
    page.get_by_role("link", name="Orphans").click()
    page.wait_for_url("**orphans=1")
    expect(page.locator("#tree [role=treeitem]", has_text="stray")).to_contain_text("orphan")


def test_confirm_deletion_button_allows_a_prune_that_needs_confirmation(page: Any, site: World) -> None:
    asks = config_map("asks-first", a="b")
    asks["metadata"]["annotations"] = {"argocd.argoproj.io/sync-options": "Prune=confirm"}
    site.room.repository.push({"asks/first.yaml": asks, "asks/other.yaml": config_map("asks-other", a="b")})
    site.do(lambda room: room.deliver("asks", "asks"))
    site.do(lambda room: room.sync("asks"))
    site.do(lambda room: room.until_over("asks"))
    site.room.repository.push({"asks/first.yaml": None})
    site.do(lambda room: room.until(lambda status: status["sync"]["status"] == "OutOfSync", "asks"))
    site.do(lambda room: room.sync("asks", prune=True))
    site.do(lambda room: room.until(lambda status: "confirm" in status["operationState"]["message"], "asks"))
    page.goto("/apps/argocd/asks")
    page.get_by_role("button", name="Confirm deletion").click()
    site.do(lambda room: room.until_gone("ConfigMap", "asks-first"))
    assert site.do(lambda room: room.get("ConfigMap", "asks-other")) is not None


def test_sync_form_sets_force_apply_only_replace_and_retry(page: Any, site: World) -> None:
    page.goto("/apps/argocd/bulk-one/sync")
    for name in ("APPLY ONLY", "FORCE", "REPLACE"):
        page.get_by_role("checkbox", name=name).check()
    page.get_by_label("To replace, type the word").fill("replace")
    page.get_by_text("Retry", exact=True).click()
    page.get_by_label("Retry if it fails").check()
    page.get_by_label("Retries").fill("2")
    page.get_by_role("button", name="SYNCHRONIZE").click()
    page.wait_for_url("**said=synced")
    site.do(lambda room: room.until_over("bulk-one"))
    operation = site.do(lambda room: room.app("bulk-one"))["status"]["operationState"]["operation"]
    assert operation["sync"]["syncStrategy"]["apply"]["force"] and "hook" not in operation["sync"]["syncStrategy"]
    assert operation["retry"]["limit"] == 2 and "Replace=true" in operation["sync"]["syncOptions"]


def test_doctor_page_runs_a_deep_examination(page: Any) -> None:
    page.goto("/doctor")
    page.get_by_role("link", name="Deep examination").click()
    page.wait_for_url("**deep=true")
    assert page.get_by_role("link", name="Quick examination").count() == 1


def test_application_is_deleted_with_background_propagation(page: Any, site: World) -> None:
    page.goto("/apps/argocd/bulk-two/delete")
    page.fill("#f-sure", "bulk-two")
    page.get_by_label("background").check()
    page.get_by_role("button", name="DELETE").click()
    page.wait_for_url("**/apps?said=deleted")
    site.do(lambda room: room.until_gone("argoproj.io/Application", "bulk-two", CONTROL))


def test_log_url_sets_since_and_wrap_and_keys_g_d_open_the_doctor(page: Any) -> None:
    page.goto("/apps/argocd/web/logs?since=900&wrap=no")
    assert page.locator("#since").input_value() == "900" and page.locator("#log.wraps").count() == 0
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url("**/doctor")


# -- several windows ---------------------------------------------------------------------------------------------------


def test_every_kind_of_page_updates_live_in_several_windows(site: World, open_page: OpenPage) -> None:
    """All windows show one change: a commit that web syncs automatically."""
    expectations = {
        "/apps/argocd/web/tree": ("#tree", "fresh"),
        "/apps/argocd/web/history": ("#history", "Bring something fresh"),
        "/apps/argocd/web/events": ("#moments", "deployment 1"),
        "/activity": ("#happenings", "deployment 1"),
        "/apps?view=tiles&q=web": ("#a-argocd-web", "Degraded"),
        "/apps?view=summary&q=web": ("#apps-summary", "Degraded"),
    }
    twice = ("/apps/argocd/web/tree", "/activity")
    windows = [(a_page(site, open_page), path) for path in (*expectations, *twice)]
    for window, path in windows:
        window.goto(path, wait_until="commit")
    for window, _ in windows:
        window.wait_for_selector("#pulse[data-state=live]")
    site.room.repository.push({"web/fresh.yaml": config_map("fresh", a="b")}, "Bring something fresh")
    site.do(lambda room: room.patch_app({"metadata": {"annotations": {names.REFRESH: "normal"}}}, "web"))
    site.do(lambda room: room.until(lambda status: len(status["history"]) == 2, "web"))
    site.do(_ill)
    for window, path in windows:
        selector, word = expectations[path]
        expect(window.locator(selector)).to_contain_text(word)


async def _ill(room: Room) -> None:
    condition = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow"}
    key = ResourceKey("apps", "Deployment", "ml", "web")
    await room.cluster.patch(key, {"status": {"conditions": [condition]}}, subresource="status")
    await event(room, "Deployment", "web", "Warning", "Slow", "too slow")
