"""Sync options, one by one, on objects and on Applications: Argo CD and argosy do the same."""

from __future__ import annotations

from typing import Any

import pytest

from support.argocd.story import Story

pytestmark = pytest.mark.tier("argocd")

CONFIG_MAPS = "/api/v1/configmaps"
DEPLOYMENTS = "/apis/apps/v1/deployments"


def config_map(name: str = "settings", value: str = "1", options: str = "", **metadata: Any) -> dict[str, Any]:
    if options:
        metadata["annotations"] = {"argocd.argoproj.io/sync-options": options, **metadata.get("annotations", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"value": value}}


def deployment(replicas: int = 1, **spec: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "nginx:1"}]},
            },
            **spec,
        },
    }


@pytest.mark.parametrize(
    "option",
    ["Prune=false", "Replace=true", "Force=true", "Force=true,Replace=true", "ServerSideApply=true", "Validate=false",
     "SkipDryRunOnMissingResource=true", "PruneLast=true", "Delete=false", "Delete=confirm", "Prune=confirm",
     "ClientSideApplyMigration=false"],
)  # fmt: skip
def test_option_of_an_object(story: Story, option: str) -> None:
    story.push({"settings.yaml": config_map(options=option), "other.yaml": config_map("other")})
    story.deliver()
    story.sync()
    story.check()
    story.push({"settings.yaml": config_map(value="2", options=option)})
    story.refresh()
    story.sync()
    story.check()
    story.push({"settings.yaml": None})
    story.refresh()
    story.sync(prune=True)
    story.check()


@pytest.mark.parametrize(
    "option",
    ["Replace=true", "ServerSideApply=true", "ApplyOutOfSyncOnly=true", "Validate=false", "PruneLast=true",
     "RespectIgnoreDifferences=true", "FailOnSharedResource=true", "SkipDryRunOnMissingResource=true",
     "PrunePropagationPolicy=foreground", "PrunePropagationPolicy=background", "PrunePropagationPolicy=orphan",
     "ClientSideApplyMigration=false"],
)  # fmt: skip
def test_option_of_an_application(story: Story, option: str) -> None:
    story.push({"settings.yaml": config_map(), "web.yaml": deployment(), "other.yaml": config_map("other")})
    story.deliver(options=[option])
    story.sync()
    story.check()
    story.push({"settings.yaml": config_map(value="2"), "web.yaml": deployment(2), "other.yaml": None})
    story.refresh()
    story.sync(prune=True)
    story.check()


@pytest.mark.parametrize(
    "automated", [{}, {"prune": True}, {"selfHeal": True}, {"prune": True, "selfHeal": True}, {"enabled": False}]
)
def test_automated_sync(story: Story, automated: dict[str, Any]) -> None:
    story.push({"settings.yaml": config_map(), "other.yaml": config_map("other")})
    story.deliver(automated=automated)
    story.check()
    if automated.get("enabled") is not False:
        story.edit(f"{CONFIG_MAPS}/settings", {"data": {"value": "live"}})
        story.check()
    story.push({"other.yaml": None})
    story.refresh()
    story.check()


@pytest.mark.parametrize("allow_empty", [False, True])
def test_automated_prune_of_everything(story: Story, allow_empty: bool) -> None:
    story.push({"settings.yaml": config_map()})
    story.deliver(automated={"prune": True, "allowEmpty": allow_empty})
    story.check()
    story.push({"settings.yaml": None, "README": "empty"})
    story.refresh()
    story.check()


def test_managed_namespace_metadata(story: Story) -> None:
    story.push({"settings.yaml": config_map()})
    metadata = {"labels": {"team": "ml"}, "annotations": {"note": "made"}}
    story.deliver(policy={"managedNamespaceMetadata": metadata})
    story.sync()
    story.check()


def test_sync_of_selected_resources(story: Story) -> None:
    story.push({"settings.yaml": config_map(), "other.yaml": config_map("other")})
    story.deliver()
    story.sync(resources=[{"kind": "ConfigMap", "name": "other"}])
    story.check()


def test_dry_run(story: Story) -> None:
    story.push({"settings.yaml": config_map()})
    story.deliver()
    story.sync(dryRun=True)
    story.check()


