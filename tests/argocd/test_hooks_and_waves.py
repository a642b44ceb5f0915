"""Hooks of every phase and delete policy, sync waves and generateName: Argo CD and argosy do the same."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from support.argocd.pair import APPLICATIONS, CONTROL
from support.argocd.story import Story
from support.deadlines import wait_until

pytestmark = pytest.mark.tier("argocd")

PHASES = ("PreSync", "Sync", "PostSync", "SyncFail", "PreDelete", "PostDelete", "Skip")
DELETE_POLICIES = ("HookSucceeded", "HookFailed", "BeforeHookCreation")


def config_map(name: str, value: str = "1", **annotations: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if annotations:
        metadata["annotations"] = {
            f"argocd.argoproj.io/{key.replace('_', '-')}": text for key, text in annotations.items()
        }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


def job(name: str, command: str = "true", *, is_generated: bool = False, **annotations: str) -> dict[str, Any]:
    key = "generateName" if is_generated else "name"
    fails = {"sandbox.argosy.dev/fail": "Exit"} if command == "false" else {}
    texts = {f"argocd.argoproj.io/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {key: f"{name}-" if is_generated else name, "annotations": {**texts, **fails}},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "busybox:1", "command": [command]}],
                }
            },
        },
    }


@pytest.mark.parametrize(("phase", "policy"), list(itertools.product(PHASES, (*DELETE_POLICIES, ""))))
def test_hook_that_succeeds(story: Story, phase: str, policy: str) -> None:
    annotations = {"hook": phase, **({"hook_delete_policy": policy} if policy else {})}
    story.push({"hook.yaml": job("hook", **annotations), "settings.yaml": config_map("settings")})
    story.deliver()
    story.sync()
    story.check()
    story.push({"settings.yaml": config_map("settings", "2")})
    story.refresh()
    story.sync()
    story.check()


@pytest.mark.parametrize(("phase", "policy"), list(itertools.product(PHASES[:4], DELETE_POLICIES)))
def test_hook_that_fails(story: Story, phase: str, policy: str) -> None:
    story.push({
        "hook.yaml": job("hook", "false", hook=phase, hook_delete_policy=policy),
        "settings.yaml": config_map("settings"),
        "cleanup.yaml": job("cleanup", hook="SyncFail"),
    })  # fmt: skip
    story.deliver()
    story.sync()
    story.check()


@pytest.mark.parametrize("phase", PHASES)
def test_hook_with_a_generated_name(story: Story, phase: str) -> None:
    story.push({"hook.yaml": job("hook", is_generated=True, hook=phase), "settings.yaml": config_map("settings")})
    story.deliver()
    story.sync()
    story.check()


def test_object_with_a_generated_name_that_is_no_hook(story: Story) -> None:
    story.push({"job.yaml": job("import", is_generated=True), "settings.yaml": config_map("settings")})
    story.deliver()
    story.sync()
    story.check()


def test_object_with_a_generated_name_that_is_created(story: Story) -> None:
    options = {"sync_options": "Force=true,Replace=true"}
    story.push({"job.yaml": job("import", is_generated=True, **options), "settings.yaml": config_map("settings")})
    story.deliver()
    story.sync()
    story.check()
    story.sync()
    story.check()


@pytest.mark.parametrize("waves", [("0", "1", "2"), ("-5", "0", "5"), ("1", "1", "x")])
def test_waves(story: Story, waves: tuple[str, ...]) -> None:
    story.push({f"{number}.yaml": config_map(f"config-{number}", sync_wave=wave) for number, wave in enumerate(waves)})
    story.deliver()
    story.sync()
    story.check()


def test_wave_after_a_hook_that_fails_is_not_applied(story: Story) -> None:
    story.push({
        "hook.yaml": job("hook", "false", hook="Sync", sync_wave="1"),
        "early.yaml": config_map("early", sync_wave="0"),
        "late.yaml": config_map("late", sync_wave="2"),
    })  # fmt: skip
    story.deliver()
    story.sync()
    story.check()


@pytest.mark.parametrize("option", ["", "PruneLast=true"])
def test_prune_in_waves(story: Story, option: str) -> None:
    options = {"options": [option]} if option else {}
    story.push(
        {f"{name}.yaml": config_map(name, sync_wave=wave) for name, wave in (("a", "0"), ("b", "1"), ("c", "2"))}
    )
    story.deliver(**options)
    story.sync()
    story.check()
    story.push({"a.yaml": None, "c.yaml": None, "d.yaml": config_map("d")})
    story.refresh()
    story.sync(prune=True)
    story.check()


@pytest.mark.parametrize("finalizers", [(), ("resources-finalizer.argocd.argoproj.io",)], ids=["plain", "cascading"])
@pytest.mark.parametrize(
    ("phase", "policy"), list(itertools.product(("PreDelete", "PostDelete"), ("HookSucceeded", "")))
)
def test_deletion_hook(story: Story, phase: str, policy: str, finalizers: tuple[str, ...]) -> None:
    annotations = {"hook": phase, **({"hook_delete_policy": policy} if policy else {})}
    story.push({"hook.yaml": job("hook", **annotations), "settings.yaml": config_map("settings")})
    story.deliver(metadata={"finalizers": list(finalizers)})
    story.sync()
    story.check()
    story.delete_application()
    story.wait_until_deleted()
    story.check_objects()


def test_forbidden_deletion_hook(story: Story) -> None:
    hook = job("hook", hook="PreDelete")
    hook["metadata"]["namespace"] = "kube-system"
    story.push({"hook.yaml": hook, "settings.yaml": config_map("settings")})
    project = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": story.name, "namespace": CONTROL},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": story.namespace}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    }
    story.pair.apply(project)
    story.deliver(project=story.name)
    story.sync()
    story.delete_application()
    path = f"{APPLICATIONS}/{story.name}"
    for side in story.pair.sides:
        wait_until(lambda side=side: "DeletionError" in str(side.get(path)["status"]), f"{side.name} refuses the hook")
    for side in story.pair.sides:
        assert side.get("/apis/batch/v1/namespaces/kube-system/jobs/hook") is None
