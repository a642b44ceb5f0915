"""Task states of a sync: phases from health, awaited tasks, waiting messages, health gates and deadlines."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.gitops.application import (
    OperationPhase,
    OperationRequest,
    OperationState,
    ResourceResult,
    ResultCode,
    SyncPhase,
)
from argosy.gitops.application.step_results import Assessment, HealthStatus, PlannedTask
from argosy.gitops.sync.health_gate_annotations import (
    GateKind,
    HealthGate,
    append_deadline,
    append_pause,
    read_deadline,
    read_gate,
    read_pause,
    strip_deadline,
)
from argosy.gitops.sync.task_states import (
    SyncTask,
    SyncTaskList,
    append_reasons,
    format_waiting_message,
    list_images,
    phase_from_health,
)
from argosy.kube.objects import Manifest, key_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUNNING, DONE, FAILED, ERROR = (
    OperationPhase.RUNNING,
    OperationPhase.SUCCEEDED,
    OperationPhase.FAILED,
    OperationPhase.ERROR,
)


def manifest(name: str, kind: str = "Job", api: str = "batch/v1", **annotations: str) -> Manifest:
    written = {f"argosy.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "ml", "annotations": written}}


def task(
    name: str, *, phase: SyncPhase = SyncPhase.SYNC, wave: int = 0, hook: bool = False, **more: Any
) -> PlannedTask:
    resource = manifest(name, **more)
    return PlannedTask(key_of(resource), phase, wave, resource, None, is_hook=hook)


def board(*tasks: PlannedTask, results: tuple[ResourceResult, ...] = ()) -> SyncTaskList:
    return SyncTaskList(OperationState(OperationRequest(), results=results), tasks)


def build_assessment(health: HealthStatus | None, message: str = "", fault: str = "") -> Assessment:
    return Assessment(health, message, fault=fault)


# argo: one table for hooks and one for all other resources
@pytest.mark.parametrize(
    ("assessment", "of_hook", "of_resource"),
    [
        (None, (DONE, ""), (DONE, "")),
        (build_assessment(None), (DONE, ""), None),
        (build_assessment(HealthStatus.HEALTHY, "fine"), (DONE, "fine"), (DONE, "fine")),
        (build_assessment(HealthStatus.MISSING), (DONE, ""), None),
        (build_assessment(HealthStatus.PROGRESSING, "soon"), (RUNNING, "soon"), None),
        (build_assessment(HealthStatus.SUSPENDED), (RUNNING, ""), None),
        (build_assessment(HealthStatus.DEGRADED, "sick"), (FAILED, "sick"), (FAILED, "sick")),
        (build_assessment(HealthStatus.UNKNOWN, "?"), (FAILED, "?"), None),
        (build_assessment(HealthStatus.UNKNOWN, fault="no"), (ERROR, "failed to get resource health: no"), None),
    ],
)
def test_task_phase_follows_from_health(assessment: Any, of_hook: Any, of_resource: Any) -> None:
    assert phase_from_health(assessment, is_hook=True) == of_hook
    assert phase_from_health(assessment, is_hook=False) == of_resource


@pytest.mark.parametrize(
    ("tasks", "many"),
    [
        ([], False),
        ([task("a"), task("b")], False),
        ([task("a"), task("b", wave=1)], True),
        ([task("a", phase=SyncPhase.PRE_SYNC), task("b")], True),
        ([task("a"), task("b", phase=SyncPhase.SYNC_FAIL)], True),
    ],
)
def test_plan_has_many_steps_if_first_and_last_task_differ(tasks: list[PlannedTask], many: bool) -> None:
    assert board(*tasks).has_many_steps is many


@pytest.mark.parametrize(
    ("words", "hook", "waves", "awaited"),
    [
        ({}, False, (0, 0), False),
        ({}, False, (0, 1), True),
        ({}, True, (0, 0), True),
        ({"gate": "block"}, False, (0, 0), True),
        ({"gate": "report"}, False, (0, 1), False),
        ({"gate": "ignore"}, False, (0, 1), False),
        ({"gate": "nonsense"}, False, (0, 1), True),
    ],
)
def test_hooks_gates_and_early_waves_are_awaited(words: Any, hook: bool, waves: tuple[int, int], awaited: bool) -> None:
    task_list = board(task("a", hook=hook, wave=waves[0], **words), task("b", wave=waves[1]))
    task_list.record(task_list.tasks[0], ResultCode.SYNCED, RUNNING)
    assert task_list.is_awaited(task_list.tasks[0]) is awaited


def test_results_keep_their_order_and_entries_without_a_task() -> None:
    old = ResourceResult(key_of(manifest("gone")), result_code=ResultCode.PRUNED, hook_phase=DONE, message="pruned")
    task_list = board(task("b"), task("a"), results=(old,))
    task_list.record(task_list.tasks[1], ResultCode.SYNCED, RUNNING, "job.batch/a created")
    task_list.record(task_list.tasks[0], ResultCode.SYNCED, RUNNING, "job.batch/b created")
    task_list.record(task_list.tasks[1], ResultCode.SYNCED, DONE)
    assert [(result.key.name, result.hook_phase, result.message) for result in task_list.results] == [
        ("gone", DONE, "pruned"), ("a", DONE, "job.batch/a created"), ("b", RUNNING, "job.batch/b created"),
    ]  # fmt: skip


def test_result_is_written_until_its_phase_changes() -> None:
    result = ResourceResult(key_of(manifest("a")), result_code=ResultCode.SYNCED, hook_phase=RUNNING, message="x")
    task_list = board(task("a", hook=True), results=(result,))
    assert task_list.tasks[0].is_written
    task_list.record(task_list.tasks[0], ResultCode.SYNCED, RUNNING, "y")
    assert task_list.tasks[0].is_written
    task_list.record(task_list.tasks[0], ResultCode.SYNCED, DONE)
    assert not task_list.tasks[0].is_written


@pytest.mark.parametrize(
    ("hook", "count", "awaited", "text"),
    [
        (True, 1, "", "waiting for completion of hook batch/Job/a"),
        (True, 3, "", "waiting for completion of hook batch/Job/a and 2 more hooks"),
        (False, 1, "", "waiting for healthy state of batch/Job/a"),
        (False, 2, "", "waiting for healthy state of batch/Job/a and 1 more resources"),
        (False, 2, "deletion of", "waiting for deletion of batch/Job/a and 1 more resources"),
        (True, 2, "deletion of", "waiting for deletion of hook batch/Job/a and 1 more hooks"),
        (False, 1, "pruning confirmation of", "waiting for pruning confirmation of batch/Job/a"),
    ],
)
def test_waiting_message_is_the_one_of_argo_cd(hook: bool, count: int, awaited: str, text: str) -> None:
    turns = [SyncTask(task(name, hook=hook), None) for name in "abc"[:count]]
    assert format_waiting_message(turns, awaited) == text


def test_waiting_message_names_a_hook_first() -> None:
    turns = [SyncTask(task("a"), None), SyncTask(task("b", hook=True), None), SyncTask(task("c"), None)]
    assert format_waiting_message(turns) == "waiting for completion of hook batch/Job/b and 2 more resources"
    assert (
        format_waiting_message(turns, "deletion of") == "waiting for deletion of hook batch/Job/b and 2 more resources"
    )


def test_repeated_failure_reasons_are_listed_once() -> None:
    turns = [
        SyncTask(task(name), None, ResultCode.SYNC_FAILED, FAILED, message) for name, message in ("ax", "by", "cx")
    ]
    assert append_reasons("failed", turns) == "failed, reason: x,y"


def test_failure_reasons_are_those_of_tasks_that_were_not_applied() -> None:
    turns = [
        SyncTask(task("a"), None, ResultCode.SYNC_FAILED, FAILED, "no"),
        SyncTask(task("b"), None, ResultCode.SYNCED, FAILED, "sick"),
        SyncTask(task("c"), None, ResultCode.SYNC_FAILED, ERROR, "never"),
    ]
    assert append_reasons("it failed", turns) == "it failed, reason: no,never"
    assert append_reasons("it failed", turns[1:2]) == "it failed"


def test_report_gate_fails_the_sync_only_if_the_apply_fails() -> None:
    task_list = board(task("a", gate="report"), task("b", gate="report", wave=1))
    first, second = task_list.tasks
    task_list.record(first, ResultCode.SYNCED, FAILED, "sick")
    assert task_list.list_failures() == []
    task_list.record(second, ResultCode.SYNC_FAILED, FAILED, "refused")
    assert task_list.list_failures() == [second]


# -- gates and deadlines in messages ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "gate"),
    [
        ({}, HealthGate()),
        ({"gate": "block"}, HealthGate(GateKind.BLOCK)),
        ({"gate": "block", "gate_timeout": "1m30s"}, HealthGate(GateKind.BLOCK, 90.0)),
        ({"gate_timeout": "10s"}, HealthGate(GateKind.WAVE, 10.0)),
        ({"gate": "maybe", "gate_timeout": "soon"}, HealthGate()),
    ],
)
def test_health_gate_is_read_and_invalid_values_are_ignored(words: dict[str, str], gate: HealthGate) -> None:
    assert read_gate(manifest("a", **words)) == gate


def test_deadline_and_pause_are_stored_in_messages() -> None:
    message = append_deadline("deployment.apps/web created", NOW)
    assert message == "deployment.apps/web created (to be healthy by 2026-01-01T00:00:00.000Z)"
    assert read_deadline(message) == NOW and strip_deadline(message) == "deployment.apps/web created"
    paused = append_pause("waiting for healthy state of /ConfigMap/a", NOW)
    assert read_pause(paused) == NOW and read_deadline(paused) is None and read_pause("waiting") is None
    assert append_pause("x", None) == append_deadline("x", None) == "x"


@pytest.mark.parametrize(
    ("spec", "images"),
    [
        ({"template": {"spec": {"containers": [{"image": "a"}, {"image": "b"}]}}}, ("a", "b")),
        ({"jobTemplate": {"spec": {"template": {"spec": {"containers": [{"image": "c"}]}}}}}, ("c",)),
        ({"containers": [{"image": "d"}, {"name": "none"}, "odd"]}, ("d",)),
        ({"template": "odd"}, ()),
        (None, ()),
    ],
)
def test_images_are_read_from_pod_specs_and_templates(spec: Any, images: tuple[str, ...]) -> None:
    assert list_images({"spec": spec}) == images
