"""Pages of models, notebooks, environments and activity in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from argosy.kube.resource_key import ResourceKey
from support import model_manifests
from support.model_site import MachinesWorld, machines_world

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.tier("all")  # except for tests that are marked otherwise below
PAGES = (
    "/models", "/models/ml/fraud", "/notebooks", "/notebooks/ml/train", "/notebooks/ml/train/runs/1", "/environments",
    "/environments/staging/promote", "/activity", "/activity?kind=sync&q=web", "/doctor",
)  # fmt: skip
BEHIND_BARS = ("sandbox", "Content Security Policy", "Content-Security-Policy", "Refused to", "Blocked script")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachinesWorld]:
    with machines_world(tmp_path_factory.mktemp("machines")) as opened_world:
        yield opened_world


@pytest.fixture
def visit(site: MachinesWorld, open_page: Callable[..., Any]) -> Callable[..., Any]:
    def go(path: str, who: str = "ann", **options: Any) -> Any:
        page = open_page(**options)
        page.context.add_cookies(site.cookies(who))
        page.goto(site.url + path)
        return page

    return go


# -- models --


def test_models_list_shows_training_run_and_serving_state(visit: Callable[..., Any]) -> None:
    row = visit("/models").locator("#m-ml-fraud")
    text = row.inner_text()
    assert all(word in text for word in ("fraud", "Healthy", "sklearn", "pvc://models/fraud", "1/1", "train #2"))
    row.get_by_role("link", name="train #2").click()
    row.page.wait_for_url("**/notebooks/ml/train/runs/2")


@pytest.mark.tier("test")
def test_model_page_sends_input_and_shows_the_answer_with_latency(visit: Callable[..., Any]) -> None:
    page = visit("/models/ml/fraud")
    page.get_by_label("Input").fill("[[3, 4]]")
    page.get_by_role("button", name="Send").click()
    answer = page.locator("#answer").inner_text()
    assert "[7]" in answer and " ms" in answer
    page.get_by_text("Equivalent commands").click()
    expect(page.locator("main")).to_contain_text("curl -sS http://127.0.0.1", use_inner_text=True)


def test_invalid_model_input_shows_an_error_and_keeps_the_input(visit: Callable[..., Any]) -> None:
    page = visit("/models/ml/fraud")
    page.get_by_label("Input").fill('{"nothing": 1}')
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#answer")).to_contain_text("none of messages, prompt, instances or inputs")
    assert page.get_by_label("Input").input_value() == '{"nothing": 1}'


def test_probe_shows_the_status_of_a_health_path(visit: Callable[..., Any]) -> None:
    page = visit("/models/ml/fraud")
    page.get_by_role("button", name="Probe").click()
    expect(page.locator("#probes")).to_contain_text("/v1/models/fraud 200")


def test_restart_button_starts_a_rollout(visit: Callable[..., Any], site: MachinesWorld) -> None:
    page = visit("/models/ml/fraud")
    page.get_by_role("button", name="Restart").click()
    expect(page.locator("#said")).to_contain_text("Restart started")
    live = site.run(site.cluster.get(ResourceKey("apps", "Deployment", "ml", "fraud-predictor")))
    assert "kubectl.kubernetes.io/restartedAt" in live["spec"]["template"]["metadata"]["annotations"]


def test_read_only_user_sees_a_command_instead_of_buttons(visit: Callable[..., Any]) -> None:
    page = visit("/models/ml/fraud", "rita")
    assert page.get_by_role("button", name="Send").count() == page.get_by_role("button", name="Restart").count() == 0
    assert "argosy model try fraud" in page.locator("main").inner_text()


def test_models_are_hidden_from_users_without_permission(visit: Callable[..., Any]) -> None:
    page = visit("/models", "bob")
    assert "No models" in page.locator("main").inner_text()
    page.expected.append("404")
    page.goto(page.url + "/ml/fraud")
    assert "Not found" in page.title()


def test_failing_model_updates_two_windows_live(visit: Callable[..., Any], site: MachinesWorld) -> None:
    one, other = visit("/models/ml/fraud"), visit("/models")
    for page in (one, other):
        page.locator('#pulse[data-state="live"]').wait_for()
    conditions = [
        {"type": "Ready", "status": "False"},
        {"type": "IngressReady", "status": "False", "message": "no host"},
    ]
    site.run(site.put(site.service(conditions=conditions)))
    one.locator("#readiness").get_by_text("no host").wait_for()
    other.locator("#m-ml-fraud").get_by_text("Degraded").wait_for()
    assert one.title().startswith("✖")
    site.run(site.put(site.service()))
    other.locator("#m-ml-fraud").get_by_text("Healthy").wait_for()


# -- notebooks --


@pytest.mark.tier("test")
def test_cells_show_sources_outputs_and_sandboxed_html(visit: Callable[..., Any]) -> None:
    page = visit("/notebooks/ml/train")
    text = page.locator("#nbcells").inner_text()
    assert "print(7)" in text and "seven" in text
    picture = page.get_by_role("img", name="<Figure>")
    assert picture.evaluate("each => each.naturalWidth") == 1
    cage = page.locator("iframe")
    assert cage.get_attribute("sandbox") == ""
    assert page.frame_locator("iframe").locator("#t").inner_text() == "8"
    side = page.locator(".side").inner_text()
    assert "model.pkl" in side and "InferenceService/fraud" in side and "alpha" in side


def test_golden_notebook_diff_is_shown_side_by_side(visit: Callable[..., Any], site: MachinesWorld) -> None:
    diffs = [{"cellIndex": 1, "diffType": "output_mismatch", "severity": "major", "expected": "seven", "actual": "8"}]
    counts = {"totalCells": 2, "matchedCells": 1, "mismatchedCells": 1}
    compared = {"strategy": "normalized", "result": "failed", **counts, "diffs": diffs}
    site.run(site.put(model_manifests.job(comparisonResult=compared)))
    page = visit("/notebooks")
    page.locator("#n-ml-train").get_by_text("differs").wait_for()
    page.goto(f"{site.url}/notebooks/ml/train")
    sides = page.locator("#differences .pair-sides pre").all_inner_texts()
    assert sides == ["seven", "8"] and "1 of 2 cells match" in page.locator("#golden").inner_text()
    job = model_manifests.job()
    site.run(site.put({**job, "status": {**job["status"], "comparisonResult": None}}))


def test_cell_strip_links_to_the_cell(visit: Callable[..., Any]) -> None:
    page = visit("/notebooks/ml/train")
    page.locator("#cell-strip a").first.click()
    page.wait_for_url("**#cell-1")


def test_run_again_requests_a_new_run(visit: Callable[..., Any], site: MachinesWorld) -> None:
    page = visit("/notebooks/ml/train")
    page.get_by_role("button", name="Run again").click()
    expect(page.locator("#said")).to_contain_text("New run requested")
    live = site.run(site.cluster.get(ResourceKey("mlops.mlops.dev", "NotebookValidationJob", "ml", "train")))
    assert live["metadata"]["annotations"]["mlops.dev/re-run"]


def test_cell_strip_shows_progress_of_a_running_notebook(visit: Callable[..., Any], site: MachinesWorld) -> None:
    page = visit("/notebooks/ml/train")
    page.locator('#pulse[data-state="live"]').wait_for()
    running = model_manifests.job(phase="ValidationRunning", message="Validating notebook: 3 of 6 cells done")
    site.run(site.put(running))
    page.locator("#cell-strip .is-busy").wait_for()
    assert page.locator("#cell-strip li").count() == 5  # text cells do not run
    site.run(site.put(model_manifests.job()))
    page.locator("#job-state").get_by_text("Succeeded", exact=True).wait_for()


def test_hostile_notebooks_and_models_run_no_payload(visit: Callable[..., Any], site: MachinesWorld) -> None:
    page = visit("/notebooks")
    page.expected += BEHIND_BARS
    response_urls: list[str] = []
    page.on("response", lambda answer: response_urls.append(answer.url))  # a request that a policy blocks has none
    for path in ("/notebooks", "/notebooks/ml/hostile", "/models", "/models/ml/hostile", "/activity", "/doctor"):
        page.goto(site.url + path)
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        page.evaluate("document.querySelectorAll('iframe').forEach((each, at) => at < 60 && (each.loading = 'eager'))")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("window.ran") is None, path
        assert page.locator("a[href^='javascript'], main script").count() == 0
    assert [url for url in response_urls if "/ran" in url] == []
    assert page.locator("text={{ 7 * 7 }}").count() == 0 and "49" not in page.locator("main").inner_text()


@pytest.mark.tier("test")
def test_html_output_opened_directly_has_no_origin(visit: Callable[..., Any], site: MachinesWorld) -> None:
    page = visit("/models")
    page.expected += BEHIND_BARS
    for cell in (0, 3, 5, 8, 12, 21):
        answer = page.goto(f"{site.url}/notebooks/ml/hostile/runs/2/html/{cell}/1")
        assert answer.headers["content-security-policy"].startswith("sandbox;")
        assert page.evaluate("self.origin") == "null" and page.evaluate("window.ran") is None


# -- environments --


def test_release_is_promoted_to_production_with_an_approval(visit: Callable[..., Any], site: MachinesWorld) -> None:
    page = visit("/environments", "ann@example.com")
    assert "web:1.1" in page.locator("#e-staging .moves").inner_text()
    page.locator("#e-staging").get_by_role("link", name="Promote…").click()
    expect(page.locator(".moves")).to_contain_text("web:1.0")
    page.get_by_label("Why (optional)").fill("it is good")
    page.get_by_role("button", name="Promote").click()
    expect(page.locator("#said")).to_contain_text("Promoted")
    assert "Nothing to promote: same image as dev" in page.locator("#e-staging").inner_text()
    production = page.locator("#e-production")
    assert "approval (leads)" in production.locator(".gates").inner_text()
    production.get_by_role("link", name="Approve…").click()
    page.get_by_role("button", name="Reject").click()
    expect(page.locator("#said")).to_contain_text("ejected")
    production.get_by_role("link", name="Approve…").click()
    page.get_by_label("Why (optional)").fill("seen in staging")
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#said")).to_contain_text("Approved")
    production.get_by_role("link", name="Promote…").click()
    page.get_by_role("button", name="Promote").click()
    history = page.locator("#promotions").inner_text()
    assert history.count("promote") == 2 and "approve" in history and "it is good" in history and "page" in history


@pytest.mark.tier("test")
def test_an_environment_is_held_and_resumed(visit: Callable[..., Any]) -> None:
    page = visit("/environments")
    page.locator("#e-production").get_by_role("button", name="Hold").click()
    page.locator("#e-production").get_by_text("held on the page").wait_for()
    page.locator("#e-production").get_by_role("button", name="Resume").click()
    page.locator("#e-production").get_by_role("button", name="Hold").wait_for()


def test_rolled_back_environment_says_so_instead_of_suggesting_a_sync(
    visit: Callable[..., Any], site: MachinesWorld
) -> None:
    before = site.run(site.cluster.get(ResourceKey("argoproj.io", "Application", "argocd", "web-production")))
    entry = before["status"]["history"][0]
    history = [{**entry, "id": n, "revision": letter * 40} for n, letter in enumerate("aba")]
    sync = {"status": "OutOfSync", "revision": "b" * 40, "comparedTo": {"source": entry["source"], "destination": {}}}
    site.run(site.put({**before, "status": {**before["status"], "history": history, "sync": sync}}))
    card = visit("/environments").locator("#e-production")
    text = card.inner_text()
    assert "rolled back to deployment 0; main still has bbbbbbb" in text and "argosy app diff" in text
    assert "sync it" not in text and card.get_by_role("link", name="SYNC…").count() == 0
    site.run(site.put(before))


def test_read_only_user_has_no_buttons_on_environments(visit: Callable[..., Any]) -> None:
    page = visit("/environments", "rita")
    assert page.locator(".stage").count() == 3 and page.locator(".stage button.button").count() == 0


# -- activity and all pages --


def test_activity_is_filtered_by_query_parameters(visit: Callable[..., Any]) -> None:
    page = visit("/activity?kind=sync")
    assert set(page.locator("#happenings .source .tag").all_inner_texts()) == {"sync"}
    page.get_by_label("Search activity").fill("web-dev")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=web-dev**")
    assert page.locator("#happenings li").count() == 1 and "kind=sync" in page.url


def test_activity_shows_page_actions_to_permitted_users_only(visit: Callable[..., Any], site: MachinesWorld) -> None:
    page = visit("/models/ml/fraud")
    page.get_by_role("button", name="Restart").click()
    page.goto(f"{site.url}/activity?kind=audit&q=restart")
    line = page.locator("#happenings li").first.inner_text()
    assert "POST /models/ml/fraud/restart" in line and "default/frauds" in line and "ann" in line
    page.context.add_cookies(site.cookies("bob"))
    page.goto(f"{site.url}/activity?kind=audit")
    assert "restart" not in page.locator("main").inner_text()


def test_every_page_can_be_read_without_javascript(visit: Callable[..., Any], site: MachinesWorld) -> None:
    page = visit("/models", java_script_enabled=False)
    for path in PAGES:
        page.goto(site.url + path)
        assert page.locator("h1").count() == 1 and len(page.locator("main").inner_text()) > 40, path


def test_denied_objects_appear_on_no_page_if_all_others_are_allowed(
    visit: Callable[..., Any], site: MachinesWorld
) -> None:
    page = visit("/models", "dora")
    for path in ("/models", "/notebooks", "/activity", "/activity?q=restart", "/doctor", "/doctor?deep=true"):
        page.goto(site.url + path)
        assert "frauds" not in page.locator("main").inner_text(), path
        assert page.locator('a[href*="/ml/train"], a[href*="/ml/fraud"]').count() == 0, path


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_accessible_in_both_themes_and_fits_a_phone(
    path: str, visit: Callable[..., Any], axe: Callable[..., None]
) -> None:
    page = visit(path)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        axe(page, f"{path} {theme}")
    page.set_viewport_size({"width": 320, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
