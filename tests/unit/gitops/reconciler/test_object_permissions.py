"""What a sync may delete while it is unknown which kinds a cluster serves."""

from __future__ import annotations

from typing import Any, cast

import pytest

from argosy.gitops.application import read_application
from argosy.gitops.application.project_spec import read_project
from argosy.gitops.live import TrackingSettings
from argosy.gitops.reconciler.desired_state_builder import place_and_track
from argosy.gitops.reconciler.object_permission_and_deletion_check import find_deletion_refusal
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.sync.sync_options import SyncOptions
from argosy.kube.client import KindInfo
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind

CLASS = GroupKind("example.com", "MachineClass")
KINDS = {CLASS: KindInfo("v1", "machineclasses", False)}
APP = read_application(
    {"metadata": {"name": "models", "namespace": "argocd"}, "spec": {"destination": {"server": "*", "namespace": "ml"}}}
)
PROJECT = read_project({"metadata": {"name": "default"}, "spec": {
    "destinations": [{"server": "*", "namespace": "*"}],
    "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
}})  # fmt: skip
WRITTEN: Manifest = {"apiVersion": "example.com/v1", "kind": "MachineClass", "metadata": {"name": "large"}}


@pytest.mark.parametrize(
    ("kinds", "options", "word"),
    [
        (KINDS, SyncOptions.from_lists(()), ""),
        ({}, SyncOptions.from_lists(()), "its kind is not served at the moment"),
        ({}, None, ""),  # the Application itself is deleted; its objects need not be served
    ],
)
def test_object_of_a_kind_that_is_not_served_is_not_pruned(
    kinds: dict[GroupKind, KindInfo], options: SyncOptions | None, word: str
) -> None:
    rules = ReconcilerSettings(cast(Repositories, None), cast(Any, None), tracking=TrackingSettings())
    (live,), _ = place_and_track(APP, [WRITTEN], rules, KINDS)
    (desired,), _ = place_and_track(APP, [WRITTEN], rules, kinds)
    assert (key_of(live) == key_of(desired)) is bool(kinds)  # without its kind it would have another key
    refusal = find_deletion_refusal(live, APP, PROJECT, rules, kinds, options)
    assert refusal.startswith(word) and bool(refusal) is bool(word)
