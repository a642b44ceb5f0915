"""Entries of `status.resources`: sync status, health, wave, pruning and confirmation of each managed resource."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.application.step_results import Assessment, HealthStatus, SyncStatus
from argosy.gitops.status.resources import ResourceStatus, build_resource, resources_to_wire
from argosy.kube.resource_key import ResourceKey

KEY = ResourceKey("batch", "Job", "ml", "train")


def job(**annotations: str) -> dict[str, Any]:
    named = {f"argocd.argoproj.io/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "annotations": named}}


def test_resource_status_has_key_version_sync_status_and_wave() -> None:
    resource = build_resource(KEY, job(sync_wave="3"), job(), status=SyncStatus.OUT_OF_SYNC)
    assert resource == ResourceStatus(KEY, "v1", SyncStatus.OUT_OF_SYNC, wave=3)


def test_resource_removed_from_git_requires_pruning_and_has_no_wave() -> None:
    resource = build_resource(KEY, None, job(sync_wave="3"), status=SyncStatus.OUT_OF_SYNC)
    assert resource == ResourceStatus(KEY, "v1", SyncStatus.OUT_OF_SYNC, requires_pruning=True)


def test_live_hook_has_no_sync_status_and_the_wave_of_its_manifest_in_git() -> None:
    live = job(hook="PreSync", sync_wave="-1")
    resource = build_resource(KEY, None, live, status=SyncStatus.SYNCED, hook=job(hook="PreSync", sync_wave="2"))
    assert resource == ResourceStatus(KEY, "v1", is_hook=True, requires_pruning=True, wave=2)
    assert build_resource(KEY, None, live, status=SyncStatus.SYNCED).wave == 0
    assert build_resource(KEY, None, job(sync_wave="3"), status=SyncStatus.SYNCED, hook=job(sync_wave="2")).wave == 0


def test_unknown_status_is_written_for_hooks_and_copies_too() -> None:
    unknown = SyncStatus.UNKNOWN
    assert build_resource(KEY, None, job(hook="PreSync"), status=unknown).status is unknown
    assert build_resource(KEY, None, job(), status=unknown, has_own_tracking=False).status is unknown


def test_resource_without_own_tracking_is_neither_out_of_sync_nor_pruned() -> None:
    assert build_resource(KEY, None, job(), status=SyncStatus.OUT_OF_SYNC, has_own_tracking=False) == ResourceStatus(
        KEY, "v1"
    )


@pytest.mark.parametrize("option", ["Delete=confirm", "Prune=confirm"])
def test_confirm_option_of_git_live_or_app_requires_confirmation(option: str) -> None:
    for sides in ((job(sync_options=option), None), (None, job(sync_options=option))):
        assert build_resource(KEY, *sides, status=SyncStatus.SYNCED).requires_confirmation
    assert build_resource(KEY, job(), None, status=SyncStatus.SYNCED, app_options=[option]).requires_confirmation


@pytest.mark.parametrize(
    ("own", "app_option", "requires_confirmation"),
    [
        ("Delete=false", "Delete=confirm", False),
        ("Prune=true", "Prune=confirm", False),
        ("Prune=true", "Delete=confirm", True),
        ("Delete=confirm", "Delete=false", True),
        ("Replace=confirm", "Validate=confirm", False),
    ],
)
def test_own_option_overrides_confirmation_of_the_application(
    own: str, app_option: str, requires_confirmation: bool
) -> None:
    resource = build_resource(KEY, job(sync_options=own), None, status=SyncStatus.SYNCED, app_options=[app_option])
    assert resource.requires_confirmation is requires_confirmation


def test_resources_are_sorted_by_group_kind_namespace_and_name() -> None:
    keys = [KEY, KEY._replace(name="a"), KEY._replace(namespace="a"), ResourceKey("", "Service", "z", "z")]
    lines = resources_to_wire(map(ResourceStatus, keys), with_health=False)
    assert [(line.get("group", ""), line["kind"], line["namespace"], line["name"]) for line in lines] == sorted(keys)


def test_resource_health_is_written_only_when_enabled() -> None:
    resource = ResourceStatus(KEY, assessment=Assessment(HealthStatus.DEGRADED, "failed"))
    assert "health" not in resources_to_wire([resource], with_health=False)[0]
    assert resources_to_wire([resource], with_health=True)[0]["health"] == {"status": "Degraded", "message": "failed"}
    assert "health" not in resources_to_wire([ResourceStatus(KEY, assessment=Assessment(None))], with_health=True)[0]
