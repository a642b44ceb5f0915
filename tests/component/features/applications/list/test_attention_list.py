"""/apps?view=summary: the section "Needs you" lists every error that the doctor finds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import ArgosyError, TransientError
from argosy.features.applications.list import page as list_page
from argosy.features.applications.list.page import ListCaches
from argosy.features.doctor import error_finding_cache
from argosy.features.doctor.examination_of_visible_applications import examine_visible
from argosy.features.doctor.installation_checks import CheckState, InstallationCheck
from argosy.features.doctor.service import DoctorOptions, Examination
from argosy.gitops.analysis.rule_violation import Severity
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.kube.client import Listing
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind
from argosy.web.page_templates import render_macro
from argosy.web.responses import PageResponse
from argosy.web.site_services import Site
from support.deadlines import HANG_SECONDS, wait_until_async
from support.engine import CONTROL
from support.loop_clock import turns
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
    """Raise the page timeout, because a busy machine may need longer."""
    monkeypatch.setattr(error_finding_cache, "PAGE_WAIT_SECONDS", HANG_SECONDS)


@pytest.fixture
def lock() -> asyncio.Lock:
    """Held by an examination that a user asked for."""
    return asyncio.Lock()


@pytest.fixture
def caches(lock: asyncio.Lock) -> ListCaches:
    return ListCaches(error_finding_cache.ExaminationCache(lock))


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


async def needs(site: Site, caches: ListCaches, who: str = "ann") -> tuple[dict[str, Any], list[str]]:
    """The values of the page, and the names of the Applications below "Needs you"."""
    page = await list_page.render_list_page(caches, request(site, "/apps", who, SUMMARY))
    assert isinstance(page, PageResponse)
    return dict(page.values), [list_row.row.name for list_row in page.values["needs"].rows]


async def test_every_application_with_a_doctor_error_is_listed(
    tmp_path: Path, caches: ListCaches, lock: asyncio.Lock
) -> None:
    apps = [
        application("well"),
        application("failed", **FAILED),
        application("unrendered", **UNRENDERED),
        application("ill", health={"status": "Degraded"}),
        parent_of("one-parent", "well"),
        parent_of("other-parent", "well"),  # both are Synced and Healthy, but the doctor reports an error
    ]
    async with watched_site(tmp_path, [project(), *apps]) as site:
        values, names = await needs(site, caches)
        report = await examine_visible(request(site, "/doctor"), DoctorOptions(is_quick=True), lock)
    apps_with_errors = {line.app for line in report.lines if line.severity is Severity.ERROR}
    assert {"failed", "unrendered", "ill", "one-parent"} <= apps_with_errors  # otherwise this test proves nothing
    assert apps_with_errors - {"(installation)"} <= set(names)
    html_by_name = {
        list_row.row.name: render_macro("applications/parts_list.html", "needs_row", list_row)
        for list_row in values["needs"].rows
    }
    assert "AGY516" in html_by_name["one-parent"] and "AGY509" in html_by_name["unrendered"]


async def test_sixty_applications_with_errors_are_all_listed(tmp_path: Path, caches: ListCaches) -> None:
    apps = [application(f"broken-{number:02}", **UNRENDERED) for number in range(60)]
    async with watched_site(tmp_path, [project(), *apps]) as site:
        values, names = await needs(site, caches)
    assert len(names) == 60 and values["needs"].total == 60


async def test_total_counts_rows_beyond_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caches: ListCaches
) -> None:
    monkeypatch.setattr(list_page, "MAX_ATTENTION_ROWS", 2)
    apps = [application(f"broken-{number}", **UNRENDERED) for number in range(5)]
    async with watched_site(tmp_path, [project(), *apps]) as site:
        values, names = await needs(site, caches)
    assert len(names) == 2 and values["needs"].total == 5


async def test_installation_errors_are_shown_only_to_users_with_full_access(tmp_path: Path, caches: ListCaches) -> None:
    def of_one_project(resource: str, action: str, thing: str) -> bool:
        return thing == "default/well"

    people = KnownPeople({"ann": anything, "bob": of_one_project})
    apps = [application("well"), application("failed", **FAILED)]
    async with watched_site(tmp_path, [project(), *apps], people) as site:
        check = "resource.customizations.health.apps_Deployment"
        metadata = {"name": "argocd-cm", "namespace": CONTROL}
        broken = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {check: "this is no Lua ("}}
        await put(site.service.cluster, broken, part="data")
        await wait_until_async(lambda: check in site.cluster_view.cache.get(key_of(broken))["data"])
        ours, names = await needs(site, caches)
        their_values, their_names = await needs(site, caches, "bob")
    assert names == ["failed"] and their_names == []
    assert any("apps_Deployment" in error.cause for error in ours["needs"].installation)
    assert their_values["needs"].installation == ()


async def test_restricted_user_sees_only_errors_of_visible_applications(tmp_path: Path, caches: ListCaches) -> None:
    def of_two(resource: str, action: str, thing: str) -> bool:
        return thing in ("default/one-parent", "default/failed")

    people = KnownPeople({"bob": of_two})
    parents = [parent_of("one-parent", "well"), parent_of("other-parent", "well")]
    apps = [application("well"), application("failed", **FAILED), *parents]
    async with watched_site(tmp_path, [project(), *apps], people) as site:
        values, names = await needs(site, caches, "bob")
    assert names == ["failed"] and "other-parent" not in str(values["needs"])


async def test_live_update_contains_the_error_row(tmp_path: Path, caches: ListCaches) -> None:
    async with watched_site(tmp_path, [project(), application("failed", **FAILED)]) as site:
        parts = await list_page.render_list_parts(caches, request(site, "/apps", query=SUMMARY))
    assert "failed" in parts[f"a-{CONTROL}-failed"]


class Doctor:
    """Counts examinations, and blocks each until the test lets it continue."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started, self.now, self.may_go_on = 0, 0.0, asyncio.Event()
        self.error: ArgosyError | None = None
        self.may_go_on.set()
        self._examine = error_finding_cache.examine_installation
        monkeypatch.setattr(error_finding_cache, "examine_installation", self.examine)

    async def examine(self, desk: ApplicationService, reader: ApplicationReader, options: DoctorOptions) -> Examination:
        self.started += 1
        await self.may_go_on.wait()
        if self.error is not None:
            raise self.error
        return await self._examine(desk, reader, options)

    @asynccontextmanager
    async def holding(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
        """Examinations do not finish, and pages do not wait for them."""
        self.may_go_on.clear()
        with monkeypatch.context() as patch:
            patch.setattr(error_finding_cache, "PAGE_WAIT_SECONDS", 0.0)
            yield
        self.may_go_on.set()

    def build_caches(self) -> ListCaches:
        """Caches that expire by the time of this doctor."""
        return ListCaches(error_finding_cache.ExaminationCache(asyncio.Lock(), lambda: self.now))


@pytest.fixture
async def doctor(monkeypatch: pytest.MonkeyPatch) -> Doctor:
    return Doctor(monkeypatch)


async def test_one_examination_serves_all_callers_for_a_minute(tmp_path: Path, doctor: Doctor) -> None:
    def all_but_one(resource: str, action: str, thing: str) -> bool:
        return thing != "default/secret"

    people = KnownPeople({"ann": anything, "bob": all_but_one})
    apps = [application("failed", **FAILED), parent_of("one-parent", "failed"), parent_of("secret", "failed")]
    async with watched_site(tmp_path, [project(), *apps], people) as site:
        caches = doctor.build_caches()
        await needs(site, caches)
        values, names = await needs(site, caches, "bob")
        their_errors = await error_finding_cache.load_visible_errors(request(site, "/apps", "bob"), caches.examinations)
        await list_page.render_list_parts(caches, request(site, "/apps", query=SUMMARY))
        assert doctor.started == 1
        doctor.now = error_finding_cache.RESULT_LIFETIME_SECONDS
        await needs(site, caches, "bob")
    assert doctor.started == 2 and error_finding_cache.RESULT_LIFETIME_SECONDS == 60.0
    assert {"failed", "one-parent"} == set(names) and values["needs"].installation == ()
    assert {key.name for key in their_errors.by_application} == {"failed", "one-parent"}


async def test_summary_examination_reads_watched_kinds_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caches: ListCaches
) -> None:
    listed: list[str] = []
    async with watched_site(tmp_path, [project(), application("failed", **FAILED)]) as site:
        cluster = site.service.cluster
        ask = cluster.list

        async def list_and_note(kind: GroupKind, **options: Any) -> Listing:
            listed.append(kind.kind)
            return await ask(kind, **options)

        monkeypatch.setattr(cluster, "list", list_and_note)
        _, names = await needs(site, caches)
    assert names == ["failed"]
    assert not {"Application", "Pod", "ConfigMap", "Secret", "Deployment"} & set(listed)


