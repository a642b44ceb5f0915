"""Entries of `status.resources` for what a comparison lists, and for what a sync skips."""

from __future__ import annotations

from typing import Any, cast

import pytest

from argosy.gitops.application import Application, read_application
from argosy.gitops.application.step_results import AppComparison, Pair, SyncStatus
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.resources_and_warnings import build_resources, list_shared_resource_messages
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.status.resources import ResourceStatus
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey

KEY = ResourceKey("batch", "Job", "ml", "train")


def build_job(version: str = "v1", **annotations: str) -> Manifest:
    named = {f"argocd.argoproj.io/{name.replace('_', '-')}": text for name, text in annotations.items()}
    metadata = {"name": "train", "namespace": "ml", "annotations": named}
    return {"apiVersion": f"batch/{version}", "kind": "Job", "metadata": metadata}


def build_app(*options: str) -> Application:
    return read_application(
        {"metadata": {"name": "models"}, "spec": {"syncPolicy": {"syncOptions": list(options)}}}, "models"
    )


def list_entries(
    desired: list[Manifest],
    live: list[Manifest],
    *,
    app: Application | None = None,
    is_permitted: bool = True,
    **more: Any,
) -> list[ResourceStatus]:
    comparison = AppComparison(**more)
    by_key = {key_of(manifest): manifest for manifest in live}
    return build_resources(app or build_app(), desired, comparison, [], by_key, lambda key: is_permitted)


SKIPPED = build_job(hook="Skip", sync_wave="3", sync_options="Delete=confirm")


def test_skipped_object_has_wave_and_confirmation_but_no_sync_status() -> None:
    entry = ResourceStatus(KEY, "v1", wave=3, requires_confirmation=True)
    assert list_entries([SKIPPED], []) == [entry]


def test_skipped_object_that_is_live_is_one_entry_and_is_not_pruned() -> None:
    entry = ResourceStatus(KEY, "v2", wave=3, requires_confirmation=True)
    assert list_entries([SKIPPED], [build_job("v2", hook="Skip")]) == [entry]
    assert list_entries([SKIPPED], [build_job("v2")]) == [entry]


def test_skipped_object_of_an_application_with_confirmation_requires_it_too() -> None:
    [entry] = list_entries([build_job(hook="Skip")], [], app=build_app("Prune=confirm"))
    assert entry.requires_confirmation


@pytest.mark.parametrize("more", [{"is_permitted": False}, {"status": SyncStatus.UNKNOWN}])
def test_skipped_object_is_unknown_if_it_is_not_permitted_or_nothing_was_compared(more: dict[str, Any]) -> None:
    assert [entry.status for entry in list_entries([SKIPPED], [], **more)] == [SyncStatus.UNKNOWN]


@pytest.mark.parametrize("more", [{"is_permitted": False}, {"status": SyncStatus.UNKNOWN}])
def test_compared_object_is_unknown_if_it_is_not_permitted_or_nothing_was_compared(more: dict[str, Any]) -> None:
    pair = Pair(KEY, build_job(), build_job(), differs=True)
    assert [entry.status for entry in list_entries([], [], pairs=[pair])] == [SyncStatus.OUT_OF_SYNC]
    assert [entry.status for entry in list_entries([], [], pairs=[pair], **more)] == [SyncStatus.UNKNOWN]


def test_live_hook_has_the_wave_of_git_and_is_unknown_if_nothing_was_compared() -> None:
    hook, live = build_job(hook="PreSync", sync_wave="2"), build_job(hook="PreSync", sync_wave="-1")
    [entry] = list_entries([hook], [live], hooks=[hook])
    assert entry == ResourceStatus(KEY, "v1", is_hook=True, requires_pruning=True, wave=2)
    [entry] = list_entries([hook], [live], hooks=[hook], status=SyncStatus.UNKNOWN)
    assert entry.status is SyncStatus.UNKNOWN


def test_copy_of_a_tracked_object_has_no_status_and_is_not_pruned() -> None:
    assert list_entries([], [build_job(sync_wave="3")]) == [ResourceStatus(KEY, "v1")]


@pytest.mark.parametrize(
    ("tracking_id", "messages"),
    [
        ("models:batch/Job:ml/train", []),
        ("", []),
        ("other:batch/Job:ml/train", ["Job/train is part of applications argocd/models and other"]),
        ("team_models:batch/Job:ml/train", ["Job/train is part of applications argocd/models and team/models"]),
    ],
)
def test_object_that_another_application_tracks_is_a_shared_resource(tracking_id: str, messages: list[str]) -> None:
    live = build_job(tracking_id=tracking_id)
    settings = ReconcilerSettings(cast(Repositories, None), cast(Any, None))
    app = read_application({"metadata": {"name": "models", "namespace": "argocd"}, "spec": {}}, "models")
    assert list_shared_resource_messages(app, {KEY: live}, "models", settings) == messages
