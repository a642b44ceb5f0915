"""Roles and bindings are applied with the messages and the field owners that `kubectl auth reconcile` leaves."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.annotations import FIELD_MANAGER
from argosy.gitops.sync.apply import ApplyRequest, apply_manifest, dry_run_apply
from argosy.gitops.sync.effective_apply_and_prune_options import REPLACE_FIELD_MANAGER, ApplyOptions
from argosy.gitops.sync.role_reconciliation import describe_reconciliation
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey

VERSION = "rbac.authorization.k8s.io/v1"
NAME = "role.rbac.authorization.k8s.io/reader"


def build_role(*rules: dict[str, Any], **metadata: Any) -> Manifest:
    metadata = {"name": "reader", "namespace": "default", **metadata}
    return {"apiVersion": VERSION, "kind": "Role", "metadata": metadata, "rules": list(rules)}


def build_rule(verbs: str, resources: str = "pods", groups: str = ",apps", **fields: Any) -> dict[str, Any]:
    return {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(","), **fields}


def build_binding(role: str, *users: str) -> Manifest:
    subjects = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user} for user in users]
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role}
    metadata = {"name": "readers", "namespace": "default"}
    return {"apiVersion": VERSION, "kind": "RoleBinding", "metadata": metadata, "roleRef": ref, "subjects": subjects}


def describe(desired: Manifest, live: Manifest | None) -> str:
    return describe_reconciliation(NAME, desired, live, dry_run=False).removeprefix(f"{NAME} reconciled")


def request_apply(desired: Manifest, live: Manifest | None) -> ApplyRequest:
    key = ResourceKey("rbac.authorization.k8s.io", desired["kind"], "default", desired["metadata"]["name"])
    return ApplyRequest(key, desired, live, ApplyOptions(), "2026-01-01T00:00:00Z")


def test_new_role_lists_its_rules() -> None:
    assert describe(build_role(build_rule("get,list", resourceNames=["one"])), None) == (
        ". reconciliation required create\n\tmissing rules added:\n"
        "\t\t{Verbs:[get list] APIGroups:[ apps] Resources:[pods] ResourceNames:[one] NonResourceURLs:[]}"
    )


def test_missing_permissions_are_listed_one_by_one() -> None:
    text = describe(build_role(build_rule("get,watch")), build_role(build_rule("get")))
    assert [line.partition(" Resources")[0] for line in text.splitlines()] == [
        ". reconciliation required update",
        "\tmissing rules added:",
        "\t\t{Verbs:[watch] APIGroups:[]",
        "\t\t{Verbs:[watch] APIGroups:[apps]",
    ]


@pytest.mark.parametrize(
    "live",
    [
        build_rule("*"),
        build_rule("get,list,watch", "*"),
        build_rule("get,list", "deployments,pods"),
        build_rule("get,list", groups="*"),
    ],
)
def test_role_that_allows_more_needs_no_reconciliation(live: dict[str, Any]) -> None:
    assert describe(build_role(build_rule("get,list")), build_role(live)) == ""


def test_rule_for_names_does_not_cover_a_rule_for_all() -> None:
    assert "missing rules" in describe(
        build_role(build_rule("get")), build_role(build_rule("get", resourceNames=["a"]))
    )


def test_subresources_and_urls_are_covered_by_patterns() -> None:
    desired = build_role(build_rule("get", "pods/log"), {"nonResourceURLs": ["/metrics/a"], "verbs": ["get"]})
    live = build_role(build_rule("get", "*/log"), {"nonResourceURLs": ["/metrics/*"], "verbs": ["get"]})
    assert describe(desired, live) == ""


def test_new_label_requires_an_update_and_an_object_may_opt_out() -> None:
    live = build_role(annotations={"rbac.authorization.kubernetes.io/autoupdate": "false"})
    assert describe(build_role(labels={"a": "1"}), live) == (
        ". reconciliation required update, but object opted out (rbac.authorization.kubernetes.io/autoupdate: false)"
    )
    assert describe(build_role(labels={"a": "2"}), build_role(labels={"a": "1"})) == ""


def test_binding_lists_missing_subjects_and_is_recreated_for_another_role() -> None:
    live = build_binding("reader", "ann")
    assert describe(build_binding("reader", "ann", "bob"), live).endswith(
        "missing subjects added:\n\t\t{Kind:User APIGroup:rbac.authorization.k8s.io Name:bob Namespace:}"
    )
    assert describe(build_binding("writer", "bob"), live) == ". reconciliation required recreate"


async def test_role_is_created_and_then_applied_by_two_managers(cluster: Cluster) -> None:
    result = await apply_manifest(request_apply(build_role(build_rule("get")), None), cluster)
    assert result.live is not None
    managers = [entry["manager"] for entry in result.live["metadata"]["managedFields"]]
    assert sorted(managers) == sorted([REPLACE_FIELD_MANAGER, FIELD_MANAGER])
    assert f"]}}{NAME} configured. Warning: resource roles/reader is missing" in result.message
    again = await apply_manifest(request_apply(build_role(build_rule("get")), result.live), cluster)
    assert (again.message, again.is_unchanged) == (f"{NAME} reconciled{NAME} unchanged", True)


async def test_binding_of_another_role_is_recreated(cluster: Cluster) -> None:
    first = await apply_manifest(request_apply(build_binding("reader", "ann"), None), cluster)
    second = await apply_manifest(request_apply(build_binding("writer", "ann"), first.live), cluster)
    assert second.live and first.live and second.live["metadata"]["uid"] != first.live["metadata"]["uid"]
    name = "rolebinding.rbac.authorization.k8s.io/readers"
    assert second.message.startswith(f"{name} reconciled. reconciliation required recreate{name} configured. Warning:")


def test_dry_run_says_so_twice() -> None:
    message = dry_run_apply(request_apply(build_role(), None))
    assert message == f"{NAME} reconciled (dry run). reconciliation required create{NAME} created (dry run)"
