"""Rollbacks, terminated operations, projects that refuse, sync windows and Applications of Applications."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.argocd.pair import CONTROL, Side
from support.argocd.story import Story
from support.deadlines import wait_until

pytestmark = pytest.mark.tier("argocd")

PROJECTS = f"/apis/argoproj.io/v1alpha1/namespaces/{CONTROL}/appprojects"


def config_map(name: str = "settings", value: str = "1", **annotations: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if annotations:
        metadata["annotations"] = {
            f"argocd.argoproj.io/{key.replace('_', '-')}": text for key, text in annotations.items()
        }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


def create_project(story: Story, **spec: Any) -> str:
    rules = {
        "sourceRepos": ["*"],
        "destinations": [{"namespace": "*", "server": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        **spec,
    }
    name = f"p-{story.name}"
    metadata = {"name": name, "namespace": CONTROL}
    story.pair.apply({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": rules})
    return name


def test_rollback_to_an_earlier_revision(story: Story) -> None:
    first_revision = story.push({"settings.yaml": config_map(), "extra.yaml": config_map("extra")})
    story.deliver()
    story.sync()
    story.check()
    story.push({"settings.yaml": config_map(value="2"), "extra.yaml": None})
    story.refresh()
    story.sync(prune=True)
    story.check()
    story.sync(revision=first_revision)
    story.check()
    story.refresh()
    story.check()


def build_running_job(**annotations: str) -> dict[str, Any]:
    pod = {
        "metadata": {"annotations": {"sandbox.argosy.dev/run-for": "1h"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "train", "image": "trainer:1"}]},
    }
    job = config_map("train", **annotations)
    return {**job, "apiVersion": "batch/v1", "kind": "Job", "data": None, "spec": {"template": pod}}


@pytest.mark.parametrize("annotations", [{"hook": "PreSync"}, {"sync_wave": "-1"}], ids=["hook", "wave"])
def test_sync_that_is_terminated(story: Story, annotations: dict[str, str]) -> None:
    story.push({"train.yaml": build_running_job(**annotations), "settings.yaml": config_map()})
    story.deliver()
    story.sync()
    story.wait_for_object(f"/apis/batch/v1/namespaces/{story.namespace}/jobs/train")
    story.pair.terminate_operation(story.name)
    story.check()
    story.refresh()
    story.check()


def test_event_of_a_sync_without_a_revision(story: Story) -> None:
    """Local manifests have no revision; the Event has an empty one between two spaces."""
    story.push({"settings.yaml": config_map()})
    story.deliver()
    story.sync(manifests=[json.dumps(config_map(value="2"))])

    def list_messages(side: Side) -> list[str]:
        events = side.get("/api/v1/events")["items"]
        own_events = [event for event in events if event["involvedObject"]["name"] == story.name]
        return [event["message"] for event in own_events if event["reason"] == "OperationCompleted"]

    for side in story.pair.sides:
        wait_until(lambda side=side: list_messages(side), f"{side.name} syncs {story.name}")
        assert list_messages(side) == ["Sync operation to  succeeded"], side.name


@pytest.mark.parametrize("limit", [1, 3])
def test_history_has_a_limit(story: Story, limit: int) -> None:
    story.push({"settings.yaml": config_map()})
    story.deliver(revisionHistoryLimit=limit)
    for value in ("2", "3", "4"):
        story.sync()
        story.check()
        story.push({"settings.yaml": config_map(value=value)})
        story.refresh()
    story.check()


def test_sync_that_finds_nothing_to_do(story: Story) -> None:
    story.push({"settings.yaml": config_map()})
    story.deliver()
    story.sync()
    story.check()
    story.sync()
    story.check()


RULES: dict[str, dict[str, Any]] = {
    "repository": {"sourceRepos": ["https://git.example/*"]},
    "destination": {"destinations": [{"namespace": "other", "server": "*"}]},
    "kind": {"namespaceResourceBlacklist": [{"group": "", "kind": "ConfigMap"}]},
    "other kinds only": {"namespaceResourceWhitelist": [{"group": "apps", "kind": "Deployment"}]},
    "no cluster-scoped kinds": {"clusterResourceWhitelist": []},
    "source namespaces": {"sourceNamespaces": ["other"]},
}


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
def test_project_that_refuses(story: Story, rules: dict[str, Any]) -> None:
    story.push({"settings.yaml": config_map()})
    story.deliver(project=create_project(story, **rules))
    story.sync()
    story.check()


@pytest.mark.parametrize(
    "window",
    [
        {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]},
        {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"], "manualSync": True},
        {"kind": "allow", "schedule": "* * * * *", "duration": "1h", "applications": ["other"]},
        {"kind": "allow", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]},
    ],
    ids=["deny", "deny automated", "allow another", "allow"],
)
@pytest.mark.parametrize("is_automated", [True, False], ids=["automated", "manual"])
def test_sync_window(story: Story, window: dict[str, Any], is_automated: bool) -> None:
    story.push({"settings.yaml": config_map()})
    project = create_project(story, syncWindows=[window])
    story.deliver(project=project, **({"automated": {}} if is_automated else {}))
    if not is_automated and window["kind"] == "allow" and window["applications"] == ["*"]:
        story.sync()
    story.check()


def test_application_of_applications(story: Story) -> None:
    child = story.build_application(automated={})
    child["metadata"]["name"] = child_name = f"{story.name}-child"
    child["spec"]["source"]["path"] = "child"
    story.push({"child.yaml": child})
    story.repository.push({"child/settings.yaml": config_map()})
    story.deliver()
    story.sync()
    story.pair.wait_until_quiet([child_name])
    story.check()
    assert story.pair.compare_application(child_name) == []


def test_application_of_applications_is_deleted_with_its_children(story: Story) -> None:
    finalizers = ["resources-finalizer.argocd.argoproj.io"]
    child = story.build_application(automated={}, metadata={"name": f"{story.name}-child", "finalizers": finalizers})
    child["spec"]["source"]["path"] = "child"
    story.push({"child.yaml": child})
    story.repository.push({"child/settings.yaml": config_map()})
    story.deliver(metadata={"finalizers": finalizers})
    story.sync()
    story.pair.wait_until_quiet([child["metadata"]["name"]])
    story.check()
    story.delete_application()
    story.wait_until_deleted()
    story.check()


def test_orphaned_resources(story: Story) -> None:
    story.push({"settings.yaml": config_map()})
    story.deliver(project=create_project(story, orphanedResources={"warn": True}))
    story.sync()
    story.check()
    for side in story.pair.sides:
        stray = config_map("stray")
        side.apply([{**stray, "metadata": {"name": "stray", "namespace": story.namespace}}])
    story.refresh()
    story.check()


@pytest.mark.parametrize("option", ["IgnoreExtraneous", "IgnoreResourceStatusField"])
def test_compare_options_of_an_object(story: Story, option: str) -> None:
    story.push({"settings.yaml": config_map(compare_options=option), "other.yaml": config_map("other")})
    story.deliver()
    story.sync()
    story.check()
    story.push({"settings.yaml": None})
    story.refresh()
    story.check()


def test_deleted_object_is_out_of_sync(story: Story) -> None:
    story.push({"settings.yaml": config_map(), "other.yaml": config_map("other")})
    story.deliver()
    story.sync()
    story.check()
    story.delete("/api/v1/configmaps/settings")
    story.check()


def test_application_moves_to_another_namespace(story: Story) -> None:
    story.push({"settings.yaml": config_map()})
    story.deliver()
    story.sync()
    story.check()
    story.pair.patch_application(story.name, {"spec": {"destination": {"namespace": f"{story.name}-2"}}})
    story.check()
    story.sync(prune=True)
    story.check()


def test_application_changes_its_path(story: Story) -> None:
    story.push({"settings.yaml": config_map()})
    story.repository.push({"other/other.yaml": config_map("other")})
    story.deliver()
    story.sync()
    story.check()
    story.pair.patch_application(story.name, {"spec": {"source": {"path": "other"}}})
    story.check()
    story.sync(prune=True)
    story.check()
