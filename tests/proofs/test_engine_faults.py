"""Sync engine under faults: rejected calls, lost responses, broken watches, Git outages, removed and reset branches.

After any fault the cluster converges to the state in Git, and no sync attempt creates a hook twice.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from argosy import annotations as names
from argosy.errors import ClusterError, Conflict, Gone, SourceUnreachable, TransientError, UnknownRef
from argosy.gitops.sync.task_states import SyncTask
from support.deadlines import wait_until_async
from support.engine_crashes import APP, Outcome, Running, Scene, Theatre, straight, theatre
from support.engine_histories import SCENES, jobs_fail_at_first

pytestmark = [pytest.mark.anyio, pytest.mark.tier("test", "prove")]
PATIENT = {"limit": 50, "backoff": {"duration": "10ms", "factor": 1, "maxDuration": "20ms"}}
IN_A_PLAY = 6  # faults
REFUSALS: dict[str, Callable[[], Exception]] = {
    "500": lambda: ClusterError("the server is ill", code=500, reason="InternalError"),
    "429": lambda: ClusterError("too many requests", code=429, reason="TooManyRequests"),
    "409": lambda: Conflict("somebody was quicker", reason="Conflict"),
    "503": lambda: ClusterError("the server is going away", code=503, reason="ServiceUnavailable"),
    "reset": lambda: TransientError("connection reset"),
}
LOST: dict[str, Callable[[], Exception]] = {  # the call succeeded, but its response was lost
    "500 after": REFUSALS["500"],
    "reset after": REFUSALS["reset"],
}
WATCHES: dict[str, Callable[[], Exception]] = {
    "watch reset": REFUSALS["reset"],
    "watch too old": lambda: Gone("that is too long ago", reason="Expired"),
}
HOSTS: dict[str, Callable[[], Exception]] = {
    "away": lambda: SourceUnreachable("no route to host", where="git.example.com"),
    "branch gone": lambda: UnknownRef("there is no branch", where="git.example.com"),
}


@dataclass
class Faults:
    """Injects random faults, up to a fixed number."""

    rng: random.Random
    left: int = IN_A_PLAY
    struck: Counter[str] = field(default_factory=Counter)

    def strike(self, kinds: dict[str, Callable[[], Exception]], chance: float) -> Exception | None:
        if self.left <= 0 or self.rng.random() >= chance:
            return None
        self.left -= 1
        name = self.rng.choice(list(kinds))
        self.struck[name] += 1
        return kinds[name]()

    def of_cluster(self, call: str, after: bool) -> Exception | None:
        if call == "watch":
            return self.strike(WATCHES, 0.02)
        return self.strike(LOST if after else REFUSALS, 0.15)

    def of_host(self, ref: str) -> Exception | None:
        return self.strike(HOSTS, 0.1)


def patient(scene: Scene) -> Scene:
    """The scene with a sync policy that retries failed syncs often enough."""
    return scene if scene.is_deleted else replace(scene, policy={**scene.policy, "retry": PATIENT})


def chosen() -> dict[str, Scene]:
    """Scenes that reach their final state without user action, and in which no hook fails and so is created again."""
    return {
        name: patient(scene)
        for name, scene in SCENES.items()
        if scene.world is not jobs_fail_at_first
        and (scene.is_deleted or (scene.status == "Synced" and "automated" in scene.policy))
    }


def moved(scene: Scene) -> list[dict[str, object]]:
    """The manifests that a force-push temporarily puts in place of the desired ones."""
    manifests = copy.deepcopy(list(scene.desired))
    for manifest in manifests:
        if "data" in manifest and names.HOOK not in manifest["metadata"].get("annotations", {}):
            manifest["data"] = {"value": "forced"}
    return manifests


def has_generated_names(scene: Scene) -> bool:
    """True if hooks have generated names: these contain the commit and remain, so a force-push would leave traces."""
    return any("generateName" in manifest["metadata"] for manifest in scene.desired)


async def force_push(stage: Theatre, running: Running, rng: random.Random) -> None:
    original_head = stage.shelf.head
    stage.shelf.push(moved(stage.scene))
    running.engine.queue.add(APP)
    await asyncio.sleep(rng.random() * 0.03)
    stage.shelf.head = original_head


async def go_on(running: Running) -> None:
    """Trigger reconciliation repeatedly, as a webhook or timer does."""
    while True:
        running.engine.queue.add(APP)
        await asyncio.sleep(0.05)


def is_as_wanted(outcome: Outcome, expected: Outcome) -> bool:
    """True if the outcomes are equal except for the number of deployments and hook runs."""
    return replace(outcome, runs={}, deployments=0) == replace(expected, runs={}, deployments=0)


async def play(scene: Scene, expected: Outcome, rng: random.Random) -> Counter[str]:
    async with theatre(scene) as stage, stage.engine() as running:
        faults = Faults(rng)
        running.cluster.fault, stage.shelf.trouble = faults.of_cluster, faults.of_host
        if not scene.is_deleted and rng.random() < 0.3 and not has_generated_names(scene):
            await force_push(stage, running, rng)
            faults.struck["force-push"] += 1
        asking = asyncio.create_task(go_on(running))
        try:
            await running.until(lambda outcome: is_as_wanted(outcome, expected))
        finally:
            asking.cancel()
        twice = [mark for mark, count in marks(stage).items() if count > 1]
        assert not twice, f"made twice: {twice}"
        return faults.struck


def marks(stage: Theatre) -> Counter[str]:
    """Counts created hooks by name and by the operation that created them."""
    hook_metadata = [manifest["metadata"] for manifest in stage.made.values()]
    hook_marks = [
        (metadata["name"], (metadata.get("annotations") or {}).get(names.OPERATION)) for metadata in hook_metadata
    ]
    return Counter(f"{name} {mark}" for name, mark in hook_marks if mark)


async def test_engine_converges_after_faults_and_creates_no_hook_twice(
    size: Callable[..., int], rng: random.Random
) -> None:
    scenes, outcomes = chosen(), dict[str, Outcome]()
    assert len(scenes) >= 20
    struck: Counter[str] = Counter()
    plays, target_count = 0, size(3000, test=10)
    while struck.total() < target_count:
        seed = rng.getrandbits(64)
        own = random.Random(seed)
        name = own.choice(list(scenes))
        outcomes[name] = outcomes.get(name) or (await straight(scenes[name]))[0]
        try:
            struck += await play(scenes[name], outcomes[name], own)
        except AssertionError as error:
            raise AssertionError(f"{name}, seed {seed}: wanted {outcomes[name]}, but {error}") from error
        plays += 1
        assert plays < 10 * target_count
    print(dict(struck), f"in {plays} plays")


async def test_proof_detects_an_engine_that_does_not_recognize_its_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validates the proof: without recognizing its own hook, the engine repeats a create whose response was lost."""
    scene = patient(SCENES["phases"])
    monkeypatch.setattr(SyncTask, "is_own_hook", False)
    async with theatre(scene) as stage, stage.engine() as running:
        running.cluster.fault = lambda call, after: (
            LOST["reset after"]() if after and call == "create Job/pre" else None
        )
        asking = asyncio.create_task(go_on(running))

        async def is_made_twice() -> bool:
            await scene.world(stage.cluster)
            return max(marks(stage).values(), default=0) > 1

        await wait_until_async(is_made_twice, "a hook is made twice")
        asking.cancel()