async def test_requested_examination_does_not_wait_for_the_summary(
    tmp_path: Path, doctor: Doctor, monkeypatch: pytest.MonkeyPatch, caches: ListCaches, lock: asyncio.Lock
) -> None:
    apps = [application("failed", **FAILED)]
    async with watched_site(tmp_path, [project(), *apps]) as site, doctor.holding(monkeypatch):
        await needs(site, caches)
        await wait_until_async(lambda: doctor.started == 1)
        assert not lock.locked()
        report = await examine_visible(request(site, "/doctor"), DoctorOptions(is_quick=True), lock)
    assert [app.name for app in report.examination.chosen] == ["failed"]


async def test_summary_examination_waits_for_a_requested_one(
    tmp_path: Path, doctor: Doctor, monkeypatch: pytest.MonkeyPatch, caches: ListCaches, lock: asyncio.Lock
) -> None:
    async with watched_site(tmp_path, [project(), application("failed", **FAILED)]) as site:
        with monkeypatch.context() as patch:
            patch.setattr(error_finding_cache, "PAGE_WAIT_SECONDS", 0.0)
            async with lock:
                await needs(site, caches)
                await turns()
                assert doctor.started == 0
        _, names = await needs(site, caches)
    assert names == ["failed"] and doctor.started == 1