def test_apply_strategy_runs_no_hooks(story: Story) -> None:
    hook = config_map("hook")
    hook["metadata"]["annotations"] = {"argocd.argoproj.io/hook": "PreSync"}
    story.push({"settings.yaml": config_map(), "hook.yaml": hook})
    story.deliver()
    story.sync(syncStrategy={"apply": {}})
    story.check()


@pytest.mark.parametrize(
    "ignored",
    [{"jsonPointers": ["/spec/replicas"]}, {"jqPathExpressions": [".spec.replicas"]},
     {"managedFieldsManagers": ["scaler"]}],
)  # fmt: skip
@pytest.mark.parametrize("option", ["", "RespectIgnoreDifferences=true"])
def test_ignored_differences(story: Story, ignored: dict[str, Any], option: str) -> None:
    story.push({"web.yaml": deployment()})
    story.deliver(
        ignoreDifferences=[{"group": "apps", "kind": "Deployment", **ignored}], options=[option] if option else []
    )
    story.sync()
    story.check()
    story.edit(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 3}})
    story.refresh()
    story.check()
    story.sync()
    story.check()


def test_invalid_object_beside_a_valid_one(story: Story) -> None:
    story.push({"settings.yaml": config_map(), "web.yaml": {**deployment(), "spec": {"replicas": 1}}})
    story.deliver()
    story.sync()
    story.check()


def test_kind_that_is_not_served(story: Story) -> None:
    unknown = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}}
    story.push({"settings.yaml": config_map(), "widget.yaml": unknown})
    story.deliver()
    story.sync()
    story.check()


def test_retry_with_a_limit(story: Story) -> None:
    story.push({"web.yaml": {**deployment(), "spec": {"replicas": 1}}})
    backoff = {"duration": "1s", "factor": 1, "maxDuration": "2s"}
    story.deliver(policy={"retry": {"limit": 2, "backoff": backoff}})
    story.sync(retry={"limit": 2, "backoff": backoff})
    story.check()


@pytest.mark.parametrize("finalizer", ["", "resources-finalizer.argocd.argoproj.io",
                                       "resources-finalizer.argocd.argoproj.io/background"])  # fmt: skip
def test_deletion(story: Story, finalizer: str) -> None:
    story.push({"settings.yaml": config_map(), "web.yaml": deployment()})
    story.deliver(metadata={"finalizers": [finalizer]} if finalizer else {})
    story.sync()
    story.check()
    story.delete_application()
    story.check()


def test_deletion_that_must_be_confirmed(story: Story) -> None:
    story.push({"settings.yaml": config_map(options="Delete=confirm"), "other.yaml": config_map("other")})
    story.deliver(metadata={"finalizers": ["resources-finalizer.argocd.argoproj.io"]})
    story.sync()
    story.check()
    story.delete_application()
    story.check()
    story.confirm_deletion()
    story.wait_until_deleted()
    story.check()


@pytest.mark.parametrize("option", ["Prune=confirm", "Prune=false"])
def test_prune_that_must_be_confirmed(story: Story, option: str) -> None:
    story.push({"settings.yaml": config_map(options=option), "other.yaml": config_map("other")})
    story.deliver()
    story.sync()
    story.check()
    story.push({"settings.yaml": None})
    story.refresh()
    story.sync(prune=True)
    story.pair.wait_until_quiet([story.name], is_over=lambda application: True)
    story.confirm_deletion()
    story.check()


@pytest.mark.parametrize("option", ["", "Force=true", "Replace=true", "Force=true,Replace=true"])
def test_immutable_field(story: Story, option: str) -> None:
    metadata = {"name": "web", **({"annotations": {"argocd.argoproj.io/sync-options": option}} if option else {})}
    story.push({"web.yaml": {**deployment(), "metadata": metadata}})
    story.deliver()
    story.sync()
    story.check()
    labels = {"app": "other"}
    template = {**deployment()["spec"]["template"], "metadata": {"labels": labels}}
    changed = deployment(selector={"matchLabels": labels}, template=template)
    story.push({"web.yaml": {**changed, "metadata": metadata}})
    story.refresh()
    story.sync()
    story.check()


