"""/apps?view=summary: "Needs you" has every error that the doctor knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from argosy.advise.finding import Severity
from argosy.desk.doctor.examining import Wanted
from argosy.model.manifest import Manifest
from argosy.server.answers import Page
from argosy.server.looking import doctor_errors
from argosy.server.looking.examining import examined
from argosy.server.pages.application import list_page
from argosy.server.pages.rendering import part
from argosy.server.site import Site
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL
from support.page_site import KnownPeople, anything
from support.watched_site import project, put, request, watched_site

pytestmark = pytest.mark.anyio
SUMMARY = [("view", "summary")]
REPOSITORY = {"repoURL": "https://git.test/ml.git", "path": "."}
FAILED = {
    "sync": {"status": "OutOfSync"},
    "operationState": {
        "phase": "Failed", "message": "one or more objects failed", "operation": {"sync": {}},
        "startedAt": "2026-11-15T10:00:00Z", "finishedAt": "2026-11-15T10:00:09Z",
    },
}  # fmt: skip
UNRENDERED = {
    "sync": {"status": "Unknown"},
    "conditions": [{"type": "ComparisonError", "message": "kustomization.yaml is missing"}],
}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need longer than a page waits."""
    monkeypatch.setattr(doctor_errors, "PAGE_WAIT_SECONDS", HANG_SECONDS)


def application(name: str, **status: Any) -> Manifest:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": CONTROL},
        "spec": {
            "project": "default",
            "source": REPOSITORY,
            "destination": {"name": "in-cluster", "namespace": "ml"},
            "syncPolicy": {"automated": {}},
        },
        "status": {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}, **status},
    }


def parent_of(name: str, child: str) -> Manifest:
    row = {"group": "argoproj.io", "version": "v1alpha1", "kind": "Application", "namespace": CONTROL, "name": child}
    return application(name, resources=[{**row, "status": "Synced"}])


async def needs(site: Site, who: str = "ann") -> tuple[dict[str, Any], list[str]]:
    """The values of the page, and the names that need somebody."""
    page = await list_page.list_page(request(site, "/apps", who, SUMMARY))
    assert isinstance(page, Page)
    return dict(page.values), [each.row.name for each in page.values["needs"].rows]


async def test_every_application_that_the_doctor_has_an_error_for_needs_you(tmp_path: Path) -> None:
    apps = [
        application("well"),
        application("failed", **FAILED),
        application("unrendered", **UNRENDERED),
        application("ill", health={"status": "Degraded"}),
        parent_of("one-parent", "well"),
        parent_of("other-parent", "well"),  # both are Synced and Healthy; the doctor knows better
    ]
    async with watched_site(tmp_path, [project(), *apps]) as site:
        values, names = await needs(site)
        report = await examined(request(site, "/doctor"), Wanted(is_quick=True))
    known = {each.app for each in report.lines if each.severity is Severity.ERROR}
    assert {"failed", "unrendered", "ill", "one-parent"} <= known  # else this test shows nothing
    assert known - {"(installation)"} <= set(names)
    shown = {each.row.name: part("app_list.html", "needs_row", each) for each in values["needs"].rows}
    assert "AGY516" in shown["one-parent"] and "AGY509" in shown["unrendered"]


async def test_no_error_is_left_out_because_there_are_many(tmp_path: Path) -> None:
    apps = [application(f"broken-{number:02}", **UNRENDERED) for number in range(60)]
    async with watched_site(tmp_path, [project(), *apps]) as site:
        values, names = await needs(site)
    assert len(names) == 60 and values["needs"].total == 60


async def test_what_does_not_fit_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_page, "MAX_NEEDS_ROWS", 2)
    apps = [application(f"broken-{number}", **UNRENDERED) for number in range(5)]
    async with watched_site(tmp_path, [project(), *apps]) as site:
        values, names = await needs(site)
    assert len(names) == 2 and values["needs"].total == 5


async def test_an_error_of_the_installation_needs_who_may_see_all(tmp_path: Path) -> None:
    def of_one_project(resource: str, action: str, thing: str) -> bool:
        return thing == "default/well"

    people = KnownPeople({"ann": anything, "bob": of_one_project})
    apps = [application("well"), application("failed", **FAILED)]
    async with watched_site(tmp_path, [project(), *apps], people) as site:
        check = "resource.customizations.health.apps_Deployment"
        metadata = {"name": "argocd-cm", "namespace": CONTROL}
        broken = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {check: "this is no Lua ("}}
        await put(site.desk.cluster, broken, part="data")
        ours, names = await needs(site)
        theirs, their_names = await needs(site, "bob")
    assert names == ["failed"] and their_names == []
    assert any("apps_Deployment" in each.cause for each in ours["needs"].installation)
    assert theirs["needs"].installation == ()


async def test_who_may_not_see_the_doctor_sees_errors_of_their_own_applications_alone(tmp_path: Path) -> None:
    def of_two(resource: str, action: str, thing: str) -> bool:
        return thing in ("default/one-parent", "default/failed")

    people = KnownPeople({"bob": of_two})
    parents = [parent_of("one-parent", "well"), parent_of("other-parent", "well")]
    apps = [application("well"), application("failed", **FAILED), *parents]
    async with watched_site(tmp_path, [project(), *apps], people) as site:
        values, names = await needs(site, "bob")
    assert names == ["failed"] and "other-parent" not in str(values["needs"])


async def test_the_live_page_shows_the_same_rows(tmp_path: Path) -> None:
    async with watched_site(tmp_path, [project(), application("failed", **FAILED)]) as site:
        parts = await list_page.list_parts(request(site, "/apps", query=SUMMARY))
    assert "failed" in parts[f"a-{CONTROL}-failed"]
