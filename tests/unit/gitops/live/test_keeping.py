"""What is kept of a live manifest: all of what applications have, and of the rest no more than is read."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.application import Application
from argosy.gitops.live import ApplicationCachePolicy, TrackingSettings, add_tracking, is_trimmed
from argosy.gitops.live import cache_policy as module
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


def test_who_wrote_what_is_left_out_of_what_nobody_tracks(keeping: ApplicationCachePolicy) -> None:
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


def test_data_is_kept_where_settings_are_and_of_what_is_tracked(keeping: ApplicationCachePolicy) -> None:
    for kind in ("ConfigMap", "Secret"):
        original = {**manifest(kind), "type": "helm.sh/release.v1", "binaryData": {"x": "eA=="}}
        assert keeping.trim(original).keys() == {"apiVersion", "kind", "metadata", "type"}
        assert {"data", "binaryData"} <= keeping.trim(add_tracking(original, APP, TRACKING)).keys()
        original["metadata"]["namespace"] = "argocd"
        assert {"data", "binaryData"} <= keeping.trim(original).keys()
    other = manifest("ConfigMap", "elsewhere.example/v1")
    assert "data" in keeping.trim(other)


def test_of_a_pod_that_a_workload_made_images_and_phase_are_kept(keeping: ApplicationCachePolicy) -> None:
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
def test_of_a_pod_that_nobody_tracks_containers_without_an_image_are_kept(
    keeping: ApplicationCachePolicy, field: str, reason: str, is_kept: bool
) -> None:
    state = {"waiting": {"reason": reason, "message": "no such image"}}
    container = {"name": "main", "image": "web:1", "ready": False, "state": state}
    running = {"name": "other", "image": "web:1", "state": {"running": {}}}
    trimmed = keeping.trim({**manifest("Pod"), "spec": {}, "status": {"phase": "Pending", field: [running, container]}})
    assert trimmed["status"].get(field, []) == ([{"name": "main", "state": state}] if is_kept else [])
    assert trimmed["status"]["phase"] == "Pending"


def test_all_of_what_an_application_tracks_is_kept(keeping: ApplicationCachePolicy) -> None:
    tracked = add_tracking(manifest(), APP, TRACKING)
    assert keeping.requires_full_kind(tracked)
    assert keeping.trim(tracked) == tracked


def test_all_of_an_application_is_kept_for_its_writers_are_read(keeping: ApplicationCachePolicy) -> None:
    application = manifest("Application", "argoproj.io/v1alpha1")
    assert keeping.trim(application) == application
    assert is_trimmed(keeping.trim(manifest("Application", "elsewhere.example/v1")))


def test_fields_that_are_written_alike_are_kept_once(
    keeping: ApplicationCachePolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fields() -> Any:
        trimmed = keeping.trim(add_tracking(manifest(), APP, TRACKING))
        return trimmed["metadata"]["managedFields"][0]["fieldsV1"]

    first = fields()
    assert fields() is first
    monkeypatch.setattr(module, "MAX_SHARED_FIELD_SETS", 1)
    again = fields()
    assert again is not first and again == first  # so many shapes at most


def test_tracking_may_change(keeping: ApplicationCachePolicy) -> None:
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
def test_kinds_of_which_more_than_metadata_is_read(
    keeping: ApplicationCachePolicy, group: str, kind: str, *, is_read: bool
) -> None:
    assert keeping.needs_full_objects(GroupKind(group, kind)) is is_read
