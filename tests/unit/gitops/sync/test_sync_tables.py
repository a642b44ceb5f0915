"""Argo CD's sync order as tables: kinds, phases, waves, hook names, mirrored prune waves, namespaces and CRDs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from argosy.annotations import TRACKING_ID
from argosy.gitops.application import Application, Destination, SyncPhase, SyncRequest, read_application
from argosy.gitops.application.step_results import AppComparison, Pair, PlannedTask
from argosy.gitops.application.sync_annotations import is_hook, is_skipped, list_hook_phases
from argosy.gitops.sync.sync_options import SyncOptions
from argosy.gitops.sync.sync_plan import OperationContext, plan_tasks
from argosy.gitops.sync.task_order import sort_tasks
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey

KINDS = [
    "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy", "PodDisruptionBudget",
    "ServiceAccount", "Secret", "SecretList", "ConfigMap", "StorageClass", "PersistentVolume",
    "PersistentVolumeClaim", "CustomResourceDefinition", "ClusterRole", "ClusterRoleList", "ClusterRoleBinding",
    "ClusterRoleBindingList", "Role", "RoleList", "RoleBinding", "RoleBindingList", "Service", "DaemonSet", "Pod",
    "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob",
    "IngressClass", "Ingress", "APIService",
]  # fmt: skip
PRE, SYNC, POST, FAIL = SyncPhase.PRE_SYNC, SyncPhase.SYNC, SyncPhase.POST_SYNC, SyncPhase.SYNC_FAIL
STARTED = "2026-01-01T00:00:00Z"


def manifest(kind: str, name: str = "x", namespace: str = "", api: str = "v1", **annotations: str) -> Manifest:
    written = {f"argocd.argoproj.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
    metadata: dict[str, Any] = {"name": name, "annotations": written}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api, "kind": kind, "metadata": metadata}


def task(
    kind: str, name: str = "x", *, phase: SyncPhase = SYNC, wave: int = 0, prune: bool = False, **more: Any
) -> PlannedTask:
    resource = manifest(kind, name, **more)
    return PlannedTask(key_of(resource), phase, wave, None if prune else resource, resource if prune else None)


def shuffled(tasks: list[PlannedTask]) -> list[PlannedTask]:
    mixed = list(tasks)
    random.Random(7).shuffle(mixed)
    return mixed


# -- kinds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prune", [False, True], ids=["applied", "pruned"])
def test_kinds_are_in_argo_cd_order_and_unlisted_kinds_come_last(prune: bool) -> None:
    tasks = [task(kind, "z", prune=prune) for kind in KINDS] + [task("Widget", "b", prune=prune, api="example.com/v1")]
    assert [planned_task.key.kind for planned_task in sort_tasks(shuffled(tasks))] == [*KINDS, "Widget"]


def test_unlisted_kinds_are_sorted_by_name() -> None:
    tasks = [task(kind, name, api=f"{group}.com/v1") for kind, name, group in ("Wca", "Abz", "Gam")]
    assert [planned_task.key.name for planned_task in sort_tasks(tasks)] == ["a", "b", "c"]


def test_kind_order_ignores_the_api_group() -> None:
    tasks = [task("Service", "b", api="serving.knative.dev/v1"), task("Service", "a"), task("Pod"), task("Widget", "0")]
    assert [(planned_task.key.group, planned_task.key.kind) for planned_task in sort_tasks(shuffled(tasks))] == [
        ("", "Service"), ("serving.knative.dev", "Service"), ("", "Pod"), ("", "Widget"),
    ]  # fmt: skip


# -- phases, waves, names --------------------------------------------------------------------------------------------

IN_ORDER = [
    task("Job", "a", phase=PRE, wave=-1),
    task("Widget", "a", phase=PRE, wave=9),
    task("Namespace", "n", phase=SYNC, wave=-10),
    task("APIService", "a", phase=SYNC, wave=-10),
    task("ConfigMap", "a", phase=SYNC, wave=0),
    task("ConfigMap", "b", phase=SYNC, wave=0),
    task("Pod", "a", phase=SYNC, wave=0),
    task("Namespace", "late", phase=SYNC, wave=1),
    task("Namespace", "post", phase=POST, wave=-99),
    task("Job", "a", phase=POST, wave=0),
    task("ConfigMap", "f", phase=FAIL, wave=-99),
]


def test_tasks_are_sorted_by_phase_wave_kind_and_name() -> None:
    assert sort_tasks(shuffled(IN_ORDER)) == IN_ORDER


@pytest.mark.parametrize(
    ("revision", "name"),
    [
        ("0123456789abcdef", "check-0123456-presync-1767225600"),
        ("01234567", "check-0123456-presync-1767225600"),
        ("0123456", "check-0123456-presync-1767225600"),
        ("v1.2", "check-v1.2-presync-1767225600"),
        ("ABC", "check-abc-presync-1767225600"),
        ("", "check--presync-1767225600"),
        ("1.0.0+a", "check-1.0.0-a-presync-1767225600"),
        ("1.2.30.4", "check-1.2.30-presync-1767225600"),
    ],
)
def test_hook_with_generate_name_is_named_by_revision_phase_and_time(revision: str, name: str) -> None:
    hook = manifest("Job", "", api="batch/v1", hook="PreSync")
    hook["metadata"] |= {"generateName": "check-", "name": ""}
    occasion = OperationContext(Application(name="demo"), revision, STARTED)
    (planned_task,) = plan_tasks(AppComparison(hooks=[hook]), SyncRequest(), occasion, SyncOptions(), {})
    assert planned_task.key.name == name
    assert planned_task.desired and planned_task.desired["metadata"]["generateName"] == "check-"  # argo: stays


def test_tracking_id_of_a_generated_hook_has_the_generated_name() -> None:
    hook = manifest("Job", "", api="batch/v1", hook="PreSync")
    hook["metadata"] |= {"generateName": "check-", "name": ""}
    hook["metadata"]["annotations"] |= {TRACKING_ID: "demo:batch/Job:ml/"}
    occasion = OperationContext(Application(name="demo"), "01234567", STARTED)
    (planned_task,) = plan_tasks(AppComparison(hooks=[hook]), SyncRequest(), occasion, SyncOptions(), {})
    tracked = (planned_task.desired or {})["metadata"]["annotations"][TRACKING_ID]
    assert tracked == f"demo:batch/Job:ml/{planned_task.key.name}"


def test_hooks_with_the_same_generate_name_get_different_keys() -> None:
    first, second, third = (manifest("Job", "", api="batch/v1", hook="PreSync") for _ in range(3))
    for hook in (first, second, third):
        hook["metadata"] |= {"generateName": "check-", "name": ""}
    third["metadata"]["namespace"] = "elsewhere"
    occasion = OperationContext(Application(name="demo"), "01234567", STARTED)
    tasks = plan_tasks(AppComparison(hooks=[first, second, third]), SyncRequest(), occasion, SyncOptions(), {})
    name = "check-0123456-presync-1767225600"
    assert sorted(task.key.name for task in tasks) == [name, name, f"{name}-2"]
    assert len({task.key for task in tasks}) == 3


# -- tasks that move to an earlier step ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("others", "step"),
    [
        ([task("ConfigMap", namespace="ml", wave=-2)], (SYNC, -2)),
        ([task("ConfigMap", namespace="ml", wave=7)], (SYNC, 5)),
        ([task("Job", namespace="ml", phase=PRE, wave=3)], (PRE, 3)),
        ([task("ConfigMap", namespace="other", wave=-2)], (SYNC, 5)),
        ([task("ConfigMap", namespace="ml", wave=-2, prune=True)], (SYNC, 5)),
        ([task("ClusterRole", wave=-3)], (SYNC, -3)),
        ([task("Namespace", "another", wave=-3)], (SYNC, 5)),
    ],
    ids=["in it", "later anyway", "hook in it", "elsewhere", "pruned", "of the whole cluster", "another namespace"],
)
def test_namespace_moves_to_the_step_of_the_first_task_that_needs_it(
    others: list[PlannedTask], step: tuple[SyncPhase, int]
) -> None:
    tasks = sort_tasks([task("Namespace", "ml", wave=5), *others], "ml")
    (space,) = [planned_task for planned_task in tasks if planned_task.key.name == "ml"]
    assert (space.phase, space.wave) == step
    if step != (SYNC, 5):
        assert tasks[0] is space


def definition(group: str, kind: str, wave: int) -> PlannedTask:
    definition_task = task("CustomResourceDefinition", kind.lower(), api="apiextensions.k8s.io/v1", wave=wave)
    assert definition_task.desired is not None
    definition_task.desired["spec"] = {"group": group, "names": {"kind": kind}}
    return definition_task


@pytest.mark.parametrize(
    ("other", "step"),
    [
        (task("Widget", api="example.com/v1", wave=1), (SYNC, 1)),
        (task("Widget", api="example.com/v2", phase=PRE, wave=4), (PRE, 4)),
        (task("Widget", api="example.com/v1", wave=9), (SYNC, 3)),
        (task("Widget", api="other.com/v1", wave=1), (SYNC, 3)),
        (task("Widget", api="example.com/v1", wave=1, prune=True), (SYNC, 3)),
    ],
    ids=["earlier", "earlier phase", "later", "another group", "pruned"],
)
def test_crd_moves_to_the_step_of_its_first_custom_resource(other: PlannedTask, step: tuple[SyncPhase, int]) -> None:
    tasks = sort_tasks([definition("example.com", "Widget", 3), other])
    (definition_task,) = [planned_task for planned_task in tasks if planned_task.key.kind == "CustomResourceDefinition"]
    assert (definition_task.phase, definition_task.wave) == step


# -- prunes ----------------------------------------------------------------------------------------------------------


def pair(name: str, wave: int, *, options: str = "", gone: bool = True) -> Pair:
    more = {"sync_options": options} if options else {}
    config_map = manifest("ConfigMap", name, "ml", sync_wave=str(wave), **more)
    return Pair(key_of(config_map), None if gone else config_map, config_map, differs=gone)


def planned(pairs: list[Pair], *options: str, app: Application | None = None, **request: Any) -> list[PlannedTask]:
    app = app or Application(name="demo", destination=Destination(namespace="ml"))
    return plan_tasks(
        AppComparison(pairs),
        SyncRequest(**request),
        OperationContext(app, "abc", STARTED),
        SyncOptions.from_lists(options),
        {},
    )


@pytest.mark.parametrize(
    ("gone", "kept", "expected"),
    [
        ([0], [], {0: 0}),
        ([0, 1, 2], [], {0: 2, 1: 1, 2: 0}),
        ([1, 2, 8, 9], [], {1: 9, 2: 8, 8: 2, 9: 1}),
        ([-3, 0, 5], [], {-3: 5, 0: 0, 5: -3}),
        ([0, 10], [5], {0: 10, 10: 0}),  # waves of kept resources do not count
        ([2], [0, 1, 3], {2: 2}),
        ([-2, -1], [0], {-2: -1, -1: -2}),
    ],
)
def test_prune_waves_are_mirrored_among_prunes_only(gone: list[int], kept: list[int], expected: dict[int, int]) -> None:
    pairs = [pair(f"gone{wave}", wave) for wave in gone] + [pair(f"kept{wave}", wave, gone=False) for wave in kept]
    waves = {planned_task.key.name: planned_task.wave for planned_task in planned(pairs)}
    assert {wave: waves[f"gone{wave}"] for wave in gone} == expected
    assert all(waves[f"kept{wave}"] == wave for wave in kept)


@pytest.mark.parametrize(
    ("pairs", "options", "expected"),
    [
        ([pair("a", 0), pair("b", 4, gone=False)], ("PruneLast=true",), {"a": 5, "b": 4}),
        ([pair("a", 0, options="PruneLast=true"), pair("b", 4, gone=False)], (), {"a": 5, "b": 4}),
        ([pair("a", -9), pair("b", -8)], ("PruneLast=true",), {"a": 1, "b": 1}),
        ([pair("a", 3, options="PruneLast=true"), pair("b", 7)], (), {"a": 8, "b": 3}),
        ([pair("a", 3, options="PruneLast=true"), pair("b", 7)], ("PruneLast=false",), {"a": 8, "b": 3}),
        ([pair("a", 0, options="PruneLast=true", gone=False)], (), {"a": 0}),
    ],
    ids=["all", "its own", "never below 1", "prunes count", "own though all say no", "what stays"],
)
def test_prune_last_tasks_have_the_wave_after_the_last_wave(
    pairs: list[Pair], options: tuple[str, ...], expected: dict[str, int]
) -> None:
    assert {planned_task.key.name: planned_task.wave for planned_task in planned(pairs, *options)} == expected


# -- the namespace ---------------------------------------------------------------------------------------------------

SPACE = ResourceKey("", "Namespace", "", "ml")


@pytest.mark.parametrize(
    ("manifests", "chosen", "is_created"),
    [
        ([manifest("ConfigMap", "a", "ml")], (), True),
        ([manifest("ConfigMap", "a", "ml")], (ResourceKey("", "ConfigMap", "", "a"),), True),
        ([manifest("Namespace", "ml"), manifest("ConfigMap", "a", "ml")], (), False),
        (
            [manifest("Namespace", "ml"), manifest("ConfigMap", "a", "ml")],
            (ResourceKey("", "ConfigMap", "", "a"),),
            False,
        ),
    ],
    ids=["missing", "missing for some", "in the manifests", "in the manifests though not chosen"],
)
def test_namespace_is_created_unless_a_manifest_defines_it(
    manifests: list[Manifest], chosen: tuple[ResourceKey, ...], is_created: bool
) -> None:
    pairs = [Pair(key_of(desired), desired, None, differs=True) for desired in manifests]
    tasks = planned(pairs, "CreateNamespace=true", resources=chosen)
    assert (
        any(
            planned_task.key == SPACE and planned_task.phase is PRE and planned_task.wave == 0 for planned_task in tasks
        )
        is is_created
    )


def test_managed_namespace_metadata_requires_create_namespace() -> None:
    spec = {"destination": {"namespace": "ml"}, "syncPolicy": {"managedNamespaceMetadata": {"labels": {"a": "b"}}}}
    app = read_application({"metadata": {"name": "demo"}, "spec": spec})
    assert planned([], app=app) == []
    (space,) = planned([], "CreateNamespace=true", app=app)
    assert space.desired and space.desired["metadata"]["labels"] == {"a": "b"}


# -- hooks or not ----------------------------------------------------------------------------------------------------

HOOK, HELM = "argocd.argoproj.io/hook", "helm.sh/hook"


@pytest.mark.parametrize(
    ("annotations", "hook", "skipped", "expected"),
    [
        ({}, False, False, []),
        ({HOOK: "PreSync"}, True, False, ["PreSync"]),
        ({HOOK: "Sync"}, True, False, ["Sync"]),
        ({HOOK: "PostSync"}, True, False, ["PostSync"]),
        ({HOOK: "SyncFail"}, True, False, ["SyncFail"]),
        ({HOOK: "PreDelete"}, True, False, ["PreDelete"]),
        ({HOOK: "PostDelete"}, True, False, ["PostDelete"]),
        ({HOOK: "Skip"}, False, True, []),
        ({HOOK: "Skip,PreSync"}, True, False, ["PreSync"]),
        ({HOOK: "garbage"}, True, False, []),
        ({HOOK: " Sync ,, Sync"}, True, False, ["Sync"]),
        ({HELM: "pre-install"}, True, False, ["PreSync"]),
        ({HELM: "pre-upgrade"}, True, False, ["PreSync"]),
        ({HELM: "post-install"}, True, False, ["PostSync"]),
        ({HELM: "post-upgrade"}, True, False, ["PostSync"]),
        ({HELM: "pre-install,post-upgrade"}, True, False, ["PreSync", "PostSync"]),
        ({HELM: "pre-delete"}, True, False, ["PreDelete"]),
        ({HELM: "post-delete"}, True, False, ["PostDelete"]),
        ({HELM: "crd-install"}, False, False, []),
        ({HELM: "test"}, True, False, []),
        ({HELM: "test-success"}, True, False, []),
        ({HELM: "pre-rollback"}, True, False, []),
        ({HOOK: "Sync", HELM: "pre-install"}, True, False, ["Sync"]),
        ({HOOK: "PreSync", HELM: "crd-install"}, True, False, ["PreSync"]),
    ],
)
def test_hook_annotations_give_the_hook_phases(
    annotations: dict[str, str], hook: bool, skipped: bool, expected: list[str]
) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": annotations}}
    assert (is_hook(pod), is_skipped(pod)) == (hook, skipped)
    if hook:
        assert list(list_hook_phases(pod)) == [SyncPhase(phase) for phase in expected]
