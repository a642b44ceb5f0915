"""Pages of one Application in a real browser: content, actions and live updates."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from argosy.gitops.coexistence.argocd_detection import REMOVAL_GRACE_SECONDS
from support.deadlines import HANG_SECONDS
from support.engine import Room, config_map
from support.full_site import World, world
from support.sample_applications import CONTROL, SECRET_WORD, event, furnish, well
from support.simulated_argocd import controller, scale

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
OpenPage = Callable[..., Any]
WEB = "/apps/argocd/web"
OBJECT = f"{WEB}/r/apps/Deployment/ml/web"
OBJECT_TABS = ("summary", "live", "desired", "last-applied", "diff", "events", "logs", "health", "fields")


class Printing:
    """Fake container log: two lines, then the lines that a test adds."""

    def __init__(self) -> None:
        self.more: asyncio.Queue[str] = asyncio.Queue()

    async def lines(self, pod: Any, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]:
        if tail != 0:
            for line in ("started on port 8080", "<b>GET</b> /healthz 200")[-(tail or 2) :]:
                yield line
        while follow:
            yield await self.more.get()


PRINTING = Printing()


def shows(page: Any, path: str, place: str, word: str, *, is_there: bool = True) -> None:
    """Reload the page until the word appears (or disappears): its data arrives with a delay."""
    ends = time.monotonic() + HANG_SECONDS
    while (word in (text := _text(page, path, place))) is not is_there:
        assert time.monotonic() < ends, f"{path}: {word!r} {'never came' if is_there else 'stayed'}: {text}"
        page.wait_for_timeout(100)


def _text(page: Any, path: str, place: str) -> str:
    page.goto(path)
    return str(page.inner_text(place))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    async def all_of_it(room: Room) -> None:
        room.cluster.plane.subresources.pod_logs = PRINTING  # type: ignore[attr-defined]
        await deliver_claims(room)
        await furnish(room)
        for name in ("web-1", "web-old"):
            await a_pod(room, name)

    with world(tmp_path_factory.mktemp("app") / "site", all_of_it) as opened_world:
        yield opened_world


async def deliver_claims(room: Room) -> None:
    """Create an OutOfSync Application for the sync test, and one for the deletion test."""
    settings, extra = config_map("claims", threshold="0.8"), config_map("claims-extra", colour="blue")
    room.repository.push({"claims/settings.yaml": settings, "claims/extra.yaml": extra}, "Begin with claims")
    room.repository.push({"spare/settings.yaml": config_map("spare", a="b")})
    await room.deliver("spare", "spare")
    await room.deliver("claims", "claims")
    await room.sync("claims")
    await room.until_over("claims")
    raised = config_map("claims", threshold="0.9")
    room.repository.push({"claims/settings.yaml": raised, "claims/extra.yaml": None}, "Raise the threshold of claims")
    await room.settled("claims")


async def a_pod(room: Room, name: str) -> None:
    owner = await room.get("apps/Deployment", "web")
    assert owner is not None
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner["metadata"]["uid"]}
    metadata = {"name": name, "namespace": "ml", "ownerReferences": [reference]}
    spec = {"containers": [{"name": "main", "image": "registry.example.com/web:1.0"}]}
    await room.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


@pytest.fixture
def page(site: World, open_page: OpenPage) -> Any:
    return a_page(site, open_page)


def a_page(site: World, open_page: OpenPage, who: str = "ann", **options: Any) -> Any:
    new_page = open_page(base_url=site.url, **options)
    new_page.context.add_cookies(site.cookies(who))
    return new_page


# -- content -------------------------------------------------------------------------------------------------------


def test_header_shows_sync_status_commit_subject_and_reason(page: Any) -> None:
    page.goto("/apps/argocd/fraud")
    head = page.inner_text("#app-head")
    assert "OutOfSync" in head
    assert "2 of 2 objects differ" in head or "1 to prune" in head  # depends on whether a full diff was computed
    page.wait_for_selector("#app-head:has-text('Raise the threshold of fraud')")  # arrives later if the lookup is slow
    assert page.title().startswith("▲ fraud")


@pytest.mark.tier("all")
def test_tree_nests_pods_below_their_deployment_and_links_both_ways(page: Any) -> None:
    page.goto(WEB)
    pod = page.locator("#r--Pod-ml-web-1")
    assert pod.is_visible()
    above = pod.locator("xpath=ancestor::li[2]")
    assert above.locator(":scope > .node").inner_text().startswith("Deployment")
    pod.get_by_role("link").click()
    page.wait_for_url(f"**{WEB}/r/-/Pod/ml/web-1")
    page.get_by_role("link", name="Deployment/web").click()
    page.wait_for_url(f"**{OBJECT}")


@pytest.mark.tier("all")
def test_tree_filter_shows_problems_only(page: Any) -> None:
    page.goto("/apps/argocd/ranker/tree?show=problems")
    names = page.locator("#tree .name").all_inner_texts()
    assert "ranker" in names
    page.goto("/apps/argocd/docs/tree?show=problems")
    assert "No problems" in page.inner_text("main")


def test_diff_shows_cause_and_source_line_of_changes_and_pruned_objects(page: Any) -> None:
    page.goto("/apps/argocd/fraud/diff")
    text = page.inner_text("main")
    assert "will be deleted" in page.inner_text(".prune-block")
    assert "data.threshold" in text
    assert "changed in Git" in text
    assert "fraud/settings.yaml:3" in text
    page.get_by_role("link", name="Side by side").click()
    page.wait_for_url("**format=yaml**")
    assert page.locator(".sides .changed").count() == 1
    _grow(page, ".sides .now code")
    left, right = (page.locator(f".sides .changed .{side}").bounding_box()["width"] for side in ("was", "now"))
    assert abs(left - right) < 2
    page.goto("/apps?q=fraud")  # the list shows the result of the full diff, too
    assert "1 field differs: 1 Git change, 1 to prune" in page.inner_text("main")


def _grow(page: Any, place: str) -> None:
    """Fill cells with text as long as an image with its digest, which cannot be wrapped."""
    page.eval_on_selector_all(place, "found => found.forEach(it => it.textContent = 'a1b2c3d4'.repeat(30))")


@pytest.mark.tier("all")
def test_diff_with_another_revision_shows_it_and_fits_a_phone(page: Any, site: World) -> None:
    page.goto("/apps/argocd/fraud/diff")
    page.fill("#with", "main~1")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**with=main**")
    assert "The comparison failed" in page.inner_text("main")  # main~1 is neither a branch nor a tag
    first = site.do(_first)
    page.goto(f"/apps/argocd/fraud/diff?with={first}")
    text = page.inner_text(".diff")
    assert "0.8" in text and "changed in Git" not in text  # compared on request: not a pending change in Git
    assert page.locator(".diff thead th").all_inner_texts() == ["Field", "live", first[:7], "Why"]
    _grow(page, ".diff .now code")
    for width in (1280, 390):  # the reason column is never cut off
        page.set_viewport_size({"width": width, "height": 900})
        why = page.locator(".diff .why").first.bounding_box()
        assert why["width"] > 200 and why["x"] + why["width"] <= width
        assert page.evaluate("document.documentElement.scrollWidth") <= width


async def _first(room: Room) -> str:
    history = (await room.app("fraud"))["status"]["history"]
    return str(history[0]["revision"])


@pytest.mark.tier("all")
def test_diff_names_the_file_of_a_render_error(page: Any) -> None:
    page.goto("/apps/argocd/broken/diff")
    assert "missing.yaml" in page.inner_text("main")


@pytest.mark.tier("all")
def test_operation_page_shows_the_blocking_object_and_updates_live(site: World, open_page: OpenPage) -> None:
    one, other = a_page(site, open_page), a_page(site, open_page)
    for window in (one, other):
        window.goto("/apps/argocd/ranker/operation")
        window.wait_for_selector("#pulse[data-state=live]")
        assert "Waiting for" in window.inner_text("#blocker")
        assert "Deployment/ranker" in window.inner_text("#blocker")
        assert "no node has room for ranker" in window.inner_text("#blocker")
    site.do(lambda room: well(room, "ranker"))
    for window in (one, other):
        window.wait_for_selector("#operation:has-text('successfully synced')")
        window.wait_for_selector("#app-head:has-text('Healthy')")
        assert window.locator("#blocker").count() == 0


@pytest.mark.tier("all")
def test_events_page_merges_object_events_and_syncs(page: Any, site: World) -> None:
    page.goto(f"{WEB}/events")
    assert "OperationCompleted" in page.inner_text("#moments")
    assert "Deployed" in page.inner_text("#moments")
    site.do(lambda room: event(room, "Deployment", "web", "Warning", "Unsettled", "it shakes"))
    page.goto(f"{WEB}/events?show=warnings")
    assert "it shakes" in page.inner_text("#moments")


@pytest.mark.tier("all")
def test_logs_are_filtered_and_escaped(page: Any) -> None:
    page.goto(f"{WEB}/logs?q=healthz&pod=web-1")
    assert page.locator("#log li").count() == 1
    assert "<b>GET</b> /healthz 200" in page.inner_text("#log")
    assert page.locator("#log .pod").count() == 0  # there is one container only


@pytest.mark.tier("all")
def test_log_of_one_container_is_selected_and_downloaded(page: Any) -> None:
    page.goto(f"{WEB}/logs")
    page.select_option("#pod", "web-1")
    page.wait_for_url("**pod=web-1**")
    page.select_option("#container", "main")
    page.wait_for_url("**container=main**")
    with page.expect_download() as coming:
        page.get_by_role("link", name="Download").click()
    assert "started on port 8080" in coming.value.path().read_text()


def test_logs_are_followed_line_by_line(page: Any, site: World) -> None:
    page.goto(f"{WEB}/logs?follow=1")
    page.wait_for_selector("#pulse[data-state=live]")  # the header updates live, too
    site.do(lambda room: PRINTING.more.put("GET /predict 200"))
    page.wait_for_selector("#log:has-text('GET /predict 200')")


def test_manifests_redact_secret_values(page: Any) -> None:
    for path in (f"{WEB}/manifest", f"{WEB}/manifest?side=live", f"{WEB}/r/-/Secret/ml/web?tab=live"):
        page.goto(path)
        text = page.content()
        assert "password" in text
        assert SECRET_WORD not in text
        assert "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5" not in text


@pytest.mark.tier("all")
def test_object_page_shows_field_managers_and_the_health_rule(page: Any) -> None:
    page.goto(f"{OBJECT}?tab=fields")
    line = page.locator("tr", has_text=".spec.replicas").first
    assert "argocd-controller" in line.inner_text() or "argosy" in line.inner_text()
    page.goto(f"{OBJECT}?tab=health")
    assert "built-in apps/Deployment" in page.inner_text("main")
    assert "Healthy" in page.inner_text("main")


@pytest.mark.tier("all")
def test_object_outside_the_application_gives_404(page: Any) -> None:
    page.expected = ["404"]
    answer = page.goto(f"{WEB}/r/-/ConfigMap/argocd/argocd-cm")
    assert answer.status == 404
    absent = page.goto(f"{WEB}/r/-/ConfigMap/ml/nosuch")
    assert absent.status == 404


# -- actions -------------------------------------------------------------------------------------------------------


def test_sync_panel_syncs_selected_resources(page: Any, site: World) -> None:
    page.goto("/apps/argocd/claims/sync")
    assert "Prune" in page.inner_text(".plan")
    page.locator("input[name=resource][value=':ConfigMap:ml/claims-extra']").uncheck()
    assert page.locator("[data-all]").evaluate("box => box.indeterminate")
    page.get_by_role("button", name="SYNCHRONIZE").click()
    page.wait_for_url("**/apps/argocd/claims/operation?said=synced")
    site.do(lambda room: room.until_over("claims"))
    page.wait_for_selector("#operation:has-text('successfully synced')")
    stored_config_map = site.do(lambda room: room.get("ConfigMap", "claims"))
    assert stored_config_map["data"]["threshold"] == "0.9"


@pytest.mark.tier("all")
def test_a_dry_run_changes_nothing(page: Any, site: World) -> None:
    page.goto("/apps/argocd/fraud/sync")
    page.get_by_role("button", name="DRY RUN").click()
    page.wait_for_url("**/operation?said=dry-run")
    site.do(lambda room: room.until_over("fraud"))
    page.wait_for_selector("#operation:has-text('dry run')")
    assert site.do(lambda room: room.get("ConfigMap", "fraud-extra")) is not None


@pytest.mark.tier("all")
def test_replace_requires_the_confirmation_word(page: Any) -> None:
    page.expected = ["400"]
    page.goto("/apps/argocd/fraud/sync")
    page.get_by_role("checkbox", name="REPLACE").check()
    page.get_by_role("button", name="SYNCHRONIZE").click()
    expect(page.locator("main")).to_contain_text("type the word replace")


@pytest.mark.tier("all")
def test_rollback_shows_its_plan_restores_the_deployment_and_is_reported(page: Any, site: World) -> None:
    site.room.repository.push({"docs/settings.yaml": config_map("docs", theme="dark")}, "Go dark")
    page.goto("/apps/argocd/docs")
    page.get_by_role("button", name="Release").first.click()
    page.wait_for_url("**said=released")
    page.get_by_role("button", name="REFRESH").click()
    page.wait_for_url("**said=refreshed")
    site.do(lambda room: room.until(lambda status: len(status["history"]) == 2, "docs"))
    shows(page, "/apps/argocd/docs/history", "#history", "Go dark")
    _two_clicks_from_the_list_to_the_button(page)
    page.goto("/apps/argocd/docs/history")
    page.get_by_role("link", name="ROLLBACK").last.click()
    page.wait_for_url("**/rollback?id=0")
    assert "dark" in page.inner_text(".plan")
    page.fill("#f-reason", "too dark")
    page.get_by_role("button", name="ROLLBACK").click()
    page.wait_for_url("**said=rollback")
    page.wait_for_selector("#app-banners:has-text('too dark')")
    site.do(lambda room: room.until_over("docs"))
    stored_config_map = site.do(lambda room: room.get("ConfigMap", "docs"))
    assert stored_config_map["data"]["theme"] == "light"
    _told_of_the_rollback(page)


def _two_clicks_from_the_list_to_the_button(page: Any) -> None:
    """Reach the button in two clicks, so that a rollback takes three."""
    page.goto("/apps")
    row = page.locator("#a-argocd-docs")
    row.locator("summary").click()
    row.get_by_role("link", name="ROLLBACK").click()
    page.wait_for_url("**/apps/argocd/docs/rollback")
    expect(page.get_by_role("button", name="ROLLBACK")).to_be_visible()


def _told_of_the_rollback(page: Any) -> None:
    """Every page that would otherwise suggest a sync reports the rollback."""
    page.goto("/apps/argocd/docs/history")
    page.wait_for_selector("#app-banners:has-text('Rolled back to deployment 0 by ann: main still has')")
    assert page.locator("#history tbody tr").first.get_by_text("rolled back to 0").is_visible()
    page.goto("/apps/argocd/docs/operation")
    assert "a rollback" in page.inner_text("#operation h2")
    page.goto("/apps/argocd/docs/sync")
    assert "A sync ends the rollback" in page.inner_text("main")
    page.goto("/activity?app=docs")
    assert "Rolled back" in page.inner_text("main")


@pytest.mark.tier("all")
def test_sync_policy_is_saved(page: Any, site: World) -> None:
    page.goto("/apps/argocd/ranker/settings")
    page.get_by_role("checkbox", name="Automatic sync").check()
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**said=saved")
    app = site.do(lambda room: room.app("ranker"))
    assert app["spec"]["syncPolicy"]["automated"] == {"prune": False, "selfHeal": False}


def test_restart_action_of_a_deployment_runs(page: Any, site: World) -> None:
    page.goto(OBJECT)
    page.get_by_role("button", name="restart").click()
    page.wait_for_url("**said=acted")
    deployment = site.do(lambda room: room.get("apps/Deployment", "web"))
    assert "kubectl.kubernetes.io/restartedAt" in deployment["spec"]["template"]["metadata"]["annotations"]
    site.do(lambda room: well(room, "web", 2))


@pytest.mark.tier("all")
def test_object_deletion_requires_typing_its_name(page: Any, site: World) -> None:
    page.expected = ["400"]
    page.goto(f"{WEB}/r/-/Pod/ml/web-old/delete")
    page.fill("#f-sure", "web-2")
    page.get_by_role("button", name="DELETE").click()
    expect(page.locator("main")).to_contain_text("Nothing was deleted")
    page.fill("#f-sure", "web-old")
    page.get_by_label("Delete immediately").check()
    page.get_by_role("button", name="DELETE").click()
    page.wait_for_url("**said=deleted")
    site.do(lambda room: room.until_gone("Pod", "web-old"))


def test_application_is_deleted_after_typing_its_name(page: Any, site: World) -> None:
    page.goto("/apps/argocd/spare")
    page.locator("summary[aria-label='More actions']").click()
    page.get_by_role("link", name="Delete…").click()
    page.fill("#f-sure", "spare")
    page.get_by_label("Keep them").check()
    page.get_by_role("button", name="DELETE").click()
    page.wait_for_url("**/apps?said=deleted")
    site.do(lambda room: room.until_gone("argoproj.io/Application", "spare", CONTROL))


@pytest.mark.tier("all")
def test_read_only_user_gets_no_save_button_and_404_for_delete_pages(site: World, open_page: OpenPage) -> None:
    page = a_page(site, open_page, "rita")
    page.expected = ["404"]
    page.goto(f"{WEB}/settings")
    assert page.get_by_role("button", name="Save").count() == 0
    assert page.goto(f"{WEB}/delete").status == 404
    assert page.goto(f"{WEB}/r/apps/Deployment/ml/web/delete").status == 404


# -- accessibility and navigation ----------------------------------------------------------------------------------


@pytest.mark.tier("all")
def test_pages_work_without_javascript(site: World, open_page: OpenPage) -> None:
    page = a_page(site, open_page, java_script_enabled=False)
    for tab in OBJECT_TABS:
        assert page.goto(f"{OBJECT}?tab={tab}").ok, tab
    for path in (f"{WEB}/rollback?id=0", f"{OBJECT}/delete", "/apps/plan?do=refresh&app=argocd/web"):
        assert page.goto(path).ok and page.locator("main form button").count(), path
    page.goto(f"{WEB}/tree")
    assert "Deployment" in page.inner_text("#tree")
    page.goto("/apps/argocd/fraud/sync")
    page.get_by_role("button", name="DRY RUN").click()
    page.wait_for_url("**said=dry-run")


@pytest.mark.tier("all")
def test_pages_outside_the_demo_are_accessible_in_the_light_theme(site: World, open_page: OpenPage, axe: Any) -> None:
    page = a_page(site, open_page, color_scheme="light")
    tabs = [f"{OBJECT}?tab={tab}" for tab in ("desired", "last-applied", "logs")]
    for path in [f"{WEB}/logs", f"{WEB}/rollback?id=0", "/apps/argocd/fraud/diff", *tabs]:
        page.goto(path)
        axe(page, path)


@pytest.mark.tier("all")
def test_diff_logs_and_rollback_are_accessible_in_the_dark_theme(site: World, open_page: OpenPage, axe: Any) -> None:
    page = a_page(site, open_page, color_scheme="dark")
    diff, yaml = "/apps/argocd/fraud/diff", "/apps/argocd/fraud/diff?format=yaml"
    for path in (diff, yaml, f"{WEB}/logs", f"{WEB}/rollback?id=0"):
        page.goto(path)
        axe(page, path)


@pytest.mark.tier("all")
def test_wide_pages_fit_a_phone(site: World, open_page: OpenPage) -> None:
    page = a_page(site, open_page, viewport={"width": 320, "height": 700})
    for path in (f"{WEB}/logs", "/apps/argocd/fraud/diff", f"{OBJECT}?tab=fields", f"{OBJECT}?tab=health"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, path


@pytest.mark.tier("all")
def test_keyboard_shortcuts_open_the_tabs_of_an_application(page: Any) -> None:
    page.goto(WEB)
    for key, path in (
        ("d", "diff"),
        ("w", "operation"),
        ("h", "history"),
        ("e", "events"),
        ("t", "tree"),
        ("s", "sync"),
    ):
        page.keyboard.press(key)
        page.wait_for_url(f"**{WEB}/{path}")


def test_signed_out_user_sees_a_notice_with_a_sign_in_link(page: Any, site: World) -> None:
    page.expected += ["404", "Failed to load resource", "MIME type", "EventSource"]
    page.goto(WEB)
    page.wait_for_selector("#pulse[data-state=live]")
    site.people.gone.add("ann")
    try:
        expect(page.locator("#signed-out")).to_contain_text("You are signed out.")
        page.get_by_role("link", name="Sign in").click()
        page.wait_for_url("**/login?next=**web**")
    finally:
        site.people.gone.discard("ann")


def test_argocd_urls_redirect_to_the_matching_page(page: Any) -> None:
    page.goto("/applications/argocd/web")
    assert page.url.endswith(WEB)
    page.goto("/")
    assert page.url.endswith("/apps")


@pytest.mark.tier("all")
def test_header_says_that_argosy_observes_while_argocd_runs(page: Any, site: World) -> None:
    site.do(_argocd_comes)
    shows(page, WEB, "#app-head", "argosy observes")
    site.do(_argocd_goes)
    shows(page, WEB, "#app-head", "argosy observes", is_there=False)


async def _argocd_comes(room: Room) -> None:
    await room.cluster.create(controller())


async def _argocd_goes(room: Room) -> None:
    await scale(room.cluster, 0)
    async with asyncio.timeout(HANG_SECONDS):
        while not room.engine.argocd_detection.is_removal_pending:
            await asyncio.sleep(0.01)
    room.clock.leap(REMOVAL_GRACE_SECONDS)  # the engine waits this long before it considers Argo CD removed
