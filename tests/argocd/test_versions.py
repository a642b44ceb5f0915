"""What changed between versions of Argo CD: fields that the kinds of older versions do not have, and other defaults."""

from __future__ import annotations

from typing import Any, Final

import pytest

from support.argocd.pair import CONTROL
from support.argocd.programs import Installation
from support.argocd.story import Story

pytestmark = pytest.mark.tier("argocd")

ARGOCD_CM: Final = f"/api/v1/namespaces/{CONTROL}/configmaps/argocd-cm"
TRACKING_METHOD: Final = "application.resourceTrackingMethod"
# The first versions whose kinds have the field.
ENABLED_OF_AUTOMATED_SYNC: Final = (3, 1)
NAMES_OF_CLUSTER_RESOURCES: Final = (3, 3)


def config_map(name: str = "settings") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": "1"}}


def create(story: Story, manifest: dict[str, Any], plural: str) -> None:
    """Create an object of Argo CD on both sides without validation: the cluster drops fields that it does not know."""
    path = f"/apis/argoproj.io/v1alpha1/namespaces/{CONTROL}/{plural}"
    for side in story.pair.sides:
        answer = side.server.request("POST", path, manifest)
        assert answer.code == 201, f"{side.name}: {answer.body!r}"


def read_sync_status(story: Story) -> list[str]:
    """Return the sync status on both sides."""
    return [side.list_applications()[story.name]["status"]["sync"]["status"] for side in story.pair.sides]


def test_tracking_without_a_setting(story: Story) -> None:
    before = (story.pair.argocd.get(ARGOCD_CM).get("data") or {}).get(TRACKING_METHOD)
    story.pair.patch(ARGOCD_CM, {"data": {TRACKING_METHOD: None}})
    try:
        story.push({"settings.yaml": config_map(), "other.yaml": config_map("other")})
        story.deliver()
        story.sync()
        story.check()
        story.push({"other.yaml": None})
        story.refresh()
        story.check()
        story.sync(prune=True)
        story.check()
    finally:
        story.pair.patch(ARGOCD_CM, {"data": {TRACKING_METHOD: before}})


def test_automated_sync_that_is_not_enabled(story: Story, installation: Installation) -> None:
    story.push({"settings.yaml": config_map()})
    create(story, story.build_application(automated={"enabled": False}), "applications")
    story.pair.wait_until_settled(story.name)
    story.check()
    is_kept = installation.version >= ENABLED_OF_AUTOMATED_SYNC
    assert read_sync_status(story) == ["OutOfSync" if is_kept else "Synced"] * 2


def test_project_that_permits_cluster_resources_by_name(story: Story, installation: Installation) -> None:
    name = f"p-{story.name}"
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": f"other-{name}"}}
    kinds = [{"group": "", "kind": "Namespace"}, {"group": "rbac.authorization.k8s.io", "kind": "ClusterRole"}]
    rules = {
        "sourceRepos": ["*"],
        "destinations": [{"namespace": "*", "server": "*"}],
        "clusterResourceWhitelist": [kinds[0], {**kinds[1], "name": "permitted-*"}],
    }
    metadata = {"name": name, "namespace": CONTROL}
    project = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": rules}
    create(story, project, "appprojects")
    story.push({"role.yaml": {**role, "rules": []}})
    story.deliver(project=name)
    story.sync()
    story.check()
    is_kept = installation.version >= NAMES_OF_CLUSTER_RESOURCES
    assert read_sync_status(story) == ["OutOfSync" if is_kept else "Synced"] * 2


def test_status_in_git(story: Story) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx:1"}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        "status": {"replicas": 5},
    }
    story.push({"web.yaml": deployment})
    story.deliver()
    story.sync()
    story.check()


def test_definition_that_preserves_no_unknown_fields(story: Story) -> None:
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.versions.example.com"},
        "spec": {
            "group": "versions.example.com",
            "names": names,
            "scope": "Namespaced",
            "preserveUnknownFields": False,
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    story.push({"definition.yaml": definition})
    story.deliver()
    story.sync()
    story.check()
