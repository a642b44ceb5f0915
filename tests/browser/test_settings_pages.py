"""Pages of the settings and the doctor in a real browser."""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.resource_key import GroupKind, ResourceKey
from support.git_server import git_host
from support.model_site import MachinesWorld, machines_world

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.tier("all")  # except for tests that are marked otherwise below
PAGES = (
    "/settings", "/settings/projects", "/settings/projects/default", "/settings/repositories", "/settings/clusters",
    "/settings/health", "/settings/accounts", "/settings/appearance", "/doctor?deep=true",
)  # fmt: skip
SLEEPER = "while true do end"
LUA = "A Lua check instead of the rule in force"
CANARY = "tok-canary-1948"


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


def test_settings_page_links_to_every_section(visit: Callable[..., Any], site: MachinesWorld) -> None:
    page = visit("/settings")
    addresses = page.locator(".sections a").evaluate_all("all => all.map(each => each.getAttribute('href'))")
    assert "/settings/health" in addresses and "/doctor" in addresses
    for address in addresses:
        assert page.goto(site.url + address).status == 200


def test_project_page_shows_its_rules_and_sync_windows(visit: Callable[..., Any], site: MachinesWorld) -> None:
    window = {"kind": "deny", "schedule": "0 3 * * *", "duration": "1h", "applications": ["*"]}
    spec = {"description": "<b>ML</b>", "sourceRepos": ["https://example.com/*"], "syncWindows": [window],
            "destinations": [{"server": "*", "namespace": "ml-*"}],
            "roles": [{"name": "ci", "policies": ["p, proj:ml:ci, applications, sync, ml/*, allow"]}]}  # fmt: skip
    metadata = {"name": "ml", "namespace": "argocd"}
    site.run(
        site.cluster.create(
            {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": spec}
        )
    )
    page = visit("/settings/projects/default")
    page.expected.append("404")
    page.locator("main").get_by_text("syncs are allowed at any time").wait_for()
    _until(page, site.url + "/settings/projects/ml", "Project ml")
    text = page.locator("main").inner_text()
    assert all(
        word in text for word in ("https://example.com/*", "ml-*", "0 3 * * *", "in ", "proj:ml:ci", "<b>ML</b>")
    )


def _until(page: Any, address: str, title: str) -> None:
    """Reload until the cluster view has received the object."""
    for _ in range(50):
        page.goto(address)
        if title in page.locator("h1").inner_text().replace("\n", " "):
            return
    raise AssertionError(page.locator("main").inner_text())


def test_manifest_health_is_assessed_by_the_active_rule_or_a_lua_script(visit: Callable[..., Any]) -> None:
    page = visit("/settings/health")
    page.get_by_role("button", name="Judge").click()
    answer = page.locator(".answer").inner_text()
    assert "Progressing" in answer and "1 of 2 updated replicas are available" in answer
    page.get_by_label(LUA).fill('return {status = "Degraded", message = "<i>no</i>"}')
    page.get_by_role("button", name="Judge").click()
    expect(page.locator(".answer")).to_contain_text("Degraded")
    expect(page.locator(".answer")).to_contain_text("<i>no</i>")


def test_endless_lua_script_and_invalid_manifest_are_reported(visit: Callable[..., Any]) -> None:
    page = visit("/settings/health")
    page.get_by_label(LUA).fill(SLEEPER)
    page.get_by_role("button", name="Judge").click()
    expect(page.locator(".answer")).to_contain_text("Unknown")
    page.get_by_label("An object, as YAML or JSON").fill("a: [")
    page.get_by_label(LUA).fill("")
    page.get_by_role("button", name="Judge").click()
    expect(page.locator("#try .note")).to_contain_text("manifest")


def test_unreachable_repository_is_rejected_without_showing_credentials(
    visit: Callable[..., Any], site: MachinesWorld
) -> None:
    page = visit("/settings/repositories")
    page.expected.append("400")
    page.get_by_text("Add a repository").click()
    page.get_by_label("Address").fill("https://127.0.0.1:9/none.git")
    page.get_by_label("Password or token").fill(CANARY)
    page.get_by_role("button", name="Add").click()
    expect(page.locator("#add .note")).to_contain_text("127.0.0.1")
    assert CANARY not in page.content() and page.get_by_label("Password or token").input_value() == ""


@pytest.mark.tier("test")
def test_repository_is_added_with_credentials_and_connected(
    visit: Callable[..., Any], site: MachinesWorld, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "own.git"], check=True)
    settings = ResourceKey("", "ConfigMap", "argocd", "argosy-cm")
    site.run(site.cluster.patch(settings, {"data": {"source.protocols": "https, ssh, http"}}))
    with git_host(tmp_path) as host:
        host.wanted = f"Basic {base64.b64encode(f'ann:{CANARY}'.encode()).decode()}"
        page = visit("/settings/repositories")
        page.get_by_text("Add a repository").click()
        page.get_by_label("Address").fill(f"{host.url}/own.git")
        page.get_by_label("User name").fill("ann")
        page.get_by_label("Password or token").fill(CANARY)
        page.get_by_role("button", name="Add").click()
        row = page.locator("tbody tr", has_text="own.git")
        assert "Successful" in row.inner_text()
        assert "stored" in row.inner_text() and CANARY not in page.content()
        page.on("dialog", lambda dialog: dialog.accept())
        row.get_by_role("button", name="Remove").click()
        row.wait_for(state="detached")


