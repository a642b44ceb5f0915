"""Scenes for crash tests: hooks of all types and policies, waves, pruning, retries, rollbacks, self-heal, deletion."""

from __future__ import annotations

import asyncio
from typing import Any

from argosy.kube.client import Cluster, PatchKind
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from support.deadlines import HANG_SECONDS
from support.engine_crashes import APP, NAMESPACE, Scene, Theatre
from support.sync_operations import WIDGET, config, definition, deployment, finish_jobs, job, manifest, roll_out

JOBS = GroupKind("batch", "Job")
HANDS: dict[str, Any] = {}
FINALIZER = "resources-finalizer.argocd.argoproj.io"
KEPT: dict[str, Any] = {"finalizers": [FINALIZER]}
QUICK_RETRY = {"limit": 2, "backoff": {"duration": "10ms", "factor": 1, "maxDuration": "20ms"}}


def key(name: str, kind: str = "ConfigMap", group: str = "") -> ResourceKey:
    return ResourceKey(group, kind, NAMESPACE, name)


def generated(hook: Manifest) -> Manifest:
    """The same hook with generateName instead of a name."""
    metadata = {name: value for name, value in hook["metadata"].items() if name != "name"}
    return {**hook, "metadata": {**metadata, "generateName": hook["metadata"]["name"]}}


async def by_hand(stage: Theatre) -> None:
    await stage.ask()


async def leaves_state_running(stage: Theatre) -> None:
    """Remove the operation of a running sync, but leave its operationState."""
    state = {"operation": {"sync": {}}, "phase": "Running", "startedAt": "2026-01-01T00:00:00Z", "message": "syncing"}
    await stage.patch({"status": {"operationState": state}})


async def with_prune(stage: Theatre) -> None:
    await stage.ask(prune=True)


async def only_one(stage: Theatre) -> None:
    await stage.ask(resources=[{"kind": "ConfigMap", "name": "b"}])


async def for_show(stage: Theatre) -> None:
    await stage.ask(dryRun=True)


async def applied_only(stage: Theatre) -> None:
    await stage.ask(syncStrategy={"apply": {}})


async def drifts(stage: Theatre) -> None:
    await stage.cluster.patch(key("a"), {"data": {"value": "drifted"}}, kind_of_patch=PatchKind.MERGE)


async def vanishes(stage: Theatre) -> None:
    await stage.cluster.delete(key("a"))


async def is_deleted(stage: Theatre) -> None:
    await stage.cluster.delete(APP)


async def is_deleted_and_loses_its_hooks(stage: Theatre) -> None:
    """The hooks leave Git while the first of them runs."""
    await is_deleted(stage)
    async with stage.engine(), asyncio.timeout(HANG_SECONDS):
        while not (await stage.cluster.list(JOBS)).items:
            await asyncio.sleep(0.003)
    stage.shelf.push([config("a")])


async def back(stage: Theatre) -> None:
    """argo: a rollback is a sync to an earlier revision."""
    first = next(iter(stage.shelf.revisions))
    async with stage.engine() as running:
        await stage.ask(prune=True)
        await running.until(lambda outcome: outcome.deployments == 2)
    await stage.ask(revision=first, prune=True)


async def a_foreign_one_comes(stage: Theatre) -> None:
    await stage.cluster.create({**config("foreign"), "metadata": {"name": "foreign", "namespace": NAMESPACE}})


async def jobs_fail(cluster: Cluster) -> None:
    """Let Jobs fail, except SyncFail hooks."""
    await finish_jobs(cluster, only="sorry")
    await finish_jobs(cluster, well=False)


async def jobs_fail_at_first(cluster: Cluster) -> None:
    """Let the Jobs of the first attempt fail."""
    flag = key("flag")
    if await cluster.get(flag) is None:
        jobs = (await cluster.list(JOBS)).items
        if any(not (job.get("status") or {}).get("conditions") for job in jobs):
            await finish_jobs(cluster, well=False)
            await cluster.create({**config("flag"), "metadata": {"name": "flag", "namespace": NAMESPACE}})
    else:
        await finish_jobs(cluster)
    await roll_out(cluster)


def widget(name: str, **more: Any) -> dict[str, Any]:
    return manifest(WIDGET.kind, name, api="example.com/v1", **more)


