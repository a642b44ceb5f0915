"""Settings in argocd-cm, clusters with namespaces, Applications in other namespaces, service accounts of projects."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.argocd.pair import CONTROL
from support.argocd.story import Story

pytestmark = pytest.mark.tier("argocd")

ARGOCD_CM = f"/api/v1/namespaces/{CONTROL}/configmaps/argocd-cm"
DEPLOYMENTS = "/apis/apps/v1/deployments"
EXCLUDED = """
- apiGroups: [""]
  kinds: [Secret]
"""
INCLUDED = """
- apiGroups: ["", apps]
  kinds: [ConfigMap, Deployment, ReplicaSet, Pod, Namespace]
"""
HEALTH_OF_CONFIG_MAPS = """
hs = {status = "Healthy", message = "has a value"}
if obj.data.value == "2" then
  hs = {status = "Degraded", message = "must not be 2"}
end
return hs
"""


def config_map(name: str = "settings", value: str = "1", **annotations: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if annotations:
        metadata["annotations"] = {
            f"argocd.argoproj.io/{key.replace('_', '-')}": text for key, text in annotations.items()
        }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


def secret(name: str = "token") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"token": "YQ=="}}


def deployment(replicas: int = 1) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


@contextlib.contextmanager
def change_settings(story: Story, **settings: str) -> Iterator[None]:
    """Set keys of argocd-cm on both sides, and remove them at the end of the story."""
    keys = {name.replace("__", "/").replace("_", "."): text for name, text in settings.items()}
    story.pair.patch(ARGOCD_CM, {"data": keys})
    try:
        yield
    finally:
        story.pair.patch(ARGOCD_CM, {"data": dict.fromkeys(keys)})


def create_project(story: Story, **spec: Any) -> str:
    rules = {
        "sourceRepos": ["*"],
        "destinations": [{"namespace": "*", "server": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        **spec,
    }
    metadata = {"name": f"p-{story.name}", "namespace": CONTROL}
    story.pair.apply({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": rules})
    return metadata["name"]


def deliver_two_versions(story: Story, **settings: Any) -> None:
    story.push({"settings.yaml": config_map(), "web.yaml": deployment()})
    story.deliver(**settings)
    story.sync()
    story.check()
    story.push({"settings.yaml": config_map(value="2")})
    story.refresh()
    story.check()
    story.sync()
    story.check()


@pytest.mark.parametrize("method", ["label", "annotation", "annotation+label"])
def test_tracking_method(story: Story, method: str) -> None:
    with change_settings(story, application_resourceTrackingMethod=method):
        deliver_two_versions(story)


def test_tracking_by_another_label(story: Story) -> None:
    settings = {
        "application_resourceTrackingMethod": "label",
        "application_instanceLabelKey": "example.com/delivered-by",
    }
    with change_settings(story, **settings):
        deliver_two_versions(story)


def test_tracking_with_an_installation_id(story: Story) -> None:
    with change_settings(story, installationID="one"):
        deliver_two_versions(story)


@pytest.mark.parametrize(
    "setting", [{"resource_exclusions": EXCLUDED}, {"resource_inclusions": INCLUDED}], ids=["exclusions", "inclusions"]
)
def test_excluded_kinds(story: Story, setting: dict[str, str]) -> None:
    story.push({"settings.yaml": config_map(), "token.yaml": secret()})
    with change_settings(story, **setting):
        story.deliver()
        story.check()
        story.sync()
        story.check()


@pytest.mark.parametrize(
    "ignored",
    [
        "jsonPointers: [/spec/replicas]",
        "jqPathExpressions: [.spec.replicas]",
        "managedFieldsManagers: [scaler]",
        "jqpathexpressions: []\njsonpointers:\n- /spec/replicas\nmanagedfieldsmanagers: []\n",
    ],
    ids=["pointer", "jq", "manager", "as-the-operator-writes-it"],
)
def test_ignored_differences_of_a_kind(story: Story, ignored: str) -> None:
    story.push({"web.yaml": deployment()})
    with change_settings(story, resource_customizations_ignoreDifferences_apps_Deployment=ignored):
        story.deliver()
        story.sync()
        story.check()
        story.edit(f"{DEPLOYMENTS}/web?fieldManager=scaler", {"spec": {"replicas": 3}})
        story.refresh()
        story.check()


@pytest.mark.parametrize("status", ["all", "crd", "none"])
def test_status_fields_are_compared(story: Story, status: str) -> None:
    web = {**deployment(), "status": {"replicas": 7}}
    story.push({"web.yaml": web})
    with change_settings(story, resource_compareoptions=f"ignoreResourceStatusField: {status}"):
        story.deliver()
        story.sync()
        story.check()


def test_health_of_a_kind(story: Story) -> None:
    with change_settings(story, resource_customizations_health_ConfigMap=HEALTH_OF_CONFIG_MAPS):
        deliver_two_versions(story)


@pytest.mark.parametrize(
    "options", ["ServerSideDiff=true", "ServerSideDiff=true,IncludeMutationWebhook=true", "ServerSideDiff=false"]
)
@pytest.mark.parametrize("sync_option", ["", "ServerSideApply=true"], ids=["client", "server"])
def test_diff_strategy(story: Story, options: str, sync_option: str) -> None:
    metadata = {"annotations": {"argocd.argoproj.io/compare-options": options}}
    deliver_two_versions(story, metadata=metadata, options=[sync_option] if sync_option else [])
    story.edit(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 3}, "metadata": {"labels": {"by": "hand"}}})
    story.refresh()
    story.check()


@pytest.mark.parametrize(
    ("settings", "accounts"),
    [
        ({}, [{"server": "*", "namespace": "*", "defaultServiceAccount": "deployer"}]),
        ({}, [{"server": "*", "namespace": "other", "defaultServiceAccount": "deployer"}]),
        ({"application_sync_impersonation_enforced": "false"},
         [{"server": "*", "namespace": "other", "defaultServiceAccount": "deployer"}]),
        ({}, []),
    ],
    ids=["any namespace", "another namespace", "not enforced", "none"],
)  # fmt: skip
def test_service_account_of_a_project(story: Story, settings: dict[str, str], accounts: list[dict[str, str]]) -> None:
    story.push({"settings.yaml": config_map()})
    project = create_project(story, destinationServiceAccounts=accounts)
    with change_settings(story, application_sync_impersonation_enabled="true", **settings):
        story.deliver(project=project)
        story.sync()
        story.check()


def test_cluster_with_namespaces(story: Story) -> None:
    """The Secret of the local cluster permits the namespace of the story, and then another one."""
    server = "https://kubernetes.default.svc"
    data = {"name": "in-cluster", "server": server, "namespaces": story.namespace}
    data["config"] = json.dumps({"tlsClientConfig": {"insecure": False}})
    labels = {"argocd.argoproj.io/secret-type": "cluster"}
    metadata = {"name": "cluster-of-a-story", "namespace": CONTROL, "labels": labels}
    path = f"/api/v1/namespaces/{CONTROL}/secrets/{metadata['name']}"
    story.push({"settings.yaml": config_map()})
    story.pair.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": story.namespace}})
    story.pair.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})
    try:
        story.deliver(policy={"syncOptions": []})
        story.sync()
        story.check()
        story.pair.patch(path, {"stringData": {"namespaces": "other"}})
        story.refresh("hard")
        story.check()
    finally:
        story.pair.delete(path)


def test_application_in_another_namespace(story: Story) -> None:
    project = create_project(story, sourceNamespaces=["team-*"])
    story.pair.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-ml"}})
    deliver_two_versions(story, project=project, metadata={"namespace": "team-ml"})


def test_application_in_another_namespace_that_its_project_does_not_list(story: Story) -> None:
    story.push({"settings.yaml": config_map()})
    story.pair.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-web"}})
    story.deliver(project=create_project(story, sourceNamespaces=["team-ml"]), metadata={"namespace": "team-web"})
    story.check()
