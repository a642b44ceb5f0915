"""Task order of a sync: phases, waves, kinds and names; prune waves; hooks; namespace creation."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.gitops.application import Application, Destination, SyncPhase, SyncPolicy, SyncRequest, read_application
from argosy.gitops.application.step_results import AppComparison, Pair, PlannedTask
from argosy.gitops.sync.sync_options import SyncOptions
from argosy.gitops.sync.sync_plan import OperationContext, plan_tasks
from argosy.gitops.sync.task_order import sort_tasks
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from support.examples import examples

STARTED = "2026-01-01T00:00:00Z"


def manifest(
    kind: str, name: str, namespace: str = "", api: str = "v1", wave: int | None = None, **more: Any
) -> Manifest:
    metadata: dict[str, Any] = {"name": name} | ({"namespace": namespace} if namespace else {})
    if wave is not None:
        metadata["annotations"] = {"argocd.argoproj.io/sync-wave": str(wave)}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def task(
    kind: str, name: str = "x", *, phase: SyncPhase = SyncPhase.SYNC, wave: int = 0, prune: bool = False, **more: Any
) -> PlannedTask:
    resource = manifest(kind, name, **more)
    return PlannedTask(key_of(resource), phase, wave, None if prune else resource, resource if prune else None)


def names(tasks: list[PlannedTask]) -> list[str]:
    return [f"{item.key.kind}/{item.key.name}" for item in tasks]


def test_tasks_are_sorted_by_phase_wave_kind_and_name() -> None:
    tasks = [
        task("Pod", phase=SyncPhase.POST_SYNC, wave=-9),
        task("Deployment", "b", api="apps/v1"),
        task("Deployment", "a", api="apps/v1"),
        task("Service"),
        task("Widget", api="example.com/v1"),
        task("ConfigMap", wave=-1),
        task("Job", api="batch/v1", phase=SyncPhase.PRE_SYNC, wave=7),
        task("Secret", phase=SyncPhase.SYNC_FAIL),
    ]
    random.Random(1).shuffle(tasks)
    assert names(sort_tasks(tasks)) == [
        "Job/x", "ConfigMap/x", "Service/x", "Deployment/a", "Deployment/b", "Widget/x", "Pod/x", "Secret/x",
    ]  # fmt: skip


def test_namespace_is_created_before_its_first_object() -> None:
    ordered = sort_tasks([task("Namespace", "ml", wave=5), task("ConfigMap", namespace="ml", wave=-2), task("Secret")])
    assert names(ordered) == ["Namespace/ml", "ConfigMap/x", "Secret/x"]
    assert ordered[0].wave == -2


def test_namespace_is_created_before_a_presync_hook_in_it() -> None:
    ordered = sort_tasks(
        [task("Namespace", "ml"), task("Job", api="batch/v1", namespace="ml", phase=SyncPhase.PRE_SYNC)]
    )
    assert names(ordered) == ["Namespace/ml", "Job/x"]
    assert ordered[0].phase is SyncPhase.PRE_SYNC


def test_crd_is_applied_before_its_custom_resources() -> None:
    spec = {"group": "example.com", "names": {"kind": "Widget"}}
    definition = task("CustomResourceDefinition", "w", api="apiextensions.k8s.io/v1", wave=3, spec=spec)
    ordered = sort_tasks(
        [definition, task("Widget", api="example.com/v1", wave=1), task("Gadget", api="example.com/v1")]
    )
    assert names(ordered) == ["Gadget/x", "CustomResourceDefinition/w", "Widget/x"]


def test_pruned_namespace_keeps_its_wave() -> None:
    ordered = sort_tasks([task("Namespace", "ml", prune=True, wave=2), task("ConfigMap", namespace="ml", wave=1)])
    assert names(ordered) == ["ConfigMap/x", "Namespace/ml"]


TASKS = st.lists(
    st.builds(
        task,
        st.sampled_from(["Namespace", "ConfigMap", "Deployment", "Widget", "Job"]),
        st.sampled_from(["a", "b", "ml"]),
        phase=st.sampled_from([SyncPhase.PRE_SYNC, SyncPhase.SYNC, SyncPhase.POST_SYNC]),
        wave=st.integers(-3, 3),
        prune=st.booleans(),
        namespace=st.sampled_from(["", "ml", "a"]),
    ),
    max_size=12,
    unique_by=lambda planned_task: (planned_task.key, planned_task.phase),
)


@settings(max_examples=examples())
@given(TASKS, st.randoms())
def test_sorting_keeps_all_tasks_and_ignores_input_order(tasks: list[PlannedTask], chance: random.Random) -> None:
    ordered = sort_tasks(tasks)
    assert sorted(map(str, (item.key for item in ordered))) == sorted(map(str, (item.key for item in tasks)))
    shuffled = list(tasks)
    chance.shuffle(shuffled)
    assert sort_tasks(shuffled) == ordered


# -- from a comparison to tasks ------------------------------------------------------------------------------------


def extra(name: str, wave: int) -> Pair:
    live = manifest("ConfigMap", name, "ml", wave=wave)
    return Pair(key_of(live), None, live, differs=True)


def planned(
    comparison: AppComparison, *, options: tuple[str, ...] = (), live: Any = None, **request: Any
) -> list[PlannedTask]:
    app = Application(name="models", uid="u", destination=Destination(namespace="ml"), policy=SyncPolicy())
    occasion = OperationContext(app, "0123456789", STARTED)
    return plan_tasks(comparison, SyncRequest(**request), occasion, SyncOptions.from_lists(options), live or {})


@pytest.mark.parametrize(
    ("waves", "expected"),
    [
        ([0, 1, 2], {0: 2, 1: 1, 2: 0}),
        ([1, 2, 8, 9], {1: 9, 2: 8, 8: 2, 9: 1}),
        ([-3, 0, 5], {-3: 5, 0: 0, 5: -3}),
        ([4], {4: 4}),
        ([1, 2], {1: 2, 2: 1}),
    ],
)
def test_prune_waves_are_mirrored(waves: list[int], expected: dict[int, int]) -> None:
    tasks = planned(AppComparison([extra(f"w{wave}", wave) for wave in waves]))
    assert {int(item.key.name[1:]): item.wave for item in tasks} == expected


def test_prune_last_runs_after_every_wave() -> None:
    late = manifest("ConfigMap", "late", "ml", wave=0)
    late["metadata"]["annotations"]["argocd.argoproj.io/sync-options"] = "PruneLast=true"
    desired = manifest("ConfigMap", "wanted", "ml", wave=4)
    pairs = [Pair(key_of(late), None, late, True), Pair(key_of(desired), desired, None, True)]
    assert [(item.key.name, item.wave) for item in planned(AppComparison(pairs))] == [("wanted", 4), ("late", 5)]
    everywhere = planned(AppComparison([extra("a", -3), extra("b", 7)]), options=("PruneLast=true",))
    assert {item.wave for item in everywhere} == {8}


def hook(**annotations: str) -> Manifest:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": "migrate-", "namespace": "ml", "annotations": annotations},
    }


def test_hook_has_one_task_with_its_own_name_in_each_phase() -> None:
    tasks = planned(AppComparison(hooks=[hook(**{"argocd.argoproj.io/hook": "PreSync,PostSync"})]))
    assert [(item.phase, item.key.name) for item in tasks] == [
        (SyncPhase.PRE_SYNC, "migrate-0123456-presync-1767225600"),
        (SyncPhase.POST_SYNC, "migrate-0123456-postsync-1767225600"),
    ]
    assert all("argocd.argoproj.io/hook-finalizer" in (item.desired or {})["metadata"]["finalizers"] for item in tasks)


def test_partial_sync_and_apply_strategy_run_no_hooks() -> None:
    given_hook = hook(**{"argocd.argoproj.io/hook": "Sync"})
    desired = manifest("ConfigMap", "c", "ml")
    comparison = AppComparison([Pair(key_of(desired), desired, None, True)], hooks=[given_hook])
    assert len(planned(comparison)) == 2
    assert names(planned(comparison, runs_hooks=False)) == ["ConfigMap/c"]
    assert names(planned(comparison, resources=(ResourceKey("", "ConfigMap", "", "c"),))) == ["ConfigMap/c"]
    assert planned(comparison, resources=(ResourceKey("apps", "ConfigMap", "", "c"),)) == []
    assert planned(comparison, resources=(ResourceKey("", "ConfigMap", "other", "c"),)) == []


def test_hook_names_are_stable_within_an_operation() -> None:
    given_hook = hook(**{"argocd.argoproj.io/hook": "Sync"})
    app = Application(name="models", uid="u", destination=Destination(namespace="ml"))
    first, again, later = (
        plan_tasks(
            AppComparison(hooks=[given_hook]), SyncRequest(), OperationContext(app, "abc", started), SyncOptions(), {}
        )
        for started in (STARTED, STARTED, "2026-01-01T00:00:01Z")
    )
    assert first == again != later


def test_create_namespace_option_creates_a_missing_namespace_first() -> None:
    desired = manifest("ConfigMap", "c", "ml", wave=-5)
    comparison = AppComparison([Pair(key_of(desired), desired, None, True)])
    assert names(planned(comparison, options=("CreateNamespace=true",))) == ["Namespace/ml", "ConfigMap/c"]
    there = {ResourceKey("", "Namespace", "", "ml"): manifest("Namespace", "ml")}
    assert names(planned(comparison, options=("CreateNamespace=true",), live=there)) == ["ConfigMap/c"]
    assert names(planned(comparison)) == ["ConfigMap/c"]


def test_managed_namespace_metadata_uses_server_side_apply() -> None:
    policy = {
        "syncPolicy": {"managedNamespaceMetadata": {"labels": {"team": "ml"}}},
        "destination": {"namespace": "ml"},
    }
    app = read_application({"metadata": {"name": "a"}, "spec": policy})
    there = {ResourceKey("", "Namespace", "", "ml"): manifest("Namespace", "ml")}
    options = SyncOptions.from_lists(["CreateNamespace=true"])
    tasks = plan_tasks(AppComparison(), SyncRequest(), OperationContext(app, "abc", STARTED), options, there)
    assert tasks[0].desired is not None
    assert tasks[0].desired["metadata"]["labels"] == {"team": "ml"}
    assert tasks[0].desired["metadata"]["annotations"] == {"argocd.argoproj.io/sync-options": "ServerSideApply=true"}