async def test_known_errors_are_shown_while_a_new_examination_runs(
    tmp_path: Path, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    apps = [application("well"), parent_of("one-parent", "well"), parent_of("other-parent", "well")]
    async with watched_site(tmp_path, [project(), *apps]) as site:
        caches = doctor.build_caches()
        before, names = await needs(site, caches)
        doctor.now = 127.0
        async with doctor.holding(monkeypatch):
            during, names_during = await needs(site, caches)
    assert names and names_during == names and during["digest"] == before["digest"]
    assert during["needs"].note == "The doctor is looking again. These errors are from 2m07s ago."


async def test_known_errors_are_shown_if_a_new_examination_fails(tmp_path: Path, doctor: Doctor) -> None:
    apps = [application("well"), parent_of("one-parent", "well"), parent_of("other-parent", "well")]
    async with watched_site(tmp_path, [project(), *apps]) as site:
        caches = doctor.build_caches()
        _, names = await needs(site, caches)
        doctor.now, doctor.error = 60.0, TransientError("the cluster is away")
        after, names_after = await needs(site, caches)
        await needs(site, caches)
    assert names and names_after == names and doctor.started == 2
    assert after["needs"].note == "The doctor cannot look: the cluster is away"


async def test_first_page_load_does_not_wait_for_the_examination(
    tmp_path: Path, doctor: Doctor, monkeypatch: pytest.MonkeyPatch, caches: ListCaches
) -> None:
    apps = [application("failed", **FAILED)]
    async with watched_site(tmp_path, [project(), *apps]) as site, doctor.holding(monkeypatch):
        values, names = await needs(site, caches)
    assert names == ["failed"] and "still looking" in values["needs"].note


def test_error_id_ignores_the_age_in_its_text() -> None:
    def needs_of(age: str) -> list[str]:
        check = InstallationCheck("controllers", CheckState.BAD, f"argosy's controller gave its last sign {age} ago")
        return list_page.AttentionList(installation=(error_finding_cache.build_check_error(check),)).ids

    assert needs_of("2m07s") == needs_of("2m12s")
    other = error_finding_cache.build_check_error(InstallationCheck("owner", CheckState.BAD, "there is no argocd-cm"))
    assert list_page.AttentionList(installation=(other,)).ids != needs_of("2m07s")
