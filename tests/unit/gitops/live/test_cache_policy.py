"""Tests how live manifests are trimmed in the cache: tracked objects stay whole, others keep only what is read."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from argosy.gitops.application import Application
from argosy.gitops.live import ApplicationCachePolicy, TrackingSettings, add_tracking, is_trimmed
from argosy.gitops.live import cached_field_selection as module
from argosy.kube.resource_key import GroupKind

TRACKING = TrackingSettings(control_namespace="argocd")
APP = Application(name="models", namespace="argocd")


def manifest(kind: str = "ConfigMap", api_version: str = "v1", value: str = "x") -> dict[str, Any]:
    fields = {"f:data": {"f:value": {}, f"f:{value}": {}}}
    entry = {"manager": "kubectl", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields}
    metadata = {"name": value, "namespace": "ml", "uid": value, "managedFields": [entry]}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "data": {"value": value}}


@pytest.fixture
def keeping() -> ApplicationCachePolicy:
    return ApplicationCachePolicy(lambda: TRACKING)


def test_managed_fields_and_data_of_untracked_objects_are_dropped(keeping: ApplicationCachePolicy) -> None:
    original = manifest()
    trimmed = keeping.trim(original)
    assert is_trimmed(trimmed) and not is_trimmed(original)
    assert trimmed == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": "ml", "uid": "x"},
    }
    assert keeping.trim(trimmed) is trimmed
    assert not keeping.requires_full_kind(original) and not keeping.is_trimmed_too_much(trimmed)


def test_data_is_kept_in_control_namespace_and_for_tracked_objects(keeping: ApplicationCachePolicy) -> None:
    for kind in ("ConfigMap", "Secret"):
        original = {**manifest(kind), "type": "helm.sh/release.v1", "binaryData": {"x": "eA=="}}
        assert keeping.trim(original).keys() == {"apiVersion", "kind", "metadata", "type"}
        assert {"data", "binaryData"} <= keeping.trim(add_tracking(original, APP, TRACKING)).keys()
        original["metadata"]["namespace"] = "argocd"
        assert {"data", "binaryData"} <= keeping.trim(original).keys()
    other = manifest("ConfigMap", "elsewhere.example/v1")
    assert "data" in keeping.trim(other)


def test_untracked_pod_keeps_images_and_phase(keeping: ApplicationCachePolicy) -> None:
    server = {"name": "server", "image": "registry.example/server:1", "env": [{"name": "A", "value": "b"}]}
    pod = {**manifest("Pod"), "spec": {"containers": [server], "nodeName": "one", "volumes": []}}
    del pod["data"]
    pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    trimmed = keeping.trim(pod)
    assert trimmed["spec"] == {"containers": [{"name": "server", "image": "registry.example/server:1"}]}
    assert trimmed["status"] == {"phase": "Running"}
    assert keeping.trim(add_tracking(pod, APP, TRACKING))["spec"] == pod["spec"]
    assert keeping.trim({**manifest("Pod"), "spec": None})["status"] == {}


@pytest.mark.parametrize("field", ["containerStatuses", "initContainerStatuses"])
@pytest.mark.parametrize(
    ("reason", "is_kept"),
    [("ImagePullBackOff", True), ("InvalidImageName", True), ("ErrImagePull", False), ("ContainerCreating", False)],
)
def test_untracked_pod_keeps_statuses_of_containers_without_image(
    keeping: ApplicationCachePolicy, field: str, reason: str, is_kept: bool
) -> None:
    state = {"waiting": {"reason": reason, "message": "no such image"}}
    container = {"name": "main", "image": "web:1", "ready": False, "state": state}
    running = {"name": "other", "image": "web:1", "state": {"running": {}}}
    trimmed = keeping.trim({**manifest("Pod"), "spec": {}, "status": {"phase": "Pending", field: [running, container]}})
    assert trimmed["status"].get(field, []) == ([{"name": "main", "state": state}] if is_kept else [])
    assert trimmed["status"]["phase"] == "Pending"


def test_tracked_object_is_kept_whole(keeping: ApplicationCachePolicy) -> None:
    tracked = add_tracking(manifest(), APP, TRACKING)
    assert keeping.requires_full_kind(tracked)
    assert keeping.trim(tracked) == tracked


def test_application_is_kept_whole_with_managed_fields(keeping: ApplicationCachePolicy) -> None:
    application = manifest("Application", "argoproj.io/v1alpha1")
    assert keeping.trim(application) == application
    assert is_trimmed(keeping.trim(manifest("Application", "elsewhere.example/v1")))


def test_equal_field_sets_are_shared(keeping: ApplicationCachePolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    def fields() -> Any:
        trimmed = keeping.trim(add_tracking(manifest(), APP, TRACKING))
        return trimmed["metadata"]["managedFields"][0]["fieldsV1"]

    first = fields()
    assert fields() is first
    monkeypatch.setattr(module, "MAX_SHARED_FIELD_SETS", 1)
    again = fields()
    assert again is not first and again == first  # the number of shared field sets is limited


def test_change_of_tracking_method_detects_objects_trimmed_too_much(keeping: ApplicationCachePolicy) -> None:
    tracking = [TrackingSettings(control_namespace="argocd")]
    keeping = ApplicationCachePolicy(lambda: tracking[0])
    labelled = manifest()
    labelled["metadata"]["labels"] = {"app.kubernetes.io/instance": "models"}
    trimmed = keeping.trim(labelled)
    assert not keeping.requires_full_kind(labelled) and not keeping.is_trimmed_too_much(trimmed)
    tracking[0] = TrackingSettings(control_namespace="argocd", method="label")
    assert keeping.requires_full_kind(labelled)
    assert keeping.is_trimmed_too_much(trimmed) and not keeping.is_trimmed_too_much(labelled)


@pytest.mark.parametrize(
    ("group", "kind", "is_read"),
    [
        ("argoproj.io", "Application", True),
        ("", "Secret", True),
        ("", "Pod", True),
        ("mlops.mlops.dev", "NotebookValidationJob", True),
        ("apps", "ReplicaSet", False),
        ("discovery.k8s.io", "EndpointSlice", False),
        ("coordination.k8s.io", "Lease", False),
    ],
)
def test_full_objects_are_needed_only_for_kinds_that_argosy_reads(
    keeping: ApplicationCachePolicy, group: str, kind: str, *, is_read: bool
) -> None:
    assert keeping.needs_full_objects(GroupKind(group, kind)) is is_read


def test_cached_objects_share_equal_texts(keeping: ApplicationCachePolicy) -> None:
    first, second = (
        keeping.trim(add_tracking(orjson.loads(orjson.dumps(manifest(value="settings"))), APP, TRACKING))
        for _ in range(2)
    )
    assert first["metadata"]["namespace"] is second["metadata"]["namespace"]
    assert first["data"]["value"] is second["data"]["value"]
