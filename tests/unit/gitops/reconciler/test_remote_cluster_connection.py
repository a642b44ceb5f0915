"""The connection to a remote cluster: failures in the background do not go unnoticed."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from argosy.errors import ClusterError, cluster_error_from_status
from argosy.gitops.live import TrackingSettings
from argosy.gitops.policy.destination_cluster_lookup import KnownCluster
from argosy.gitops.reconciler import remote_cluster_connection
from argosy.gitops.reconciler.app_memo import AppMemos
from argosy.kube.client.connection_settings import Connection
from argosy.kube.controller import Clock, InformerCache
from argosy.kube.controller.clock import SYSTEM_CLOCK
from argosy.kube.controller.cluster_liveness import PROBE_TIMEOUT_SECONDS, LivenessProbe
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS
from support.engine import LeapingClock


class Unreadable:
    """Settings from which the watched kinds cannot be determined."""

    def current_settings(self) -> Any:
        return SimpleNamespace(tracking=TrackingSettings())

    def localize_settings(self, *_: object) -> NoReturn:
        raise KeyError("rules")


class Halved(EmbeddedCluster):
    """A cluster that, like its authorizer, responds from memory only: reads from the store hang or are refused."""

    def __init__(self, plane: ControlPlane, refused: ClusterError | None = None) -> None:
        super().__init__(plane)
        self.refused, self.asked = refused, ""

    async def get(self, key: ResourceKey) -> Manifest | None:
        self.asked = key.name
        if self.refused is not None:
            raise self.refused
        return await asyncio.Future()


def build_remote_cluster(*namespaces: str, clock: Clock = SYSTEM_CLOCK) -> remote_cluster_connection.RemoteCluster:
    cluster, nothing = KnownCluster("far", "https://far.example", "far", namespaces=namespaces), lambda *_: None
    settings: Any = Unreadable()
    desired_states: Any = None
    return remote_cluster_connection.RemoteCluster(
        cluster,
        lambda: Connection(cluster.server),
        settings,
        desired_states,
        AppMemos(),
        InformerCache(),
        clock,
        (),
        nothing,
    )


async def test_connection_ends_when_its_cache_is_no_longer_filled() -> None:
    async with ControlPlane.open() as plane:
        with pytest.raises(KeyError, match="rules"):
            await asyncio.wait_for(build_remote_cluster()._run_connected(EmbeddedCluster(plane)), HANG_SECONDS)


async def test_cluster_whose_store_hangs_is_reported_as_not_answering() -> None:
    clock = LeapingClock()
    async with ControlPlane.open() as plane:
        post, cluster = build_remote_cluster(clock=clock), Halved(plane)
        holding = asyncio.create_task(post._run_connected(cluster))
        async with asyncio.timeout(HANG_SECONDS):
            while not post.problem and not holding.done():
                await asyncio.sleep(0.01)
                clock.leap(PROBE_TIMEOUT_SECONDS)
        assert post.destination is None and cluster.asked == "kube-system"
        assert post.problem == "cluster far (https://far.example): did not answer in time"
        holding.cancel()
        await asyncio.wait({holding})


@pytest.mark.parametrize("code", [403, 404])
async def test_forbidden_or_not_found_probe_counts_as_an_answer(code: int) -> None:
    async with ControlPlane.open() as plane:
        cluster = Halved(plane, cluster_error_from_status({"code": code}))
        with pytest.raises(KeyError, match="rules"):  # the cache is being filled
            await asyncio.wait_for(build_remote_cluster("ml", "other")._run_connected(cluster), HANG_SECONDS)
        assert cluster.asked == "ml"


async def test_failed_liveness_probe_is_reported_as_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ends(self: LivenessProbe) -> None:
        raise RuntimeError("no clock")

    monkeypatch.setattr(LivenessProbe, "run", ends)
    post = build_remote_cluster()
    running = asyncio.create_task(post.run())
    async with asyncio.timeout(HANG_SECONDS):
        while not post.problem:
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait({running})
    assert post.problem == ("cluster far (https://far.example): unexpected error; see the log of the controller")