def test_forced_sync_of_an_immutable_field(story: Story) -> None:
    story.push({"web.yaml": deployment()})
    story.deliver()
    story.sync()
    story.check()
    labels = {"app": "other"}
    template = {**deployment()["spec"]["template"], "metadata": {"labels": labels}}
    story.push({"web.yaml": deployment(selector={"matchLabels": labels}, template=template)})
    story.refresh()
    story.sync(syncStrategy={"hook": {"force": True}})
    story.check()


@pytest.mark.parametrize("option", ["ClientSideApplyMigration=true", "ClientSideApplyMigration=false"])
@pytest.mark.parametrize("manager", ["", "kubectl-edit"], ids=["default", "another manager"])
def test_change_to_server_side_apply(story: Story, option: str, manager: str) -> None:
    annotations = {"argocd.argoproj.io/client-side-apply-migration-manager": manager} if manager else {}
    story.push({"settings.yaml": config_map(), "web.yaml": deployment()})
    story.deliver(options=[option], metadata={"annotations": annotations})
    story.sync()
    story.check()
    story.push({"settings.yaml": {**config_map(), "data": {"other": "2"}}, "web.yaml": deployment(2)})
    story.pair.patch_application(
        story.name, {"spec": {"syncPolicy": {"syncOptions": ["CreateNamespace=true", "ServerSideApply=true", option]}}}
    )
    story.refresh()
    story.sync()
    story.check()


@pytest.mark.parametrize("is_refreshed", [False, True], ids=["same revision", "refresh"])
def test_retry_after_the_repository_was_mended(story: Story, is_refreshed: bool) -> None:
    story.push({"web.yaml": {**deployment(), "spec": {"replicas": 1}}})
    backoff = {"duration": "5s", "factor": 1, "maxDuration": "5s"}
    retry = {"limit": 3, "backoff": backoff, **({"refresh": True} if is_refreshed else {})}
    story.deliver(policy={"retry": retry})
    story.sync(retry=retry)
    story.wait_for_retry()
    story.push({"web.yaml": deployment()})
    story.check()


@pytest.mark.parametrize(
    "fault",
    [{"source": {"path": "missing"}}, {"source": {"targetRevision": "missing"}}, {"project": "missing"},
     {"destination": {"server": "https://nowhere.example", "namespace": "x"}},
     {"destination": {"name": "missing", "namespace": "x"}}],
)  # fmt: skip
def test_application_with_a_fault(story: Story, fault: dict[str, Any]) -> None:
    story.push({"settings.yaml": config_map()})
    story.deliver(automated={}, **fault)
    story.check()


@pytest.mark.parametrize("directory", [{"recurse": True}, {"include": "*.json"}, {"exclude": "other*"},
                                       {"recurse": True, "include": "{settings,deep/*}.yaml"}])  # fmt: skip
def test_directory(story: Story, directory: dict[str, Any]) -> None:
    story.push(
        {"settings.yaml": config_map(), "other.yaml": config_map("other"), "deep/inner.yaml": config_map("inner")}
    )
    story.deliver(source={"directory": directory})
    story.sync()
    story.check()


def test_role_and_binding(story: Story) -> None:
    version = "rbac.authorization.k8s.io/v1"
    rules = [{"apiGroups": ["", "apps"], "resources": ["pods", "deployments"], "verbs": ["get", "list"]}]
    role = {"apiVersion": version, "kind": "Role", "metadata": {"name": "reader"}, "rules": rules}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    subjects = [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}]
    binding = {"apiVersion": version, "kind": "RoleBinding", "metadata": {"name": "readers"}}
    story.push({"role.yaml": role, "binding.yaml": {**binding, "roleRef": ref, "subjects": subjects}})
    story.deliver()
    story.sync(dryRun=True)
    story.check()
    story.sync()
    story.check()
    story.push({"role.yaml": {**role, "rules": [{**rules[0], "verbs": ["get", "watch"]}]}})
    story.refresh()
    story.sync()
    story.check()
    story.push({"binding.yaml": {**binding, "roleRef": {**ref, "name": "other"}, "subjects": subjects}})
    story.refresh()
    story.sync()
    story.check()
