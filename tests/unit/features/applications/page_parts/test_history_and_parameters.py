"""Values of Application pages: deployments, timeline, source parameters, field owners,
last applied manifest and sync policy."""

from __future__ import annotations

from typing import Any

from argosy.features.applications.edit.settings_page import set_automated_policy
from argosy.features.applications.objects.field_owners import list_field_owners
from argosy.features.applications.page_parts.deployment_history_and_timeline import (
    list_deployment_rows,
    list_timeline_events,
)
from argosy.features.applications.page_parts.last_applied_and_managed_fields import find_last_applied
from argosy.features.applications.parameters.source_parameter_rows import list_source_parameters
from argosy.gitops.application import Application, read_application

SOURCE: dict[str, Any] = {"repoURL": "https://git.example.com/a.git", "path": "web", "targetRevision": "main"}


def app(source: dict[str, Any] | None = None, **status: Any) -> Application:
    spec = {"source": source or SOURCE, "destination": {"namespace": "ml", "server": "https://kubernetes.default.svc"}}
    return read_application({"metadata": {"name": "web", "namespace": "argocd"}, "spec": spec, "status": status})


def deployment(number: int, revision: str, **more: Any) -> dict[str, Any]:
    whole = {"id": number, "revision": revision * 40, "source": SOURCE, "deployedAt": f"2026-11-15T12:0{number}:10Z"}
    return {**whole, "deployStartedAt": f"2026-11-15T12:0{number}:00Z", **more}


def test_deployments_are_listed_newest_first_with_initiator() -> None:
    history = [deployment(0, "a", initiatedBy={"username": "ann"}), deployment(1, "b", initiatedBy={"automated": True})]
    rows = list_deployment_rows(app(history=history), {"b" * 40: ("Raise it", "Ann", "")})
    assert [(row.id, row.by, row.subject, row.is_now, row.seconds) for row in rows] == [
        (1, "automatic", "Raise it", True, 10.0),
        (0, "ann", "", False, 10.0),
    ]


def test_deployments_equal_to_the_current_one_and_rollbacks_are_marked() -> None:
    rows = list_deployment_rows(app(history=[deployment(0, "a"), deployment(1, "a")]))
    assert [row.is_same for row in rows] == [True, True]
    assert [row.back for row in rows] == [None, None]
    back = app(history=[deployment(0, "a"), deployment(1, "b"), deployment(2, "a")])
    assert [row.back for row in list_deployment_rows(back)] == [0, None, None]
    assert [entry.reason for entry in list_timeline_events(back, [])] == ["Rolled back", "Deployed", "Deployed"]


def test_timeline_merges_events_and_syncs_newest_first() -> None:
    event = {
        "type": "Warning",
        "reason": "BackOff",
        "message": "again",
        "count": 4,
        "lastTimestamp": "2026-11-15T12:00:30Z",
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "ml", "name": "web-1"},
    }
    history = [deployment(0, "a"), deployment(1, "b")]
    timeline = list_timeline_events(app(history=history), [event])
    assert [entry.kind for entry in timeline] == ["Sync", "Warning", "Sync"]
    assert (timeline[1].url, timeline[1].count) == ("/apps/argocd/web/r/-/Pod/ml/web-1", 4)


def test_warnings_filter_leaves_out_normal_events() -> None:
    normal = {"type": "Normal", "reason": "Pulled", "involvedObject": {"kind": "Pod", "name": "a"}}
    assert list_timeline_events(app(), [normal], "warnings") == ()
    assert len(list_timeline_events(app(), [normal])) == 1


def test_kustomize_parameters_name_the_spec_field_that_sets_them() -> None:
    kustomize = {"images": ["web=registry.example.com/web:2"], "namePrefix": "dev-"}
    (parameters,) = list_source_parameters(app({**SOURCE, "kustomize": kustomize}))
    assert [(row.name, row.value, row.origin) for row in parameters.rows] == [
        ("image web", "registry.example.com/web:2", "spec.source.kustomize.images"),
        ("namePrefix", "dev-", "spec.source.kustomize.namePrefix"),
    ]


def test_helm_parameters_and_values_are_shown() -> None:
    helm = {"parameters": [{"name": "replicas", "value": "3"}], "valuesObject": {"a": {"b": 1}}}
    (parameters,) = list_source_parameters(app({**SOURCE, "helm": helm}))
    assert [(row.name, row.value) for row in parameters.rows] == [("replicas", "3")]
    assert parameters.values == "a:\n  b: 1\n"


def test_field_owner_is_the_manager_from_managed_fields() -> None:
    managed = {
        "manager": "hpa",
        "operation": "Update",
        "apiVersion": "apps/v1",
        "time": "2026-11-15T12:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
    }
    live = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "uid": "x", "managedFields": [managed]},
        "spec": {"replicas": 3, "paused": False},
    }
    managers = {owner.path: owner.manager for owner in list_field_owners(live, live)}
    assert managers == {".metadata.name": "", ".spec.replicas": "hpa", ".spec.paused": ""}


def test_last_applied_annotation_is_parsed_and_invalid_ones_are_ignored() -> None:
    name = "kubectl.kubernetes.io/last-applied-configuration"
    text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}'
    live = {"kind": "ConfigMap", "metadata": {"name": "a", "annotations": {name: text}}}
    assert (find_last_applied(live) or {})["kind"] == "ConfigMap"
    for odd in ("{", "[]", '{"kind":"A"}', '{"metadata":{}}'):
        assert find_last_applied({"kind": "A", "metadata": {"annotations": {name: odd}}}) is None
    assert find_last_applied({"kind": "A", "metadata": {}}) is None


def test_automated_policy_change_keeps_other_sync_policy_fields() -> None:
    automated = {"enabled": False, "allowEmpty": True}
    wire = {"spec": {"syncPolicy": {"automated": automated, "syncOptions": ["PruneLast=true"]}}}
    policy = set_automated_policy(wire, automated=True, prune=True, self_heal=False)["spec"]["syncPolicy"]
    assert policy == {
        "automated": {"allowEmpty": True, "prune": True, "selfHeal": False},
        "syncOptions": ["PruneLast=true"],
    }
    assert wire["spec"]["syncPolicy"]["automated"] == automated
    assert set_automated_policy(
        {"spec": {"syncPolicy": {"automated": {}}}}, automated=False, prune=False, self_heal=False
    ) == {"spec": {}}
