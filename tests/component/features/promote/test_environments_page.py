"""/environments of a server without a clone: it reads the repositories of Applications."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from argosy.features.promote import api as environments_api
from argosy.features.promote import page as environments
from argosy.features.promote import visible_repositories
from argosy.features.promote.visible_board import EnvironmentBoards
from argosy.features.promote.visible_repositories import RepositoryFinder
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.source.git.mirror import Mirror
from argosy.kube.objects import Manifest
from argosy.web.page_templates import render_macro
from argosy.web.request import NotFoundOrForbidden, RequestContext
from argosy.web.responses import PageResponse
from argosy.web.site_services import Site
from support import promotion_repository
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL
from support.page_site import KnownPeople, anything
from support.watched_site import HOST, project, request, watched_site

pytestmark = pytest.mark.anyio
NAMES = ("dev", "staging", "production")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the page and fetch timeouts, because a busy machine may need longer."""
    monkeypatch.setattr(visible_repositories, "PAGE_WAIT_SECONDS", HANG_SECONDS)
    monkeypatch.setattr(visible_repositories, "FETCH_SECONDS", HANG_SECONDS)


@pytest.fixture
def boards() -> EnvironmentBoards:
    return EnvironmentBoards()


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> promotion_repository.Shelf:
    """The pushed repository: dev has 1.1, the others have 1.0."""
    promotion_repository.alone(monkeypatch)
    return promotion_repository.Shelf(promotion_repository.begin(tmp_path / "web"))


def application(name: str, url: str = f"{HOST}/web", in_project: str = "default") -> Manifest:
    source = {"repoURL": url, "path": name, "targetRevision": "HEAD"}
    history = [{"id": 0, "revision": "a" * 40, "deployedAt": "2026-11-15T10:00:00Z", "source": source}]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": f"web-{name}", "namespace": CONTROL},
        "spec": {"project": in_project, "source": source, "destination": {"name": "in-cluster", "namespace": "ml"}},
        "status": {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}, "history": history},
    }


