"""Resource tree nodes and differences in Argo CD's response format."""

from __future__ import annotations

import json
from typing import Any

from argosy.features.applications.read.tree_and_diff_response import (
    build_networking_info,
    diffs_to_wire,
    hosts_to_wire,
    node_to_wire,
)
from argosy.gitops.application.step_results import AppComparison, Assessment, HealthStatus, Pair
from argosy.gitops.live.parent_references import ParentRef
from argosy.gitops.live.resource_tree import ResourceNode
from argosy.kube.resource_key import ResourceKey

KEY = ResourceKey("", "Pod", "ml", "one")
POD: dict[str, Any] = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": "ml", "labels": {"app": "web"}},
    "spec": {"nodeName": "worker"},
}  # fmt: skip


def everything(_: ResourceKey) -> bool:
    return True


def test_node_omits_empty_fields() -> None:
    assert node_to_wire(ResourceNode(KEY, "v1")) == {"version": "v1", "kind": "Pod", "namespace": "ml", "name": "one"}


def test_node_contains_all_known_fields() -> None:
    above = ParentRef(ResourceKey("apps", "ReplicaSet", "ml", "web"), "u2")
    health = Assessment(HealthStatus.DEGRADED, "crashes")
    node = ResourceNode(
        KEY, "v1", "u1", "7", "2026-01-01T00:00:00Z", (above,), ("web:1",), (("Containers", "1/1"),), health
    )
    assert node_to_wire(node, POD) == {
        "version": "v1", "kind": "Pod", "namespace": "ml", "name": "one", "uid": "u1", "resourceVersion": "7",
        "createdAt": "2026-01-01T00:00:00Z", "images": ["web:1"], "info": [{"name": "Containers", "value": "1/1"}],
        "parentRefs": [{"group": "apps", "kind": "ReplicaSet", "namespace": "ml", "name": "web", "uid": "u2"}],
        "health": {"status": "Degraded", "message": "crashes"}, "networkingInfo": {"labels": {"app": "web"}},
    }  # fmt: skip


def test_service_has_target_labels_of_its_selector() -> None:
    service = {**POD, "kind": "Service", "spec": {"selector": {"app": "web"}}}
    assert build_networking_info(service) == {"targetLabels": {"app": "web"}}


def test_hosts_are_the_nodes_of_the_applications_pods() -> None:
    status = {"nodeInfo": {"architecture": "amd64"}}
    nodes = [{"metadata": {"name": name}, "status": status} for name in ("other", "worker")]
    assert hosts_to_wire(nodes, [POD]) == [{"name": "worker", "systemInfo": {"architecture": "amd64"}}]


def test_missing_live_or_target_state_is_null() -> None:
    new = Pair(KEY, POD, None, True, predicted=POD)
    (item,) = diffs_to_wire(AppComparison([new]), (), everything)
    assert item["liveState"] == item["normalizedLiveState"] == "null" and item["modified"] is True
    assert json.loads(item["targetState"])["metadata"]["name"] == "one"
    gone = Pair(KEY, None, POD, True)
    (item,) = diffs_to_wire(AppComparison([gone]), (), everything)
    assert item["targetState"] == "null" and json.loads(item["liveState"])["kind"] == "Pod"


def test_diffs_have_managed_fields_only_in_the_live_state_and_omit_objects_that_are_filtered_out() -> None:
    live = {**POD, "metadata": {**POD["metadata"], "managedFields": [{"manager": "x"}], "resourceVersion": "9"}}
    (item,) = diffs_to_wire(AppComparison([Pair(KEY, POD, live, False)]), (), everything)
    assert [name for name in item if "managedFields" in str(item[name])] == ["liveState"]
    assert item["resourceVersion"] == "9" and "modified" not in item
    assert diffs_to_wire(AppComparison([Pair(KEY, POD, live, False)]), (), lambda key: False) == []


def test_hook_diff_is_marked_as_hook() -> None:
    hook = {**POD, "metadata": {**POD["metadata"], "annotations": {"argocd.argoproj.io/hook": "PreSync"}}}
    (item,) = diffs_to_wire(AppComparison(hooks=[hook]), (), everything)
    assert item["hook"] is True and item["liveState"] == "null"
