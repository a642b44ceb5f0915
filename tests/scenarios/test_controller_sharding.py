"""Sharded controllers of one sandbox that are killed, paused, stopped or disconnected."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.deadlines import HANG_SECONDS
from support.sharded_controllers import Controller, SharedWork, fence_of, shared_work

pytestmark = pytest.mark.tier("all")

APPLICATIONS = 12


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedWork]:
    with shared_work(tmp_path_factory.mktemp("shared"), APPLICATIONS) as started_work:
        yield started_work


@pytest.fixture(autouse=True)
def nobody_interferes(work: SharedWork) -> Iterator[None]:
    """Ensure three controllers before each test; after it, check that no controller wrote after losing its claim."""
    while len(work.living) < 3:
        work.start()
    work.until(HANG_SECONDS, lambda: work.are_shared(3), "three members agree")
    work.until(HANG_SECONDS, lambda: work.are_claimed() and are_noted(work), "everything is claimed")
    yield
    assert not work.faults()
    assert not work.hooks_made_twice()


def are_noted(work: SharedWork) -> bool:
    """True if the proxy has seen the response to each last claim, which the server stores a moment earlier."""
    notes = {app: work.claims(app)[-1].fence for app in work.apps}
    return notes == {application["metadata"]["name"]: fence_of(application) for application in work.listed()}


def an_owner(work: SharedWork) -> tuple[Controller, set[str]]:
    """Return a controller and the Applications that it claimed last."""
    last = {app: work.claims(app)[-1].member for app in work.apps}
    one = next(controller for controller in work.living if controller.name in last.values())
    return one, {app for app, member in last.items() if member == one.name}


def handed_over(work: SharedWork, apps: set[str], since: float) -> bool:
    return all(work.claims(app)[-1].sent > since for app in apps)


def are_renewed_before(work: SharedWork, seconds: float) -> bool:
    """True if there are Leases, and none was renewed in the last `seconds`."""
    renewals = [datetime.fromisoformat(lease["spec"]["renewTime"]) for lease in work.members()]
    return bool(renewals) and max(renewals) < datetime.now(UTC) - timedelta(seconds=seconds)


def test_applications_are_sharded_among_members(work: SharedWork) -> None:
    holders = {lease["spec"]["holderIdentity"] for lease in work.members()}
    assert set(work.owners().values()) <= holders
    assert len(set(work.owners().values())) >= 2


def test_applications_of_a_killed_controller_are_taken_over(work: SharedWork) -> None:
    one, apps = an_owner(work)
    one.end(signal.SIGKILL)
    took = work.until(HANG_SECONDS, lambda: handed_over(work, apps, one.ended_at), "what it had is taken")
    print(f"{len(apps)} applications {took:.1f} s after kill -9")


def test_stopped_controller_releases_its_lease_and_hands_over(work: SharedWork) -> None:
    one, apps = an_owner(work)
    (identity,) = {owner for app, owner in work.owners().items() if app in apps}
    one.end(signal.SIGTERM)
    assert one.process.wait(HANG_SECONDS) == 0
    assert identity not in {lease["spec"]["holderIdentity"] for lease in work.members()}, "it has given its Lease up"
    took = work.until(HANG_SECONDS, lambda: handed_over(work, apps, one.ended_at), "what it had is taken")
    print(f"{len(apps)} applications {took:.1f} s after SIGTERM")


def test_controller_paused_past_its_lease_writes_nothing_on_resume(work: SharedWork) -> None:
    one, apps = an_owner(work)
    for app in apps:
        work.sync(app)  # so that it is busy
    one.pause()
    slept = time.monotonic()
    try:
        work.until(HANG_SECONDS, lambda: handed_over(work, apps, slept), "what it had is taken")
    finally:
        one.go_on()  # the next tests expect three controllers
    work.until(HANG_SECONDS, lambda: "membership lost, joining again" in one.log(), "it notices")
    work.until(HANG_SECONDS, lambda: work.are_shared(3), "it is one of them again")
    assert not work.faults()


def test_api_server_outage_of_20_seconds_changes_no_owner(work: SharedWork) -> None:
    before = work.owners()
    work.proxy.is_away = True
    work.until(HANG_SECONDS, lambda: are_renewed_before(work, seconds=20), "no Lease has been renewed for 20 s")
    work.proxy.is_away = False
    head = work.push("after the server was away")
    work.until(HANG_SECONDS, lambda: work.are_synced(head), "all goes on")
    assert work.owners() == before


def test_push_and_refresh_are_handled_without_changing_owners(work: SharedWork) -> None:
    before = work.owners()
    head = work.push("pushed")
    work.until(HANG_SECONDS, lambda: work.are_synced(head), "a push is delivered")
    path = f"/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/{work.apps[0]}"
    refresh = "argocd.argoproj.io/refresh"
    refresh_patch = {"metadata": {"annotations": {refresh: "hard"}}}
    work.running.request("PATCH", path, refresh_patch, "application/merge-patch+json")
    work.until(
        HANG_SECONDS,
        lambda: refresh not in work.running.request("GET", path).json()["metadata"]["annotations"],
        "a refresh",
    )
    assert work.owners() == before


def test_unsharded_controller_is_refused_beside_sharded_ones(work: SharedWork) -> None:
    alone = work.start("--workers", "1")
    assert alone.process.wait(HANG_SECONDS) == 2
    assert "sharded controllers run on this cluster" in alone.log()


def test_sharded_controller_is_refused_beside_an_unsharded_one(tmp_path: Path) -> None:
    with shared_work(tmp_path, 0, controllers=0) as work:
        alone = work.start("--workers", "1")
        lease = "/apis/coordination.k8s.io/v1/namespaces/argocd/leases/argosy-application-controller"
        work.until(HANG_SECONDS, lambda: work.running.request("GET", lease).code == 200, "it leads")
        second = work.start()
        assert second.process.wait(HANG_SECONDS) == 2
        assert "an unsharded controller runs on this cluster" in second.log()
        alone.end(signal.SIGKILL)
        third = work.start()
        work.until(HANG_SECONDS, lambda: work.are_shared(1), "the dead one is waited for")
        assert third.process.poll() is None