def make_plain_repository(folder: Path) -> Path:
    """Create a repository without environments."""
    plain = promotion_repository.Shelf(folder / "plain")
    plain.folder.mkdir()
    for words in (("init", "-q", "-b", "main"), ("config", "user.email", "a@b.c"), ("config", "user.name", "Ann")):
        plain.git(*words)
    plain.write("dev/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    plain.commit("Begin")
    return plain.folder


def applications_without_commits(folder: Path) -> list[Manifest]:
    """Applications whose repository is read first and has no commits."""
    (folder / "broken").mkdir()
    promotion_repository.Shelf(folder / "broken").git("init", "-q", "-b", "main")
    return [application(f"{name}-a", f"{HOST}/broken") for name in (*NAMES, "test")]


APPS = [application(name) for name in NAMES]


def page_of(values: dict[str, Any]) -> str:
    board = values["board"]
    stages_html = [
        render_macro("promote/parts.html", "stage", stage, values["may"][stage.name], "") for stage in board.stages
    ]
    return "\n".join([*stages_html, *board.notes])


async def plan(site: Site, boards: EnvironmentBoards, name: str, deed: str = "") -> RequestContext | None:
    values = {"env": name, **({"deed": deed} if deed else {})}
    page_request = request(site, f"/environments/{name}/promote", **values)
    environment = await environments.find_environment(boards, page_request)
    return (
        replace(page_request, subject=environment.subject, rbac_object=environment.rbac_object) if environment else None
    )


async def test_environments_are_read_from_the_repository_of_their_applications(
    tmp_path: Path, shelf: promotion_repository.Shelf, boards: EnvironmentBoards
) -> None:
    async with watched_site(tmp_path, [project(), *APPS]) as site:
        values = await environments.build_page_values(request(site, "/environments"), boards)
        answer = await environments_api.list_environments(boards, request(site, "/api/argosy/v1/environments"))
    assert [stage.name for stage in values["board"].stages] == list(NAMES)
    text = page_of(values)
    assert "web:1.0" in text and "web:1.1" in text
    head = shelf.git("rev-parse", "--short=7", "HEAD")
    assert f"Read from {HOST}/web at {head}." in text and "argosy serve --repo" in text
    assert "Hold" not in text  # nothing can be written without a clone
    assert [item["name"] for item in json.loads(json.dumps(answer.document))["items"]] == list(NAMES)


@pytest.mark.tier("all")
async def test_later_commit_is_shown(
    tmp_path: Path, shelf: promotion_repository.Shelf, monkeypatch: pytest.MonkeyPatch, boards: EnvironmentBoards
) -> None:
    monkeypatch.setattr(visible_repositories, "MAX_REFS_AGE_SECONDS", 0.0)
    async with watched_site(tmp_path, [project(), *APPS]) as site:
        await environments.build_page_values(request(site, "/environments"), boards)
        shelf.pin("dev", "3.0")
        values = await environments.build_page_values(request(site, "/environments"), boards)
    assert values["board"].stages[0].images == ("web:3.0",)


async def test_plan_is_read_only_without_a_clone(
    tmp_path: Path, shelf: promotion_repository.Shelf, boards: EnvironmentBoards
) -> None:
    async with watched_site(tmp_path, [project(), *APPS]) as site:
        page_request = await plan(site, boards, "staging")
        assert page_request is not None
        page = await environments.show_plan(boards, page_request)
        assert await plan(site, boards, "staging", "promote") is None
        with pytest.raises(NotFoundOrForbidden):
            await environments.run_requested_action(
                boards, replace(page_request, path_parameters={"env": "staging", "deed": "promote"})
            )
    assert isinstance(page, PageResponse) and page.values["may"] == []
    assert [(move.before, move.after) for move in page.values["plan"].moves] == [("web:1.0", "web:1.1")]


async def test_repositories_of_invisible_applications_are_not_read(
    tmp_path: Path, shelf: promotion_repository.Shelf, boards: EnvironmentBoards
) -> None:
    def of_others(resource: str, action: str, thing: str) -> bool:
        return thing.startswith("other/")

    people = KnownPeople({"ann": anything, "bob": of_others})
    other = application("other", f"{HOST}/missing", "other")
    async with watched_site(tmp_path, [project(), project("other"), other, *APPS], people) as site:
        values = await environments.build_page_values(request(site, "/environments", "bob"), boards)
    assert values["board"] is None


async def test_repository_not_permitted_by_the_project_is_not_read(
    tmp_path: Path, shelf: promotion_repository.Shelf, boards: EnvironmentBoards
) -> None:
    async with watched_site(tmp_path, [project("default", "https://elsewhere.test/*"), *APPS]) as site:
        values = await environments.build_page_values(request(site, "/environments"), boards)
    assert values["board"] is None and values["problem"] == ""


async def test_unreadable_repository_is_reported(tmp_path: Path, boards: EnvironmentBoards) -> None:
    apps = [application(name, f"{HOST}/missing") for name in NAMES]
    async with watched_site(tmp_path, [project(), *apps]) as site:
        values = await environments.build_page_values(request(site, "/environments"), boards)
    assert values["board"] is None and f"{HOST}/missing" in values["problem"]


@pytest.mark.tier("all")
async def test_repository_without_environments_is_skipped(
    tmp_path: Path, shelf: promotion_repository.Shelf, boards: EnvironmentBoards
) -> None:
    make_plain_repository(tmp_path)
    others = [application(f"{name}-a", f"{HOST}/plain") for name in (*NAMES, "test")]
    others += [application(f"{name}-z", f"{HOST}/zoo") for name in NAMES]
    async with watched_site(tmp_path, [project(), *others, *APPS]) as site:
        values = await environments.build_page_values(request(site, "/environments"), boards)
    assert [stage.application for stage in values["board"].stages] == [f"web-{name}" for name in NAMES]
    assert values["board"].notes[0].endswith(f"Not shown: the environments of {HOST}/zoo")


@pytest.mark.tier("all")
async def test_absence_of_environments_is_cached(
    tmp_path: Path, shelf: promotion_repository.Shelf, boards: EnvironmentBoards
) -> None:
    async with watched_site(tmp_path, [project("default", "https://elsewhere.test/*"), *APPS]) as site:
        page_request = request(site, "/environments")
        await environments.build_page_values(page_request, boards)
        applications = boards.applications.find(page_request)
    assert applications == frozenset()


@pytest.mark.tier("all")
async def test_absence_of_environments_in_a_clone_is_cached(
    tmp_path: Path, shelf: promotion_repository.Shelf, boards: EnvironmentBoards
) -> None:
    async with watched_site(tmp_path, [project()], repository=make_plain_repository(tmp_path)) as site:
        page_request = request(site, "/environments")
        values = await environments.build_page_values(page_request, boards)
        applications = boards.applications.find(page_request)
    assert "no environments found" in values["problem"] and applications == frozenset()


class Host:
    """Records fetches by repository, and blocks those of named repositories until the test continues."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fetches: list[str] = []
        self.now, self.held, self.may_go_on = 0.0, frozenset[str](), asyncio.Event()
        checkout = Mirror.checkout

        async def counted(mirror: Mirror, ref: str, **options: Any) -> Checkout:
            name = mirror.remote.display_url.rpartition("/")[2]
            self.fetches.append(name)
            if name in self.held:
                await self.may_go_on.wait()
            return await checkout(mirror, ref, **options)

        monkeypatch.setattr(Mirror, "checkout", counted)

    @contextmanager
    def holding(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> Iterator[None]:
        """Fetches of these repositories do not finish, and pages do not wait for them."""
        self.held = frozenset(names)
        with monkeypatch.context() as patch:
            patch.setattr(visible_repositories, "PAGE_WAIT_SECONDS", 0.0)
            yield
        self.held = frozenset()
        self.may_go_on.set()

    def build_boards(self) -> EnvironmentBoards:
        """Boards that fetch by the time of this host."""
        return EnvironmentBoards(RepositoryFinder(lambda: self.now))


@pytest.fixture
async def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch)


async def test_page_does_not_wait_for_an_unresponsive_git_host(
    tmp_path: Path,
    shelf: promotion_repository.Shelf,
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
    boards: EnvironmentBoards,
) -> None:
    async with watched_site(tmp_path, [project(), *APPS]) as site:
        with host.holding(monkeypatch, "web"):
            during = await environments.build_page_values(request(site, "/environments"), boards)
            await environments.build_page_values(request(site, "/environments"), boards)
            assert host.fetches == ["web"]  # the second page load waits for the same fetch
        after = await environments.build_page_values(request(site, "/environments"), boards)
    assert during["board"] is None
    assert during["problem"] == f"{HOST}/web: fetch in progress; try again in a moment"
    assert [stage.name for stage in after["board"].stages] == list(NAMES)


@pytest.mark.tier("all")
async def test_unreadable_repository_is_fetched_again_after_a_minute(
    tmp_path: Path, shelf: promotion_repository.Shelf, host: Host
) -> None:
    broken = applications_without_commits(tmp_path)
    async with watched_site(tmp_path, [project(), *broken, *APPS]) as site:
        boards = host.build_boards()
        for _ in range(2):
            values = await environments.build_page_values(request(site, "/environments"), boards)
            assert [stage.application for stage in values["board"].stages] == [f"web-{name}" for name in NAMES]
        assert host.fetches.count("broken") == 1
        host.now = visible_repositories.RETRY_SECONDS
        await environments.build_page_values(request(site, "/environments"), boards)
    assert host.fetches.count("broken") == 2 and visible_repositories.RETRY_SECONDS == 60.0


@pytest.mark.tier("all")
async def test_known_failure_is_used_while_the_repository_is_fetched_again(
    tmp_path: Path, shelf: promotion_repository.Shelf, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = applications_without_commits(tmp_path)
    async with watched_site(tmp_path, [project(), *broken, *APPS]) as site:
        boards = host.build_boards()
        await environments.build_page_values(request(site, "/environments"), boards)
        host.now = visible_repositories.RETRY_SECONDS
        with host.holding(monkeypatch, "broken"):
            values = await environments.build_page_values(request(site, "/environments"), boards)
    assert [stage.application for stage in values["board"].stages] == [f"web-{name}" for name in NAMES]


async def test_known_commit_is_shown_while_a_newer_one_is_fetched(
    tmp_path: Path,
    shelf: promotion_repository.Shelf,
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
    boards: EnvironmentBoards,
) -> None:
    monkeypatch.setattr(visible_repositories, "MAX_REFS_AGE_SECONDS", 0.0)
    async with watched_site(tmp_path, [project(), *APPS]) as site:
        before = await environments.build_page_values(request(site, "/environments"), boards)
        shelf.pin("dev", "3.0")
        with host.holding(monkeypatch, "web"):
            during = await environments.build_page_values(request(site, "/environments"), boards)
        after = await environments.build_page_values(request(site, "/environments"), boards)
    assert page_of(during) == page_of(before)
    assert after["board"].stages[0].images == ("web:3.0",)
