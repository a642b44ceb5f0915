"""Delay reasons of an Application: named with the same text in lists, on the page and by the doctor."""

from __future__ import annotations

import argparse
import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from argosy.annotations import REFRESH
from argosy.cli.tables import TerminalOutput
from argosy.features.applications.list.sync_delay_reasons import add_delay_reason
from argosy.features.applications.read.cli import print_app
from argosy.features.applications.read.text_output import render_list, render_wide_list
from argosy.features.applications.read.watch_output import watch_list
from argosy.features.doctor.service import DoctorOptions, examine_installation
from argosy.gitops.application.project_spec import BUDGETS_CONFIG_MAP
from argosy.gitops.application_client import status_summary
from argosy.gitops.application_client.app_state_reader import open_reader
from argosy.gitops.application_client.application_service import ApplicationService, utc_now
from argosy.gitops.application_client.delay_reasons import describe_delays
from argosy.gitops.cluster_view.cluster_view import ClusterView, open_cluster_view
from argosy.gitops.status.projects_over_worker_budget_configmap import BudgetUse, budget_uses_to_wire
from argosy.kube.client import Cluster
from argosy.kube.resource_key import ResourceKey
from support.deadlines import HANG_SECONDS, wait_until_async
from support.engine import furnish

DEPLOYED = {"id": 0, "revision": "4c1d2e3", "deployedAt": "2026-01-01T00:00:00Z"}
OUT_OF_SYNC = {"sync": {"status": "OutOfSync"}, "health": {"status": "Healthy"}, "history": [DEPLOYED]}
SYNCED = {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}}
OVER = (
    "waits because project 'shops' is over its budget (75s of 60s of worker time within 300s): other projects go first;"
    " make its renders and health checks cheaper, or raise fairness.project.budget in ConfigMap argosy-cm"
)
WINDOW = {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"], "manualSync": True}
DENIED = (
    "its automated sync waits for a sync window: a deny window is open without end: * * * * * for 1h;"
    " sync it by hand, which the window allows: argosy app sync web; see the windows: argosy proj windows list shops"
)


@pytest.fixture
async def desk(cluster: Cluster) -> AsyncIterator[ApplicationService]:
    await furnish(cluster, "argocd")
    yield ApplicationService(cluster, "here", "argocd", "argocd", acting_user="ann")


async def create_project(desk: ApplicationService, *windows: dict[str, Any]) -> None:
    spec = {
        "sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}], "syncWindows": list(windows),
    }  # fmt: skip
    metadata = {"name": "shops", "namespace": "argocd"}
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject"}
    await desk.cluster.create({**kind, "metadata": metadata, "spec": spec})


async def create_app(desk: ApplicationService, status: dict[str, Any] | None = None, **metadata: Any) -> None:
    spec = {
        "project": "shops", "source": {"repoURL": "https://git.example.com/app.git", "path": "app"},
        "destination": {"name": "in-cluster", "namespace": "default"}, "syncPolicy": {"automated": {}},
    }  # fmt: skip
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
    about = {"name": "web", "namespace": "argocd", **metadata}
    await desk.cluster.create({**kind, "metadata": about, "spec": spec, **({"status": status} if status else {})})


async def publish_budget(desk: ApplicationService, project: str = "shops") -> None:
    data = {"leader": budget_uses_to_wire({project: BudgetUse(75.0, 60.0, 300.0)}, utc_now())}
    metadata = {"name": BUDGETS_CONFIG_MAP, "namespace": "argocd"}
    await desk.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


async def list_why(desk: ApplicationService) -> str:
    app = await desk.load_application("web")
    return status_summary.describe_problem(app, delay=(await describe_delays(desk, [app])).get(app.key, ""))


async def page_why(desk: ApplicationService) -> str:
    async with open_cluster_view(desk) as lookout:
        return _row_why(lookout)


def _row_why(lookout: ClusterView) -> str:
    row = lookout.find_row("argocd", "web")
    assert row is not None
    return add_delay_reason(lookout, row).why


async def find_by_doctor(desk: ApplicationService, rule: str) -> str:
    async with open_reader(desk) as reader:
        examination = await examine_installation(desk, reader, DoctorOptions(is_quick=True))
    sights = [finding.violation for finding in examination.findings if finding.rule.id == rule]
    return "\n".join(f"{sight.message}; {sight.fix}" for sight in sights)


async def test_unreconciled_application_waits_for_the_budget_of_its_project(
    desk: ApplicationService,
) -> None:
    await create_project(desk)
    await create_app(desk)
    assert await list_why(desk) == "not reconciled yet; is a controller running?"
    await publish_budget(desk)
    assert (await list_why(desk), await page_why(desk)) == (OVER, OVER)
    assert await find_by_doctor(desk, "AGY525") == OVER


async def test_only_a_pending_refresh_of_a_synced_application_waits_for_the_budget(desk: ApplicationService) -> None:
    await create_project(desk)
    await publish_budget(desk)
    await create_app(desk, SYNCED)
    assert (await list_why(desk), await page_why(desk), await find_by_doctor(desk, "AGY525")) == ("", "", "")
    web = ResourceKey("argoproj.io", "Application", "argocd", "web")
    await desk.cluster.patch(web, {"metadata": {"annotations": {REFRESH: "hard"}}})
    assert (await list_why(desk), await page_why(desk)) == (OVER, OVER)


async def test_budget_does_not_delay_applications_delivered_by_argo_cd(desk: ApplicationService) -> None:
    await create_project(desk)
    await create_app(desk)
    await publish_budget(desk)
    labels = {"app.kubernetes.io/name": "argocd-application-controller"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"replicas": 1, "serviceName": "a", "selector": {"matchLabels": labels}, "template": pod}
    metadata = {"name": "argocd-application-controller", "namespace": "argocd", "labels": labels}
    await desk.cluster.create({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec})
    for why in (await list_why(desk), await page_why(desk), await find_by_doctor(desk, "AGY525")):
        assert "over its budget" not in why


async def test_budget_of_another_project_causes_no_delay(desk: ApplicationService) -> None:
    await create_project(desk)
    await create_app(desk)
    await publish_budget(desk, "others")
    assert await list_why(desk) == "not reconciled yet; is a controller running?"


async def test_sync_window_that_blocks_an_automated_sync_is_named(desk: ApplicationService) -> None:
    await create_project(desk, WINDOW)
    await create_app(desk, OUT_OF_SYNC)
    listed, on_page = await list_why(desk), await page_why(desk)
    assert listed == on_page and listed.startswith(DENIED) and listed.endswith("; differs"), listed
    assert (await find_by_doctor(desk, "AGY522")).startswith(DENIED)


async def test_app_list_and_app_get_show_the_delay_reason(
    desk: ApplicationService, capsys: pytest.CaptureFixture[str]
) -> None:
    await create_project(desk, WINDOW)
    await create_app(desk, OUT_OF_SYNC)
    app = await desk.load_application("web")
    await print_app(desk, app)
    assert DENIED in " ".join(capsys.readouterr().out.split())
    delays = await describe_delays(desk, [app])
    lines = render_list([app], TerminalOutput(io.StringIO()), utc_now(), "argocd", delays=delays)
    assert DENIED in lines[1] and DENIED in render_wide_list([app], {}, delays)[1]


async def test_held_application_reports_its_hold_and_no_sync_window(desk: ApplicationService) -> None:
    await create_project(desk, WINDOW)
    await create_app(desk, OUT_OF_SYNC, annotations={"argosy.dev/hold": "by hand"})
    assert (await list_why(desk), await page_why(desk)) == ("held: by hand", "held: by hand")


@asynccontextmanager
async def watching_list(desk: ApplicationService) -> AsyncIterator[None]:
    chosen = argparse.Namespace(output="", no_headers=False, compat=False, selector="")
    task = asyncio.create_task(watch_list(desk, chosen, lambda app: True, all_namespaces=False))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def wait_for_line(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the first new line that has all words."""
    lines: list[str] = []

    def find_line() -> str:
        lines.extend(capsys.readouterr().out.splitlines())
        return next((line for line in lines if all(word in line for word in words)), "")

    return await wait_until_async(find_line, " ".join(words))


WEB = ResourceKey("argoproj.io", "Application", "argocd", "web")


async def test_watched_list_drops_a_delay_that_ended(
    desk: ApplicationService, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argosy.features.applications.read.watch_output.DELAY_CACHE_SECONDS", 2 * HANG_SECONDS)
    await create_project(desk)
    await publish_budget(desk)
    await create_app(desk)
    async with watching_list(desk):
        await wait_for_line(capsys, "web", "is over its budget")
        await desk.cluster.patch(WEB, {"status": SYNCED})
        assert "over its budget" not in await wait_for_line(capsys, "web", "Synced", "Healthy")


async def test_watched_list_shows_a_new_delay_without_an_application_change(
    desk: ApplicationService, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argosy.features.applications.read.watch_output.DELAY_CACHE_SECONDS", 0.05)
    await create_project(desk)
    await create_app(desk)
    async with watching_list(desk):
        await wait_for_line(capsys, "web", "not reconciled yet")
        await publish_budget(desk)
        await wait_for_line(capsys, "web", "is over its budget")
