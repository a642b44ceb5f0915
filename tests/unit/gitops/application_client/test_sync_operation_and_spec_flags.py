"""Tests how CLI flags become sync operations and Application specs."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import PolicyError, UserError
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.spec_flags import apply_flags, build_application, check_deliverable, unset_flags
from argosy.gitops.application_client.sync_operation_builder import (
    SyncFlags,
    assign_refs,
    build_operation_from_flags,
    read_object_pattern,
    select_keys,
)
from argosy.kube.resource_key import ResourceKey

RESOURCES = [
    {"group": "apps", "kind": "Deployment", "namespace": "ml", "name": "predictor"},
    {"kind": "ConfigMap", "namespace": "ml", "name": "settings"},
    {"kind": "ConfigMap", "namespace": "other", "name": "settings"},
]
SOURCE = {"repoURL": "https://git.example/ml", "path": "app", "targetRevision": "main"}


def application(**spec: Any) -> Application:
    whole = {"source": SOURCE, **spec}
    return read_application({"metadata": {"name": "models"}, "spec": whole, "status": {"resources": RESOURCES}})


@pytest.mark.parametrize(
    "patterns, names",
    [
        (["apps:Deployment:predictor"], ["predictor"]),
        ([":ConfigMap:ml/settings"], ["settings"]),
        ([":ConfigMap:*"], ["settings", "settings"]),
        (["!apps:Deployment:predictor"], ["settings", "settings"]),
        (["*:*:*", "!:ConfigMap:other/*"], ["predictor", "settings"]),
    ],
)
def test_resource_patterns_select_managed_resources(patterns: list[str], names: list[str]) -> None:
    assert [key.name for key in select_keys(application(), patterns)] == names


@pytest.mark.parametrize("text", ["Deployment", "apps:Deployment", "apps::x", "a:b:c:d", ""])
def test_invalid_resource_pattern_is_rejected(text: str) -> None:
    with pytest.raises(UserError, match="GROUP:KIND:NAME"):
        read_object_pattern(text)


def test_sync_operation_has_argo_cd_fields() -> None:
    wish = SyncFlags(
        revision="v2", prune=True, force=True, server_side=True, resources=("apps:Deployment:*",), retry_limit=3,
        retry_duration="5s", info=("why=because",),
    )  # fmt: skip
    assert build_operation_from_flags(application(), wish, "ann") == {
        "sync": {
            "revision": "v2",
            "prune": True,
            "resources": [{"group": "apps", "kind": "Deployment", "namespace": "ml", "name": "predictor"}],
            "syncOptions": ["ServerSideApply=true"],
            "syncStrategy": {"hook": {"force": True}},
            "source": SOURCE,
        },
        "initiatedBy": {"username": "ann"},
        "retry": {"limit": 3, "backoff": {"duration": "5s"}},
        "info": [{"name": "why", "value": "because"}],
    }


def test_sync_operation_of_several_sources_names_them_all() -> None:
    sources = [{**SOURCE, "kustomize": {}}, {**SOURCE, "path": "other"}]
    operation = build_operation_from_flags(application(source=None, sources=sources), SyncFlags(), "ann")
    assert operation["sync"]["sources"] == [SOURCE, sources[1]] and "source" not in operation["sync"]


def test_sync_operation_defaults_to_application_retry_policy() -> None:
    app = application(syncPolicy={"retry": {"limit": 7}})
    operation = build_operation_from_flags(app, SyncFlags(strategy="apply"), "ann")
    assert operation["retry"] == {"limit": 7} and operation["sync"]["syncStrategy"] == {"apply": {}}


def test_keys_selected_by_labels_are_combined_with_patterns() -> None:
    key = ResourceKey("", "ConfigMap", "ml", "settings")
    operation = build_operation_from_flags(application(), SyncFlags(resources=(":ConfigMap:ml/*",)), "ann", [key])
    assert operation["sync"]["resources"] == [{"namespace": "ml", "kind": "ConfigMap", "name": "settings"}]


def test_auto_synced_app_rejects_another_revision_except_dry_run() -> None:
    app = application(syncPolicy={"automated": {}})
    with pytest.raises(PolicyError, match="auto-sync is set to main"):
        build_operation_from_flags(app, SyncFlags(revision="v2"), "ann")
    assert build_operation_from_flags(app, SyncFlags(revision="v2", dry_run=True), "ann")["sync"]["dryRun"]
    assert build_operation_from_flags(app, SyncFlags(revision="main"), "ann")["sync"]["revision"] == "main"


def test_revisions_of_multiple_sources_are_set_by_position() -> None:
    many = [{**SOURCE, "targetRevision": "a"}, {**SOURCE, "targetRevision": "b"}]
    app = application(source=None, sources=many)
    assert assign_refs(app, ["v2"], [2]) == ("a", "v2")
    with pytest.raises(UserError, match="none at position 3"):
        assign_refs(app, ["v2"], [3])
    with pytest.raises(UserError, match="same number of values"):
        assign_refs(app, ["v2"], [])


def test_new_application_is_built_from_flags() -> None:
    new_app = build_application(
        "models", "argocd",
        {"--repo": "https://git.example/ml", "--path": "app", "--dest-name": "in-cluster", "--dest-namespace": "ml",
         "--label": ["env=dev"], "--annotations": ["a=b"], "--set-finalizer": True, "--sync-retry-limit": 2,
         "--helm-set": ["replicas=2"], "--values": ["dev.yaml"]},
    )  # fmt: skip
    check_deliverable(new_app)
    assert new_app["metadata"] == {
        "name": "models", "namespace": "argocd", "labels": {"env": "dev"}, "annotations": {"a": "b"},
        "finalizers": ["resources-finalizer.argocd.argoproj.io"],
    }  # fmt: skip
    assert new_app["spec"] == {
        "project": "default",
        "source": {
            "repoURL": "https://git.example/ml", "path": "app",
            "helm": {"valueFiles": ["dev.yaml"], "parameters": [{"name": "replicas", "value": "2"}]},
        },
        "destination": {"name": "in-cluster", "namespace": "ml"},
        "syncPolicy": {"retry": {"limit": 2}},
    }  # fmt: skip


@pytest.mark.parametrize(
    "spec, said",
    [
        ({}, "no repository"),
        ({"source": {"repoURL": "x"}}, "no path"),
        ({"source": {"repoURL": "x", "path": "y"}}, "no cluster"),
    ],
)
def test_undeliverable_application_is_rejected(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        check_deliverable({"spec": spec})


def test_flags_change_only_their_fields_and_not_the_original() -> None:
    helm = {"valueFiles": ["a.yaml"], "parameters": [{"name": "x", "value": "1"}]}
    destination = {"server": "s", "namespace": "ml"}
    before: dict[str, Any] = {"spec": {"source": {**SOURCE, "helm": helm}, "destination": destination, "kept": 1}}
    flags = {"--values": ["b.yaml"], "--helm-set": ["x=2"], "--dest-name": "in-cluster"}
    after = apply_flags(before, flags)["spec"]
    assert after["source"]["helm"] == {"valueFiles": ["b.yaml"], "parameters": [{"name": "x", "value": "2"}]}
    assert after["destination"] == {"name": "in-cluster", "namespace": "ml"} and after["kept"] == 1
    assert before["spec"]["source"]["helm"]["valueFiles"] == ["a.yaml"]


def test_source_flags_of_multi_source_app_need_position_or_name() -> None:
    before = {"spec": {"sources": [{**SOURCE, "name": "code"}, SOURCE]}}
    with pytest.raises(UserError, match="--source-position"):
        apply_flags(before, {"--revision": "v2"})
    by_place = apply_flags(before, {"--revision": "v2"}, 2)["spec"]["sources"]
    assert [source["targetRevision"] for source in by_place] == ["main", "v2"]
    by_name = apply_flags(before, {"--revision": "v2", "--source-name": "code"})["spec"]["sources"]
    assert [source["targetRevision"] for source in by_name] == ["v2", "main"]
    assert apply_flags(before, {"--project": "ml"})["spec"]["project"] == "ml"


def test_sync_options_are_set_and_removed_by_name() -> None:
    before = {"spec": {"syncPolicy": {"syncOptions": ["CreateNamespace=true", "Replace=true"]}}}
    after = apply_flags(before, {"--sync-option": ["CreateNamespace=false", "!Replace=true"]})
    assert after["spec"]["syncPolicy"]["syncOptions"] == ["CreateNamespace=false"]


def test_self_heal_without_automation_and_unknown_policy_are_rejected() -> None:
    with pytest.raises(UserError, match="--sync-policy automated"):
        apply_flags({"spec": {}}, {"--self-heal": True})
    with pytest.raises(UserError, match="unknown sync policy"):
        apply_flags({"spec": {}}, {"--sync-policy": "sometimes"})


def test_unset_removes_named_values_and_emptied_fields() -> None:
    helm = {"parameters": [{"name": "x"}, {"name": "y"}], "valueFiles": ["a.yaml"]}
    before = {"spec": {"source": {**SOURCE, "helm": helm, "kustomize": {"images": ["a=b:1"]}}}}
    once = unset_flags(before, {"--parameter": ["x"], "--values": ["a.yaml"], "--kustomize-image": ["a"]})
    assert once["spec"]["source"] == {**SOURCE, "helm": {"parameters": [{"name": "y"}]}}