SCENES: dict[str, Scene] = {
    "new": Scene([config("a"), config("b")]),
    "new by hand": Scene([config("a"), config("b")], policy=HANDS, act=by_hand),
    "changed": Scene([config("a", "2"), config("b")], before=[config("a"), config("b")]),
    "changed by hand": Scene([config("a", "2")], before=[config("a")], policy=HANDS, act=by_hand),
    "nothing to do": Scene([config("a")], before=[config("a")], policy=HANDS, act=by_hand),
    "phases": Scene([job("pre", hook="PreSync"), config("a"), job("mid", hook="Sync"), job("post", hook="PostSync")]),
    "policies": Scene(
        [
            job("a", hook="PreSync", policy="HookSucceeded"),
            job("b", hook="PreSync", policy="HookFailed", wave=1),
            job("c", hook="Sync", policy="BeforeHookCreation,HookSucceeded"),
            config("x"),
        ]
    ),
    "hooks once more": Scene(
        [job("pre", hook="PreSync"), config("a", "2"), job("post", hook="PostSync", policy="HookSucceeded")],
        before=[job("pre", hook="PreSync"), config("a"), job("post", hook="PostSync")],
    ),
    "hooks of Helm": Scene(
        [
            job("pre", annotations={"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-weight": "-1"}),
            config("a"),
            job("post", annotations={"helm.sh/hook": "post-install", "helm.sh/hook-delete-policy": "hook-succeeded"}),
        ]
    ),
    "generated names": Scene(
        [
            generated(job("check-", hook="PreSync,PostSync")),
            generated(job("tidy-", hook="Sync", policy="HookSucceeded")),
            generated(config("note-", hook="PreSync")),
            config("a"),
        ]
    ),
    "generated names once more": Scene(
        [generated(job("check-", hook="PreSync")), config("a", "2")],
        policy={"automated": {}, "retry": QUICK_RETRY}, world=jobs_fail_at_first,
    ),
    "deletion with generated names": Scene(
        [config("a"), generated(job("bye-", hook="PreDelete", policy="HookSucceeded"))],
        before=[config("a"), generated(job("bye-", hook="PreDelete", policy="HookSucceeded"))],
        metadata=KEPT, act=is_deleted, status="", phase="", is_deleted=True,
    ),
    "removed operation": Scene(
        [job("pre", hook="PreSync"), config("a")],
        policy=HANDS, act=leaves_state_running, status="OutOfSync", phase="Failed",
    ),
    "two phases": Scene([job("both", hook="PreSync,PostSync"), config("a")]),
    "hooks without a Job": Scene([config("pre", hook="PreSync", policy="HookSucceeded"), config("a")]),
    "failure": Scene(
        [job("check", hook="PreSync", policy="HookFailed"), job("sorry", hook="SyncFail"), config("a")],
        policy=HANDS, act=by_hand, world=jobs_fail, status="OutOfSync", phase="Failed",
    ),
    "failure of itself": Scene(
        [job("check", hook="PreSync"), config("a")],
        policy={"automated": {}, "retry": {"limit": 0}}, world=jobs_fail, status="OutOfSync", phase="Failed",
    ),
    "refusal": Scene(
        [config("Bad_Name"), config("a"), job("sorry", hook="SyncFail")],
        policy=HANDS, act=by_hand, status="OutOfSync", phase="Failed",
    ),
    "retry": Scene(
        [job("check", hook="PreSync"), config("a")],
        policy={"automated": {}, "retry": QUICK_RETRY}, world=jobs_fail_at_first,
    ),
    "waves": Scene([deployment("web", wave=0), config("a", wave=1), deployment("late", wave=2), config("b", wave=3)]),
    "waves with hooks": Scene(
        [config("a", wave=-1), job("mid", hook="Sync", wave=0), config("b", wave=1), job("end", hook="PostSync")]
    ),
    "prunes": Scene([config("a")], before=[config("a"), config("b"), config("c", wave=1)], act=a_foreign_one_comes),
    "prunes by hand": Scene(
        [config("a")], before=[config("a"), config("b")], policy=HANDS, act=with_prune
    ),
    "prunes last": Scene(
        [config("a", "2"), job("post", hook="PostSync")], before=[config("a"), config("b", options="PruneLast=true")]
    ),
    "keeps what may not go": Scene(
        [config("a", "2")], before=[config("a"), config("b", options="Prune=false")], status="OutOfSync"
    ),
    "heals": Scene([config("a"), config("b")], before=[config("a"), config("b")], act=drifts),
    "heals what vanished": Scene([config("a"), config("b")], before=[config("a"), config("b")], act=vanishes),
    "heals with hooks": Scene(
        [config("a"), job("pre", hook="PreSync")], before=[config("a"), job("pre", hook="PreSync")], act=drifts
    ),
    "goes back": Scene(
        [config("a", "2"), config("c")], before=[config("a"), config("b")], policy=HANDS, act=back, status="OutOfSync"
    ),
    "one of many": Scene(
        [config("a", "2"), config("b", "2")], before=[config("a"), config("b")], policy=HANDS, act=only_one,
        status="OutOfSync",
    ),
    "for show": Scene([config("a", "2")], before=[config("a")], policy=HANDS, act=for_show, status="OutOfSync"),
    "apply alone": Scene(
        [config("a", "2"), job("pre", hook="PreSync")], before=[config("a")], policy=HANDS, act=applied_only
    ),
    "on the server": Scene(
        [config("a", "2"), config("b", wave=1)], before=[config("a")],
        policy={"automated": {"prune": True}, "syncOptions": ["ServerSideApply=true"]},
    ),
    "replaced": Scene([config("a", "2", options="Replace=true"), config("b", wave=1)], before=[config("a")]),
    "anew": Scene(
        [deployment("web", label="other", options="Force=true,Replace=true"), config("a", wave=1)],
        before=[deployment("web"), config("a")],
    ),
    "namespace": Scene(
        [job("pre", hook="PreSync"), config("a")], has_namespace=False,
        policy={"automated": {}, "syncOptions": ["CreateNamespace=true"],
                "managedNamespaceMetadata": {"labels": {"team": "ml"}}},
    ),
    "kinds": Scene(
        [definition(), widget("w", options="SkipDryRunOnMissingResource=true"), job("post", hook="PostSync")]
    ),
    "out of sync only": Scene(
        [config("a", "2"), config("b")], before=[config("a"), config("b")],
        policy={"automated": {}, "syncOptions": ["ApplyOutOfSyncOnly=true"]},
    ),
    "deletion": Scene(
        [config("a"), config("b", wave=1)], before=[config("a"), config("b", wave=1)], metadata=KEPT, act=is_deleted,
        is_deleted=True, status="", phase="",
    ),
    "deletion with hooks": Scene(
        [config("a"), job("before", hook="PreDelete"), job("after", hook="PostDelete")],
        before=[config("a"), job("before", hook="PreDelete"), job("after", hook="PostDelete")],
        metadata=KEPT, act=is_deleted, is_deleted=True, status="", phase="",
    ),
    "deletion with hooks in waves": Scene(
        [
            job("first", hook="PreDelete", policy="HookSucceeded"), job("second", hook="PreDelete", wave=1),
            config("a"), generated(job("last-", hook="PostDelete", policy="HookSucceeded")),
        ],
        before=[
            job("first", hook="PreDelete", policy="HookSucceeded"), job("second", hook="PreDelete", wave=1),
            config("a"), generated(job("last-", hook="PostDelete", policy="HookSucceeded")),
        ],
        act=is_deleted, is_deleted=True, status="", phase="",
    ),
    "deletion with a hook that fails at first": Scene(
        [config("a"), job("before", hook="PreDelete")], before=[config("a"), job("before", hook="PreDelete")],
        metadata=KEPT, act=is_deleted, is_deleted=True, status="", phase="", world=jobs_fail_at_first,
    ),
    "deletion with hooks that leave Git": Scene(
        [config("a"), job("before", hook="PreDelete"), job("after", hook="PostDelete")],
        before=[config("a"), job("before", hook="PreDelete"), job("after", hook="PostDelete")],
        act=is_deleted_and_loses_its_hooks, is_deleted=True, status="", phase="",
    ),
    "deletion that keeps": Scene(
        [config("a"), config("b", options="Delete=false")], before=[config("a"), config("b", options="Delete=false")],
        metadata=KEPT, act=is_deleted, is_deleted=True, status="", phase="",
    ),
}  # fmt: skip
