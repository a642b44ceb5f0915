"""Operation options: apply, prune, confirmation and retry, from the request, the application and the manifests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.errors import ManifestError
from argosy.gitops.application import (
    Application,
    OperationPhase,
    OperationRequest,
    OperationState,
    ResourceResult,
    ResultCode,
    RetryStrategy,
    SyncPhase,
    SyncRequest,
)
from argosy.gitops.application.step_results import PlannedTask
from argosy.gitops.sync import retry
from argosy.gitops.sync.client_side_apply_patch_builder import (
    add_last_applied,
    build_apply_patch,
    contains_desired,
    read_last_applied,
    set_namespace,
)
from argosy.gitops.sync.effective_apply_and_prune_options import (
    CLIENT_SIDE_MANAGER,
    ApplyOptions,
    OperationOptions,
    is_deletion_approved,
)
from argosy.gitops.sync.managed_fields_migration import build_migration_patch
from argosy.gitops.sync.rollback_request import build_rollback_request
from argosy.gitops.sync.sync_options import SyncOptions
from argosy.gitops.sync.task_states import SyncTaskList
from argosy.gitops.sync.task_validation import find_invalid_tasks
from argosy.kube.client import KindInfo
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind

STARTED = "2026-01-01T00:00:00Z"
OPTIONS, APPROVED = "argocd.argoproj.io/sync-options", "argocd.argoproj.io/deletion-approved"
NOW = datetime(2026, 1, 1, 15, 4, tzinfo=UTC)


def manifest(options: str = "", kind: str = "ConfigMap", api: str = "v1", **parts: Any) -> Manifest:
    annotations = {OPTIONS: options} if options else {}
    return {
        "apiVersion": api, "kind": kind, "metadata": {"name": "a", "namespace": "ml", "annotations": annotations},
        **parts,
    }  # fmt: skip


def terms(
    *options: str, annotations: dict[str, str] | None = None, is_mass: bool = False, **request: Any
) -> OperationOptions:
    state = OperationState(OperationRequest(SyncRequest(**request)), started=STARTED)
    return OperationOptions(
        Application(annotations=annotations or {}), state, SyncOptions.from_lists(options), is_mass_prune=is_mass
    )


def task(
    desired: Manifest | None, live: Manifest | None = None, *, differs: bool = True, hook: bool = False
) -> PlannedTask:
    return PlannedTask(key_of(desired or live or {}), SyncPhase.SYNC, 0, desired, live, is_hook=hook, differs=differs)


USUAL = ApplyOptions(migrated_manager=CLIENT_SIDE_MANAGER)


@pytest.mark.parametrize(
    ("app", "own", "live", "field", "value"),
    [
        ((), "", "", "replace", False),
        (("Replace=true",), "", "", "replace", True),
        (("Replace=true",), "Replace=false", "", "replace", False),
        ((), "Replace=true", "", "replace", True),
        ((), "", "Replace=true", "replace", True),
        ((), "Force=true", "", "force", True),
        ((), "", "Force=true", "force", True),
        (("ServerSideApply=true",), "", "", "server_side", True),
        (("ServerSideApply=true",), "ServerSideApply=false", "", "server_side", False),
        ((), "ServerSideApply=true", "", "server_side", True),
        (("ServerSideApply=true", "Replace=true"), "", "", "server_side", False),
        (("Validate=false",), "", "", "validate", False),
        ((), "Validate=false", "", "validate", False),
        (("ClientSideApplyMigration=false",), "", "", "migrated_manager", ""),
        ((), "", "", "migrated_manager", "kubectl-client-side-apply"),
    ],
)
def test_sync_options_set_the_apply_options(app: tuple[str, ...], own: str, live: str, field: str, value: Any) -> None:
    how = terms(*app).build_apply_options(task(manifest(own), manifest(live)))
    assert getattr(how, field) == value


def test_request_sets_force_and_annotation_sets_the_migrated_manager() -> None:
    assert terms(force=True).build_apply_options(task(manifest())).force
    name = "argocd.argoproj.io/client-side-apply-migration-manager"
    assert terms(annotations={name: "my-tool"}).build_apply_options(task(manifest())).migrated_manager == "my-tool"
    assert terms().build_apply_options(task(manifest())) == USUAL


@pytest.mark.parametrize("kind", [("v1", "Namespace"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition")])
def test_namespaces_and_crds_are_never_recreated_by_force(kind: tuple[str, str]) -> None:
    assert not terms(force=True).build_apply_options(task(manifest(api=kind[0], kind=kind[1]))).may_recreate


@pytest.mark.parametrize(
    ("app", "own", "prune", "said"),
    [
        ((), "", False, "ignored (requires pruning)"),
        ((), "", True, ""),
        ((), "Prune=false", True, "ignored (no prune)"),
        (("Prune=false",), "", True, "ignored (no prune)"),
        (("Prune=false",), "Prune=true", True, ""),
        ((), "Prune=confirm", True, ""),
    ],
)
def test_prune_is_refused_unless_enabled_and_allowed(app: tuple[str, ...], own: str, prune: bool, said: str) -> None:
    assert terms(*app, prune=prune).find_prune_refusal(manifest(own)) == said


@pytest.mark.parametrize(
    ("own", "is_mass", "approved", "asks"),
    [
        ("", False, "", False),
        ("Prune=confirm", False, "", True),
        ("Prune=confirm", False, "2025-12-31T23:59:59Z", True),
        ("Prune=confirm", False, STARTED, False),
        ("Prune=confirm", False, "2026-01-01T02:00:00+01:00", False),
        ("Prune=confirm", False, "yes", True),
        ("", True, "", True),
        ("", True, STARTED, False),
        ("Prune=false", True, "", False),
    ],
)
def test_prune_confirm_and_mass_prune_require_an_approval(own: str, is_mass: bool, approved: str, asks: bool) -> None:
    sync_terms = terms(annotations={APPROVED: approved} if approved else {}, is_mass=is_mass, prune=True)
    assert sync_terms.must_confirm_prune(manifest(own)) is asks


def test_approval_in_the_second_of_the_operation_start_is_valid() -> None:
    app = Application(annotations={APPROVED: "2026-01-01T00:00:34Z"})
    assert is_deletion_approved(app, "2026-01-01T00:00:34.967764Z")
    assert not is_deletion_approved(app, "2026-01-01T00:00:35.000001Z")


@pytest.mark.parametrize(
    ("word", "policy"), [("", "Foreground"), ("background", "Background"), ("orphan", "Orphan"), ("odd", "Foreground")]
)
def test_prune_propagation_policy_option_is_read(word: str, policy: str) -> None:
    assert terms(f"PrunePropagationPolicy={word}").propagation == policy


@pytest.mark.parametrize(
    ("differs", "hook", "live", "spared"),
    [(False, False, True, True), (True, False, True, False), (False, True, True, False), (False, False, False, False)],
)
def test_apply_out_of_sync_only_skips_unchanged_resources(differs: bool, hook: bool, live: bool, spared: bool) -> None:
    planned_task = task(manifest(), manifest() if live else None, differs=differs, hook=hook)
    assert terms("ApplyOutOfSyncOnly=true").is_skipped_as_in_sync(planned_task) is spared
    assert not terms().is_skipped_as_in_sync(planned_task)


@pytest.mark.parametrize(
    ("manager", "time", "subresource", "spared"),
    [
        ("argocd-controller", "2025-12-31T23:59:59Z", "", True),
        ("argocd-controller", "2026-01-01T00:00:00Z", "", False),
        ("argocd-application-controller", "2026-01-01T00:00:00Z", "", False),
        ("argocd-controller", "2026-01-01T00:00:09Z", "status", True),
        ("argocd-controller", "", "", True),
        ("kube-controller-manager", "2026-01-01T00:00:09Z", "", True),
    ],
)
def test_resource_applied_by_this_operation_is_not_skipped(
    manager: str, time: str, subresource: str, spared: bool
) -> None:
    live = manifest()
    live["metadata"]["managedFields"] = [{"manager": manager, "time": time, "subresource": subresource}]
    assert terms("ApplyOutOfSyncOnly=true").is_skipped_as_in_sync(task(manifest(), live, differs=False)) is spared


# -- checks ----------------------------------------------------------------------------------------------------------

KINDS = {GroupKind("", "ConfigMap"): KindInfo("v1", "configmaps", True, ("v1",))}
UNSERVED = "failed to discover server resources for group version {}: the server could not find the requested resource"
WIDGET = manifest(kind="Widget", api="example.com/v1")
DEFINITION = manifest(
    kind="CustomResourceDefinition", api="apiextensions.k8s.io/v1",
    spec={"group": "example.com", "names": {"kind": "Widget"}},
)  # fmt: skip


@pytest.mark.parametrize(
    ("manifests", "options", "fault_count"),
    [
        ([manifest()], (), 0),
        ([manifest(api="v2")], (), 1),
        ([WIDGET], (), 1),
        ([WIDGET], ("SkipDryRunOnMissingResource=true",), 0),
        ([manifest("SkipDryRunOnMissingResource=true", "Widget", "example.com/v1")], (), 0),
        ([WIDGET, DEFINITION], ("SkipDryRunOnMissingResource=true",), 0),
    ],
)
def test_task_of_an_unserved_kind_is_invalid_unless_its_crd_is_in_the_sync(
    manifests: list[Manifest], options: tuple[str, ...], fault_count: int
) -> None:
    board = SyncTaskList(OperationState(OperationRequest()), [task(desired) for desired in manifests])
    faults = find_invalid_tasks(board.tasks, board, KINDS, terms(*options), lambda *_: "")
    assert len(faults) == fault_count


@pytest.mark.parametrize(
    ("desired", "message", "cause"),
    [
        (manifest(kind="Widget"), 'Widget "" not found', 'Widget "" not found'),
        (
            WIDGET,
            "The Kubernetes API could not find example.com/Widget for requested resource ml/a. "
            'Make sure the "Widget" CRD is installed on the destination cluster.',
            UNSERVED.format("example.com/v1"),
        ),
        (
            manifest(api="extensions/v1beta1"),
            'The Kubernetes API could not find version "v1beta1" of extensions/ConfigMap for requested resource ml/a. '
            'Version "v1" of /ConfigMap is installed on the destination cluster.',
            UNSERVED.format("extensions/v1beta1"),
        ),
    ],
)
def test_message_of_an_unserved_kind_is_argo_cds(desired: Manifest, message: str, cause: str) -> None:
    board = SyncTaskList(OperationState(OperationRequest()), [task(desired)])
    [invalid] = find_invalid_tasks(board.tasks, board, KINDS, terms(), lambda *_: "")
    assert (invalid.message, invalid.cause) == (message, cause)


# -- patches ---------------------------------------------------------------------------------------------------------


def test_apply_patch_is_empty_or_has_only_the_changes() -> None:
    first = add_last_applied(manifest(data={"a": "1", "b": "2"}))
    assert build_apply_patch(first, first) == {}
    assert read_last_applied(first) == manifest(data={"a": "1", "b": "2"})
    patch = build_apply_patch(add_last_applied(manifest(data={"a": "3"})), first)
    assert patch["data"] == {"a": "3", "b": None}


def test_custom_resources_use_a_json_merge_patch() -> None:
    live = add_last_applied({**WIDGET, "spec": {"sizes": [1, 2], "gone": 1}})
    patch = build_apply_patch(add_last_applied({**WIDGET, "spec": {"sizes": [3]}}), live)
    assert patch["spec"] == {"sizes": [3], "gone": None}


def test_set_namespace_uses_the_namespace_of_the_key() -> None:
    namespaced = {**manifest(), "metadata": {"name": "a", "namespace": "x", "creationTimestamp": None}}
    assert set_namespace(namespaced, key_of(namespaced)._replace(namespace=""))["metadata"] == {"name": "a"}
    assert set_namespace(namespaced, key_of(namespaced)._replace(namespace="y"))["metadata"] == {
        "name": "a",
        "namespace": "y",
    }
    assert namespaced["metadata"]["namespace"] == "x"


def test_contains_desired_compares_all_desired_fields() -> None:
    assert contains_desired({"a": [1, {"b": 2, "c": 3}], "d": 4}, {"a": [1, {"b": 2}]})
    assert (
        not contains_desired({"a": [1, 2]}, {"a": [1]})
        and not contains_desired({"a": 1}, {"b": 1})
        and not contains_desired(None, {"a": 1})
    )


def entry(manager: str, operation: str = "Update", **fields: Any) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields}


def test_client_side_apply_fields_are_migrated_into_our_apply_entry() -> None:
    annotation = {"f:annotations": {"f:kubectl.kubernetes.io/last-applied-configuration": {}}}
    live = manifest()
    live["metadata"] |= {
        "resourceVersion": "7",
        "managedFields": [
            entry("kubectl-client-side-apply", **{"f:data": {"f:a": {}}}),
            entry("somebody", **{"f:metadata": annotation}),
            entry("kube-controller-manager", **{"f:data": {"f:z": {}}}),
            entry("argocd-controller", "Apply", **{"f:data": {"f:b": {}}}),
        ],
    }
    replaced, guard = build_migration_patch(live, "kubectl-client-side-apply", "argocd-controller")
    ours, other = replaced["value"]
    assert ours == entry("argocd-controller", "Apply", **{"f:data": {"f:a": {}, "f:b": {}}, "f:metadata": annotation})
    assert other["manager"] == "kube-controller-manager" and guard["value"] == "7"
    # kubectl takes over the writers of last-applied even with ClientSideApplyMigration=false
    replaced, _ = build_migration_patch(live, "", "argocd-controller")
    ours, *others = replaced["value"]
    assert ours == entry("argocd-controller", "Apply", **{"f:data": {"f:b": {}}, "f:metadata": annotation})
    assert [other["manager"] for other in others] == ["kubectl-client-side-apply", "kube-controller-manager"]
    assert build_migration_patch(manifest(), "", "argocd-controller") == []
    assert build_migration_patch(manifest(), "kubectl-client-side-apply", "argocd-controller") == []


# -- retries and rollbacks -------------------------------------------------------------------------------------------


def state(progress: OperationPhase, retries: int = 0, limit: int = 2, **more: Any) -> OperationState:
    request = OperationRequest(SyncRequest(revision="abc"), retry=RetryStrategy(limit=limit, **more))
    result = ResourceResult(key_of(manifest()), result_code=ResultCode.SYNC_FAILED)
    return OperationState(request, progress, "it failed", STARTED, retries=retries, results=(result,), has_result=True)


@pytest.mark.parametrize(
    ("before", "after", "progress", "message"),
    [
        (OperationPhase.RUNNING, state(OperationPhase.SUCCEEDED), OperationPhase.SUCCEEDED, "it failed"),
        (
            OperationPhase.RUNNING, state(OperationPhase.FAILED), OperationPhase.RUNNING,
            "it failed. Retrying attempt #1 at 3:04PM.",
        ),
        (
            OperationPhase.RUNNING, state(OperationPhase.ERROR, retries=1), OperationPhase.RUNNING,
            "it failed. Retrying attempt #2 at 3:04PM.",
        ),
        (OperationPhase.RUNNING, state(OperationPhase.FAILED, retries=2), OperationPhase.FAILED, "it failed "
                                                                                                 "(retried 2 times)."),
        (OperationPhase.RUNNING, state(OperationPhase.FAILED, limit=0), OperationPhase.FAILED, "it failed"),
        (
            OperationPhase.RUNNING, state(OperationPhase.FAILED, retries=9, limit=-1), OperationPhase.RUNNING,
            "it failed. Retrying attempt #10 at 3:07PM.",
        ),
        (OperationPhase.TERMINATING, state(OperationPhase.FAILED), OperationPhase.FAILED, "it failed"),
    ],
)  # fmt: skip
def test_failed_operation_is_retried_up_to_its_limit(
    before: OperationPhase, after: OperationState, progress: OperationPhase, message: str
) -> None:
    outcome = retry.schedule_retry_or_finish(state(before), after, NOW)
    assert (outcome.phase, outcome.message) == (progress, message)
    assert retry.is_waiting_for_retry(outcome) is (progress is OperationPhase.RUNNING)


def test_retry_waits_for_its_backoff_and_starts_without_results() -> None:
    resting = retry.schedule_retry_or_finish(
        state(OperationPhase.RUNNING), state(OperationPhase.FAILED, retries=1, refresh=True), NOW
    )
    assert (resting.retries, resting.finished) == (2, "2026-01-01T15:04:00Z")
    assert (
        retry.seconds_until_retry(resting, NOW) == 10.0
        and retry.seconds_until_retry(resting, NOW + timedelta(seconds=11)) == 0.0
    )
    anew = retry.start_next_attempt(resting)
    assert (anew.results, anew.has_result, anew.finished, anew.retries) == ((), False, "", 2)
    assert anew.request.sync.revision == "" and anew.started == STARTED
    pinned = retry.start_next_attempt(
        retry.schedule_retry_or_finish(state(OperationPhase.RUNNING), state(OperationPhase.FAILED), NOW)
    )
    assert pinned.request.sync.revision == "abc"


def test_rollback_request_syncs_the_old_sources_without_hooks() -> None:
    entry = {"id": 3, "revision": "abc", "source": {"repoURL": "https://git.example/x", "path": "p"}}
    request = build_rollback_request(entry, username="ada", prune=True)
    assert (request.sync.revision, request.sync.prune, request.sync.runs_hooks, request.username) == (
        "abc",
        True,
        False,
        "ada",
    )
    assert request.sync.sources[0].path == "p"
    assert request.wire["sync"]["syncStrategy"] == {"apply": {}} and request.wire["initiatedBy"] == {"username": "ada"}
    with pytest.raises(ManifestError, match="choose another"):
        build_rollback_request({"id": 1, "revision": "abc"})


@pytest.mark.parametrize(
    ("rested", "message"), [(True, "it failed (retried 1 times)."), (False, "it failed (retried 2 times).")]
)
def test_termination_during_backoff_does_not_count_the_next_attempt(rested: bool, message: str) -> None:
    before = replace(state(OperationPhase.TERMINATING, retries=2), finished=STARTED if rested else "")
    assert retry.schedule_retry_or_finish(before, state(OperationPhase.FAILED, retries=2), NOW).message == message