def test_a_repository_is_removed(visit: Callable[..., Any], site: MachinesWorld) -> None:
    metadata = {"name": "repo-1", "namespace": "argocd", "labels": {"argocd.argoproj.io/secret-type": "repository"}}
    data = {"url": "https://127.0.0.1:9/old.git", "password": CANARY}
    site.run(site.cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}))
    page = visit("/settings/repositories")
    assert "stored" in page.locator("tbody").inner_text() and CANARY not in page.content()
    page.get_by_role("button", name="Remove").click()
    expect(page.locator("#said")).to_contain_text("Removed")
    left = site.run(site.cluster.get(ResourceKey("", "Secret", "argocd", "repo-1")))  # argo: a foreign Secret stays
    assert "argocd.argoproj.io/secret-type" not in (left["metadata"].get("labels") or {})


def test_a_token_is_shown_once_and_can_be_revoked(visit: Callable[..., Any], site: MachinesWorld) -> None:
    site.run(_prepared(site))
    page = visit("/settings/accounts")
    page.get_by_role("button", name="New token").click()
    token = page.locator("#token pre").inner_text()
    assert token.count(".") == 2
    page.goto(site.url + "/settings/accounts")
    assert token not in page.content() and page.get_by_role("button", name="Revoke").count() == 1
    page.get_by_role("button", name="Revoke").click()
    expect(page.locator("#said")).to_contain_text("Revoked")
    assert page.get_by_role("button", name="Revoke").count() == 0


async def _prepared(site: MachinesWorld) -> None:
    from argosy.web.auth.account_password_token_store import AccountStore

    await AccountStore(site.cluster, "argocd").ensure_key_and_admin_password()


def test_read_only_user_cannot_change_settings(visit: Callable[..., Any], site: MachinesWorld) -> None:
    page = visit("/settings/accounts", "rita")
    assert page.get_by_role("button", name="New token").count() == 0
    page.goto(site.url + "/settings/repositories")
    assert page.get_by_role("button", name="Remove").count() == 0
    page.expected.append("404")
    page.get_by_text("Add a repository").click()
    page.get_by_label("Address").fill("https://example.com/x.git")
    page.get_by_role("button", name="Add").click()
    expect(page).to_have_title(re.compile("Not found"))
    page.goto(site.url + "/no/such/page")  # a signed-in user is not asked to sign in
    assert page.get_by_role("link", name="All applications").count() and not page.get_by_text("Sign in").count()
    labels = {"argocd.argoproj.io/secret-type": "repository"}
    assert site.site.cluster_view.cache.list(GroupKind("", "Secret"), labels=labels) == []


def test_every_page_is_readable_without_javascript(visit: Callable[..., Any], site: MachinesWorld) -> None:
    page = visit("/settings", java_script_enabled=False)
    for path in PAGES:
        page.goto(site.url + path)
        assert page.locator("h1").count() == 1 and len(page.locator("main").inner_text()) > 40, path


@pytest.mark.parametrize("path", PAGES)
def test_settings_page_is_accessible_in_both_themes_and_fits_a_phone(
    path: str, visit: Callable[..., Any], axe: Callable[..., None]
) -> None:
    page = visit(path)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        axe(page, f"{path} {theme}")
    page.set_viewport_size({"width": 320, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
