"""Crashes of the engine before or after any call to the cluster, and restarts with the last written operation state.

At any point of the crash, the sync ends with the same outcome, and no hook runs twice, is skipped or is left behind.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import pytest

from argosy import annotations as names
from argosy.annotations import HOOK_FINALIZER
from argosy.errors import ArgosyError, ClusterError, TransientError
from argosy.gitops.application import OperationPhase, OperationState, SyncRequest
from argosy.gitops.sync.effective_apply_and_prune_options import SyncSettings
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.crashing_client import Crash, CrashingCluster
from support.proof_scale import is_full
from support.sync_operations import (
    LISTED,
    NAMESPACE,
    Stage,
    all_goes_well,
    config,
    definition,
    deployment,
    finish_jobs,
    job,
    manifest,
)
from support.tiers import IN_TEST_ALL_AND_PROVE

JOBS = LISTED[2]


async def jobs_fail(cluster: Cluster) -> None:
    """Let Jobs fail, except SyncFail hooks."""
    await finish_jobs(cluster, only="sorry")
    await finish_jobs(cluster, well=False)


async def jobs_are_tidied_up(cluster: Cluster) -> None:
    """Delete Jobs as soon as they have finished, as Kubernetes does if they have a TTL."""
    await finish_jobs(cluster)
    for live_job in (await cluster.list(JOBS)).items:
        if not live_job["metadata"].get("deletionTimestamp"):
            await cluster.delete(key_of(live_job))


@dataclass(frozen=True)
class Scene:
    desired: list[Manifest]
    before: tuple[Manifest, ...] = ()  # manifests of the previous operation
    more: Any = None
    progress: OperationPhase = OperationPhase.SUCCEEDED
    world: Callable[[Cluster], Awaitable[None]] = all_goes_well


PRUNE = {"request": SyncRequest(prune=True)}
SCENES = {
    "phases": Scene([job("pre", hook="PreSync"), config("a"), job("post", hook="PostSync")]),
    "policies": Scene(
        [
            job("a", hook="PreSync", policy="HookSucceeded"),
            job("b", hook="PreSync", policy="HookFailed", wave=1),
            job("c", hook="Sync", policy="BeforeHookCreation,HookSucceeded"),
            config("x"),
        ]
    ),
    "once more": Scene(
        [job("pre", hook="PreSync"), config("a", "2"), job("post", hook="PostSync", policy="HookSucceeded")],
        before=(job("pre", hook="PreSync"), config("a"), job("post", hook="PostSync")),
    ),
    "two phases": Scene([job("both", hook="PreSync,PostSync"), config("a")]),
    "tidied up": Scene(
        [job("pre", hook="PreSync"), config("a"), job("post", hook="PostSync")], world=jobs_are_tidied_up
    ),
    "failure": Scene(
        [job("check", hook="PreSync", policy="HookFailed"), job("sorry", hook="SyncFail"), config("a")],
        progress=OperationPhase.FAILED,
        world=jobs_fail,
    ),
    "refusal": Scene(
        [config("Bad_Name"), config("a"), job("sorry", hook="SyncFail", policy="HookFailed")],
        progress=OperationPhase.FAILED,
    ),
    "waves": Scene([deployment("web", wave=0), config("a", wave=1), deployment("late", wave=2), config("b", wave=3)]),
    "pauses": Scene(
        [config("a", wave=0), job("mid", hook="Sync", wave=1), config("b", wave=2)],
        more={"settings": SyncSettings(wave_delay_seconds=2)},
    ),
    "prunes": Scene(
        [config("a"), job("post", hook="PostSync")],
        before=(config("a"), config("b", wave=1), config("c", wave=2)),
        more=PRUNE,
    ),
    "anew": Scene(
        [deployment("web", label="other", options="Force=true,Replace=true"), config("a", wave=1)],
        before=(deployment("web"), config("a")),
    ),
    "on the server": Scene(
        [config("a", "2"), config("b", wave=1)], before=(config("a"),), more={"options": ("ServerSideApply=true",)}
    ),
    "kinds": Scene([definition(), manifest("Widget", "w", api="example.com/v1"), job("post", hook="PostSync")]),
    "namespace": Scene([job("pre", hook="PreSync"), config("a")], more={"options": ("CreateNamespace=true",)}),
}


@dataclass(frozen=True)
class Outcome:
    progress: OperationPhase
    hooks: dict[str, str]
    standing: dict[str, list[str]]
    runs: Counter[str]
    calls: int


Engine = Callable[[Cluster], CrashingCluster]


def remembers(stage: Stage) -> None:
    """After a crash, the engine knows everything that was written."""


def forgets(stage: Stage) -> None:
    """A planted bug: after a crash, the engine starts the operation again."""
    stage.begin("2026-01-01T02:00:00Z")


async def played(
    scene: Scene,
    engine: Engine,
    *,
    lags: bool = False,
    lives_again: Engine | None = None,
    knows: Callable[[Stage], None] = remembers,
) -> Outcome:
    """Run a scene. `lives_again` builds the cluster client after a crash; without it, there is no further crash."""
    async with EmbeddedCluster.open() as cluster:
        if "CreateNamespace=true" not in (scene.more or {}).get("options", ()):
            await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        stage = Stage(cluster, scene.desired, world=scene.world, lags=lags, **(scene.more or {}))
        if scene.before:
            await Stage(cluster, list(scene.before)).finish()
            stage = stage.again()
        stage.engine = first = engine(cluster)
        stage.begin("2026-01-01T01:00:00Z")
        while True:
            try:
                state = await stage.finish()
                break
            except Crash:
                await scene.world(cluster)
                again = lives_again(cluster) if lives_again else CrashingCluster(cluster)
                again.created = first.created
                stage.engine, stage.seen = again, None
                knows(stage)
            except TransientError:
                pass
        return Outcome(
            state.phase,
            {f"{result.key.name}@{result.phase}": str(result.hook_phase) for result in state.results if result.hook},
            {kind.kind: await stage.names(kind) for kind in LISTED[:3]},
            Counter(_run(created_manifest) for created_manifest in first.created if _run(created_manifest)),
            len(first.calls),
        )


def _run(created_manifest: Manifest) -> str:
    mark = (created_manifest["metadata"].get("annotations") or {}).get(names.OPERATION)
    return f"{created_manifest['metadata']['name']} {mark}" if mark else ""


async def check_every_point(
    name: str, *, is_fatal: bool, lags: bool, knows: Callable[[Stage], None] = remembers
) -> None:
    scene = SCENES[name]
    whole = await played(scene, CrashingCluster, lags=lags)
    assert whole.progress is scene.progress
    assert set(whole.runs.values()) <= {1}
    for point in range(whole.calls):
        # One crash for each call, alternately before and after it; in `make prove` both.
        for after in (False, True) if is_full() else (point % 2 == is_fatal,):
            engine = partial(CrashingCluster, point=point, after=after, is_fatal=is_fatal)
            outcome = await played(scene, engine, lags=lags, knows=knows)
            where = f"{name}: {'after' if after else 'before'} call {point}"
            assert outcome.progress is whole.progress, where
            assert outcome.runs == whole.runs, where
            assert outcome.hooks == whole.hooks, where
            assert outcome.standing == whole.standing, where


def rows(*in_make_test: str) -> list[Any]:
    """All scenes; only the named ones run in `make test`."""
    return [pytest.param(name, id=name, marks=() if name in in_make_test else IN_TEST_ALL_AND_PROVE) for name in SCENES]


@pytest.mark.tier("test", "prove")
@pytest.mark.parametrize("name", rows("phases"))
async def test_sync_killed_at_any_call_ends_with_the_same_outcome(name: str) -> None:
    await check_every_point(name, is_fatal=True, lags=False)


@pytest.mark.tier("test", "prove")
@pytest.mark.parametrize("name", rows("failure"))
async def test_lost_connection_with_stale_cache_does_not_change_outcome(name: str) -> None:
    await check_every_point(name, is_fatal=False, lags=True)


@pytest.mark.tier("test", "prove")
async def test_crash_check_detects_engine_that_restarts_operation() -> None:
    with pytest.raises(AssertionError, match=r"^phases: (before|after) call \d+"):
        await check_every_point("phases", is_fatal=True, lags=False, knows=forgets)


@pytest.mark.tier("all")
@pytest.mark.parametrize("name", SCENES)
async def test_sync_killed_repeatedly_ends_with_the_same_outcome(name: str) -> None:
    scene = SCENES[name]
    whole = await played(scene, CrashingCluster)
    for seed in range(8):
        chance = random.Random(seed)

        def mortal(cluster: Cluster, chance: random.Random = chance) -> CrashingCluster:
            return CrashingCluster(cluster, chance.randrange(20), after=chance.random() < 0.5)

        outcome = await played(scene, mortal, lives_again=mortal)
        assert (outcome.progress, outcome.runs, outcome.hooks, outcome.standing) == (
            whole.progress, whole.runs, whole.hooks, whole.standing,
        ), f"{name}: seed {seed}"  # fmt: skip


class Stumbling:
    """A cluster client whose first read of each Job fails, as during an etcd leader election."""

    def __init__(self, inner: Cluster) -> None:
        self._inner, self._stumbled = inner, set[ResourceKey]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def get(self, key: ResourceKey, **more: Any) -> Manifest | None:
        if key.kind == "Job" and key not in self._stumbled:
            self._stumbled.add(key)
            raise ClusterError("etcdserver: leader changed", code=500, key=key)
        return await self._inner.get(key, **more)


async def stumbled(stage: Stage) -> OperationState:
    """Run one step that fails by a read error, then finish the sync."""
    stage.engine = cast("Cluster", Stumbling(stage.cluster))
    with pytest.raises(ArgosyError, match="leader changed"):
        await stage.step()
    return await stage.finish()


async def test_temporary_read_error_of_hook_does_not_fail_sync() -> None:
    async with EmbeddedCluster.open() as cluster:
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        manifests = [job("one", hook="PreSync"), job("two", hook="PreSync"), config("a"), job("sorry", hook="SyncFail")]
        stage = Stage(cluster, manifests)
        await stage.step()
        await finish_jobs(cluster)
        state = await stumbled(stage)
        assert state.phase is OperationPhase.SUCCEEDED and await stage.names(JOBS) == ["one", "two"]


async def test_termination_deletes_hook_after_temporary_read_error() -> None:
    async with EmbeddedCluster.open() as cluster:
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        stage = Stage(cluster, [job("one", hook="PreSync"), config("a")])
        stage.state = replace((await stage.step()).state, phase=OperationPhase.TERMINATING)
        state = await stumbled(stage)
        assert (state.phase, state.message) == (OperationPhase.FAILED, "Operation terminated")
        assert await stage.names(JOBS) == []


async def test_apply_out_of_sync_only_awaits_objects_applied_just_before_a_crash() -> None:
    async def nothing_happens(_: Cluster) -> None:
        pass

    async with EmbeddedCluster.open() as cluster:
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        manifests, options = [deployment("web"), config("after", wave=1)], ("ApplyOutOfSyncOnly=true",)
        stage = Stage(cluster, manifests, options=options, world=nothing_happens)
        stage.begin(datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"))
        await stage.step()
        stage.state = replace(stage.state or stage.begin(), results=())  # its results were never written
        answer = await stage.step()
        assert answer.state.message == "waiting for healthy state of apps/Deployment/web"
        assert "after" not in await stage.names()


@pytest.mark.tier("all")
async def test_termination_killed_at_any_call_ends_with_the_same_outcome() -> None:
    async def played(point: int | None, *, after: bool) -> tuple[Any, ...]:
        async with EmbeddedCluster.open() as cluster:
            await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            stage = Stage(cluster, [job("one", hook="PreSync"), job("two", hook="PreSync"), config("a")])
            state = (await stage.step()).state
            stage.state = replace(state, phase=OperationPhase.TERMINATING)
            stage.engine = engine = CrashingCluster(cluster, point, after=after)
            try:
                state = await stage.finish()
            except Crash:
                stage.engine = None
                state = await stage.finish()
            items = (await cluster.list(JOBS)).items
            left = [item for item in items if HOOK_FINALIZER in item["metadata"].get("finalizers", ())]
            return state.phase, state.message, await stage.names(JOBS), left, len(engine.calls)

    *whole, calls = await played(None, after=False)
    assert whole == [OperationPhase.FAILED, "Operation terminated", [], []]
    for point in range(calls):
        for after in (False, True):
            *end_state, _ = await played(point, after=after)
            assert end_state == whole, f"{'after' if after else 'before'} call {point}"
