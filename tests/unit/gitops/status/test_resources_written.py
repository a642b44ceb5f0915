"""What is managed, a line each."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.application.step_results import Assessment, Health, SyncStatus
from argosy.gitops.status.resources import Resource, resource_of, resources_wire
from argosy.kube.names import ResourceKey

KEY = ResourceKey("batch", "Job", "ml", "train")


def job(**annotations: str) -> dict[str, Any]:
    named = {f"argocd.argoproj.io/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "annotations": named}}


def test_a_line_is_made_from_both_sides() -> None:
    found = resource_of(KEY, job(sync_wave="3"), job(), status=SyncStatus.OUT_OF_SYNC)
    assert found == Resource(KEY, "v1", SyncStatus.OUT_OF_SYNC, wave=3)


def test_what_git_no_longer_asks_for_is_to_be_pruned_and_has_no_wave() -> None:
    found = resource_of(KEY, None, job(sync_wave="3"), status=SyncStatus.OUT_OF_SYNC)
    assert found == Resource(KEY, "v1", SyncStatus.OUT_OF_SYNC, requires_pruning=True)


def test_a_live_hook_has_no_sync_status() -> None:
    found = resource_of(KEY, None, job(hook="PreSync", sync_wave="-1"), status=SyncStatus.SYNCED)
    assert found == Resource(KEY, "v1", is_hook=True, requires_pruning=True, wave=-1)


def test_a_copy_of_what_is_tracked_is_neither_out_of_sync_nor_to_be_pruned() -> None:
    assert resource_of(KEY, None, job(), status=SyncStatus.OUT_OF_SYNC, is_own=False) == Resource(KEY, "v1")


@pytest.mark.parametrize("option", ["Delete=confirm", "Prune=confirm"])
def test_a_confirmation_that_either_side_asks_for_is_told(option: str) -> None:
    for sides in ((job(sync_options=option), None), (None, job(sync_options=option))):
        assert resource_of(KEY, *sides, status=SyncStatus.SYNCED).requires_confirmation
    assert resource_of(KEY, job(), None, status=SyncStatus.SYNCED, confirms=True).requires_confirmation


def test_lines_are_sorted_by_group_kind_namespace_and_name() -> None:
    keys = [KEY, KEY._replace(name="a"), KEY._replace(namespace="a"), ResourceKey("", "Service", "z", "z")]
    lines = resources_wire(map(Resource, keys), shows_health=False)
    assert [(line.get("group", ""), line["kind"], line["namespace"], line["name"]) for line in lines] == sorted(keys)


def test_health_is_told_where_it_is_asked_for() -> None:
    resource = Resource(KEY, assessment=Assessment(Health.DEGRADED, "failed"))
    assert "health" not in resources_wire([resource], shows_health=False)[0]
    assert resources_wire([resource], shows_health=True)[0]["health"] == {"status": "Degraded", "message": "failed"}
    assert "health" not in resources_wire([Resource(KEY, assessment=Assessment(None))], shows_health=True)[0]
