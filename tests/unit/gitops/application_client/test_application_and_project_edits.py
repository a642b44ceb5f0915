"""Tests Application patches, source edits, field selection and edits of project specs."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import UserError
from argosy.gitops.application_client.application_patches_and_sources import add_source, apply_patch, remove_source
from argosy.gitops.application_client.object_operations import flatten_fields, pick_fields
from argosy.gitops.application_client.project_spec_edits import (
    add_entry,
    change_sync_window,
    choose_resource_list,
    remove_entry,
    spec_from_flags,
)
from argosy.gitops.application_client.spec_flags import apply_flags

ONE = {"repoURL": "https://git.example/ml", "path": "app", "name": "first"}
TWO = {"repoURL": "https://git.example/values", "ref": "values", "name": "second"}


def app(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "models"}, "spec": spec}


def test_json_patch_and_merge_patch_are_applied() -> None:
    operations = '[{"op":"replace","path":"/spec/source/path","value":"dev"}]'
    assert apply_patch(app(source=ONE), operations, "json")["spec"]["source"]["path"] == "dev"
    assert apply_patch(app(source=ONE), '{"spec":{"source":null,"project":"ml"}}', "merge")["spec"] == {"project": "ml"}


NOWHERE, EVERYTHING = '[{"op":"remove","path":"/spec/nothing"}]', '[{"op":"remove","path":"/metadata"}]'


@pytest.mark.parametrize("text", ["", "7", NOWHERE, EVERYTHING])
def test_invalid_or_inapplicable_patch_is_rejected(text: str) -> None:
    with pytest.raises(UserError):
        apply_patch(app(source=ONE), text, "json")


def test_sources_are_appended_and_removed_by_name_or_position() -> None:
    more = add_source(app(sources=[ONE]), {"--repo": TWO["repoURL"], "--ref": "values", "--source-name": "second"})
    assert more["spec"]["sources"] == [ONE, TWO]
    assert remove_source(more, None, "second")["spec"]["sources"] == [ONE]
    assert remove_source(more, 1, "")["spec"]["sources"] == [TWO]


@pytest.mark.parametrize(
    ("sources", "position", "name"),
    [([ONE, TWO], None, ""), ([ONE, TWO], 0, ""), ([ONE, TWO], 3, ""), ([ONE, TWO], 1, "first"),
     ([ONE, TWO], None, "x"), ([ONE], 1, ""), ([], 1, "")],
)  # fmt: skip
def test_invalid_source_removal_is_rejected(sources: list[Any], position: int | None, name: str) -> None:
    with pytest.raises(UserError):
        remove_source(app(sources=sources), position, name)


def test_literal_values_are_stored_in_helm_values() -> None:
    changed = apply_flags(app(source=ONE), {"--values-literal-file": "replicas: 2\n"})
    assert changed["spec"]["source"]["helm"] == {"values": "replicas: 2\n"}


def test_fields_are_picked_by_path_across_list_items() -> None:
    pod = {"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]}, "status": {"ready": True, "ip": None}}
    assert pick_fields(pod, ["spec.containers.image", "status.ready"]) == {
        "spec": {"containers": [{"image": "x"}]}, "status": {"ready": True},
    }  # fmt: skip
    assert pick_fields(pod, ["spec.nothing"]) == {}
    assert list(flatten_fields(pod)) == [
        ("spec.containers[0].image", "x"), ("spec.containers[0].name", "a"), ("spec.containers[1].name", "b"),
        ("status.ip", "<nil>"), ("status.ready", "true"),
    ]  # fmt: skip


def test_flattened_values_are_printed_as_in_go() -> None:
    fields = {"a": 1234567.5, "b": [[1, "x"], {"c": False}], "d": []}
    assert list(flatten_fields(fields)) == [("a", "1.2345675e+06"), ("b[0]", "[1 x]"), ("b[1].c", "false")]


def test_allow_and_deny_choose_the_matching_resource_list() -> None:
    assert choose_resource_list(allows=True, is_cluster=True, list_type="allow") == (
        "clusterResourceWhitelist",
        "allowed",
        True,
    )
    assert choose_resource_list(allows=False, is_cluster=True, list_type="allow") == (
        "clusterResourceWhitelist",
        "allowed",
        False,
    )
    assert choose_resource_list(allows=False, is_cluster=False, list_type="deny") == (
        "namespaceResourceBlacklist",
        "denied",
        True,
    )
    assert choose_resource_list(allows=True, is_cluster=False, list_type="deny") == (
        "namespaceResourceBlacklist",
        "denied",
        False,
    )


def test_project_entry_is_added_once_and_removed_once() -> None:
    spec = add_entry({}, "sourceRepos", "a", "source repository")
    with pytest.raises(UserError, match="already"):
        add_entry(spec, "sourceRepos", "a", "source repository")
    assert remove_entry(spec, "sourceRepos", "a", "source repository") == {"sourceRepos": []}
    with pytest.raises(UserError, match="does not exist"):
        remove_entry(spec, "sourceRepos", "b", "source repository")


def test_project_spec_is_built_from_flags() -> None:
    flags = {
        "description": "d",
        "dest": ["https://k,ml", "in-cluster,x"],
        "src": ["*"],
        "allow_cluster_resource": ["/Namespace/ml-*", "rbac.authorization.k8s.io/ClusterRole", "Node"],
    }
    assert spec_from_flags(flags) == {
        "description": "d",
        "destinations": [{"server": "https://k", "namespace": "ml"}, {"name": "in-cluster", "namespace": "x"}],
        "sourceRepos": ["*"],
        "clusterResourceWhitelist": [
            {"group": "", "kind": "Namespace", "name": "ml-*"},
            {"group": "rbac.authorization.k8s.io", "kind": "ClusterRole"},
            {"group": "", "kind": "Node"},
        ],
    }
    with pytest.raises(UserError, match="comma"):
        spec_from_flags({"dest": ["https://k"]})


def test_changing_an_unknown_sync_window_is_rejected() -> None:
    with pytest.raises(UserError, match="sync window 1 not found"):
        change_sync_window({"syncWindows": [{"kind": "deny"}]}, 1, None)
