"""Tests whether a Pod whose image cannot be pulled still matches what its owners specify."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.live.stuck_containers import is_image_current, is_old_replica_set

RUNTIME = {"kind": "ServingRuntime", "spec": {"containers": [{"name": "main", "image": "server:2"}]}}
BY_FORMAT = {"kind": "InferenceService", "spec": {"predictor": {"model": {"modelFormat": {"name": "sklearn"}}}}}
BARE = {"kind": "ReplicaSet", "metadata": {"name": "web"}}  # as the cache of the controller stores an untracked object


def pod(image: str, field: str = "containers") -> dict[str, Any]:
    return {"kind": "Pod", "spec": {field: [{"name": "other", "image": "other:1"}, {"name": "main", "image": image}]}}


def workload(image: str, field: str = "containers", kind: str = "Deployment") -> dict[str, Any]:
    template = {"spec": {field: [{"name": "main", "image": image}]}}
    if kind == "CronJob":
        return {"kind": kind, "spec": {"jobTemplate": {"spec": {"template": template}}}}
    return {"kind": kind, "spec": {"template": template}}


@pytest.mark.parametrize(
    ("image", "owners", "others", "is_current"),
    [
        ("web:2", [workload("web:2")], [], True),
        ("web:1", [workload("web:2")], [], False),
        ("web:1", [workload("web:2"), workload("web:1", kind="ReplicaSet")], [], False),
        ("web:1", [workload("web:2")], [workload("web:1")], False),
        ("web:2", [workload("web:2", kind="CronJob"), workload("web:2", kind="Job")], [], True),
        ("web:1", [workload("web:2", kind="CronJob")], [], False),
        ("web:1", [{"kind": "NotebookValidationJob", "spec": {"podConfig": {"containerImage": "web:1"}}}], [], True),
        ("server:2", [BY_FORMAT, BARE], [RUNTIME], True),
        ("server:1", [BY_FORMAT, BARE], [RUNTIME], False),
        ("server:2", [BY_FORMAT, workload("server:2")], [], True),
        ("server:1", [BY_FORMAT, workload("server:2"), workload("server:1", kind="ReplicaSet")], [], False),
        ("web:1", [pod("web:1")], [], True),
        ("", [workload("")], [], False),
        ("web:1", [], [], False),
        ("web:1", [{"kind": "Odd", "spec": None}, {"kind": "Odder", "spec": [1, None]}], [], False),
    ],
)
def test_image_is_current_if_the_owners_would_use_it_again(
    image: str, owners: list[dict[str, Any]], others: list[dict[str, Any]], is_current: bool
) -> None:
    assert is_image_current(pod(image), "main", owners, others) is is_current


def test_init_containers_count_but_containers_missing_in_template_do_not() -> None:
    owners = [workload("fetch:1", "initContainers")]
    assert is_image_current(pod("fetch:1", "initContainers"), "main", owners)
    assert not is_image_current(pod("fetch:1", "initContainers"), "other", owners)
    assert not is_image_current(pod("fetch:1"), "injected", owners)


@pytest.mark.parametrize(
    ("revision", "newest", "owner", "is_old"),
    [("1", "2", "Deployment", True), ("2", "2", "Deployment", False), (None, "2", "Deployment", False),
     ("1", None, "Deployment", False), ("1", "2", "Rollout", False)],
)  # fmt: skip
def test_replica_set_is_old_if_its_deployment_has_another_revision(
    revision: str | None, newest: str | None, owner: str, is_old: bool
) -> None:
    def numbered(kind: str, number: str | None) -> dict[str, Any]:
        return {"kind": kind, "metadata": {"annotations": number and {"deployment.kubernetes.io/revision": number}}}

    assert is_old_replica_set(numbered("ReplicaSet", revision), numbered(owner, newest)) is is_old
