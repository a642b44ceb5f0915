"""Notification settings, subscriptions, sent messages, drift data, template worker and the Argo CD export."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import yaml

from argosy.annotations import NOTIFIED, NOTIFYING, SUBSCRIPTIONS
from argosy.errors import PolicyError
from argosy.features.notifications.argocd_export import build_export
from argosy.features.notifications.condition_and_template_worker import evaluate_conditions, render_templates
from argosy.features.notifications.default_templates import load_bundled_entries
from argosy.features.notifications.delivery_events import NotificationHistoryRow, list_messages_without_event
from argosy.features.notifications.drift_template_data import build_drift, list_drifted_keys
from argosy.features.notifications.sent_messages import build_annotations, build_state_key, read_state
from argosy.features.notifications.settings import read_settings, uses_notebook_jobs
from argosy.features.notifications.subscriptions import NotificationDestination, list_destinations
from argosy.kube.resource_key import ResourceKey
from argosy.languages.expr import compile_expression
from argosy.languages.go_templates import compile_template

NOW = "2026-01-01T00:00:00+00:00"


def config(**data: str) -> dict[str, Any]:
    return {"metadata": {"name": "argocd-notifications-cm"}, "data": {k.replace("__", "."): v for k, v in data.items()}}


def secret(**data: str) -> dict[str, Any]:
    return {"data": {key.replace("_", "-"): base64.b64encode(value.encode()).decode() for key, value in data.items()}}


def app(annotations: dict[str, str] | None = None, **status: Any) -> dict[str, Any]:
    metadata = {"name": "wine", "namespace": "argocd", "annotations": annotations or {}, "labels": {"team": "ml"}}
    return {"kind": "Application", "metadata": metadata, "spec": {"source": {"repoURL": "x"}}, "status": status}


@pytest.mark.parametrize("text", [",", " , ,", "a b", "*.slack.com hooks.example.org"])
def test_host_list_without_a_valid_host_allows_no_host(text: str) -> None:
    hosts = read_settings(None, None, {"data": {"notifications.hosts": text}}).hosts
    with pytest.raises(PolicyError, match=r"notifications\.hosts"):
        hosts.resolve_addresses("localhost", 80)


def test_secret_values_are_substituted_and_masked() -> None:
    settings = read_settings(
        config(service__slack="token: $slack-token", service__webhook__a="url: https://x/$path?k=$none"),
        secret(slack_token="xoxb-123", path="p4th"),
    )
    assert settings.services["slack"].options == {"token": "xoxb-123"}
    assert (
        settings.services["a"].kind == "webhook" and settings.services["a"].options["url"] == "https://x/p4th?k=$none"
    )
    assert settings.mask_secrets("it said xoxb-123 of p4th") == "it said ******** of ********"
    assert [problem for problem in settings.problems if "$none" in problem] and "xoxb-123" not in repr(settings)


def test_invalid_entries_are_reported_and_valid_entries_still_apply() -> None:
    bad = {"trigger.bad": "- when: '('", "trigger.worse": "5", "template.bad": "[", "service.a.b.c": "{}"}
    bad["subscriptions"] = "- {recipients: [a], selector: 'team in ('}"
    settings = read_settings(config(**bad, **{"trigger.on": "- when: 'true'"}), None)
    assert "on" in settings.triggers and "bad" not in settings.triggers
    assert len(settings.problems) == 5 and all(
        problem.startswith("argocd-notifications-cm: ") for problem in settings.problems
    )


def test_bundled_trigger_is_replaced_by_an_entry_of_the_same_name() -> None:
    settings = read_settings(config(**{"trigger__on-drift": "- {when: true, send: [mine]}"}), None)
    assert settings.triggers["on-drift"][0].send == ("mine",) and settings.triggers["on-drift"][0].when == "true"
    assert "on-deployed" in settings.triggers


def test_bundled_triggers_are_valid_and_send_bundled_templates() -> None:
    settings = read_settings(None, None)
    assert not settings.problems
    argo = "created deleted deployed health-degraded sync-failed sync-running sync-status-unknown sync-succeeded"
    assert {f"on-{name}" for name in argo.split()} < settings.triggers.keys()
    for conditions in settings.triggers.values():
        assert all(name in settings.templates for condition in conditions for name in condition.send)
    for text in load_bundled_entries().values():
        for value in json.loads(json.dumps(yaml.safe_load(text), default=str)) or ():
            compile_template(str(value))


def test_subscriptions_are_merged_from_annotations_defaults_and_settings() -> None:
    settings = read_settings(
        config(
            subscriptions="- {recipients: ['slack:all', 'hook'], triggers: [t1], selector: team=ml}\n"
            "- {recipients: ['slack:none'], triggers: [t1], selector: team=web}",
            defaultTriggers="[d1]",
            defaultTriggers__mail="[d2]",
        ),
        None,
    )
    prefix = "notifications.argoproj.io/subscribe"
    marks = {
        f"{prefix}.t1.slack": "all; other",
        f"{prefix}.mail": "a@b.c",
        f"{prefix}.slack": "x",
        SUBSCRIPTIONS: "- {trigger: [t3], destinations: [{service: slack, recipients: [them]}, {service: mail}]}",
    }
    assert list_destinations(app(marks), settings) == {
        "d1": [NotificationDestination("slack", "x")],
        "d2": [NotificationDestination("mail", "a@b.c")],
        "t1": [
            NotificationDestination("slack", "all"),
            NotificationDestination("hook", ""),
            NotificationDestination("slack", "other"),
        ],
        "t3": [NotificationDestination("slack", "them")],
    }


def test_notified_state_uses_argo_cd_keys_and_keeps_at_most_100_entries() -> None:
    key = build_state_key(
        "on-x", 0, "app.status.health.status == 'Degraded'", "abc", NotificationDestination("slack", "general")
    )
    assert key.startswith("abc:on-x:[0].") and key.endswith(":slack:general")
    marks = build_annotations({f"k{number}": number for number in range(150)}, {})
    state = read_state({"metadata": {"annotations": {NOTIFIED: str(marks[NOTIFIED])}}})
    assert len(state) == 100 and min(state.values()) == 50 and marks[NOTIFYING] is None


def test_notified_annotation_provides_history_if_events_are_gone() -> None:
    key = build_state_key("on-x", 0, "true", "a:b", NotificationDestination("slack", "general"))
    manifest = app({NOTIFIED: json.dumps({key: 1767225600, "nonsense": 5})})
    row = NotificationHistoryRow(
        "2026-01-01T00:00:00Z", "NotificationSent", "Application", "argocd", "wine", "on-x", "slack:general", ""
    )
    assert list_messages_without_event([manifest], []) == [row]
    assert list_messages_without_event([manifest], [row._replace(message="said")]) == []


def test_trigger_uses_jobs_if_its_condition_names_job() -> None:
    settings = read_settings(None, None)
    assert uses_notebook_jobs(settings.triggers["on-notebook-failed"]) and not uses_notebook_jobs(
        settings.triggers["on-deployed"]
    )


LAST = [{"revision": "abc", "deployedAt": "2026-01-01T00:00:00Z", "source": {"repoURL": "x"}}]
ROW = {"kind": "ConfigMap", "namespace": "ns", "name": "a", "status": "OutOfSync"}
OUT = {"status": "OutOfSync", "revision": "abc"}


@pytest.mark.parametrize(
    ("status", "is_drift"),
    [
        ({"sync": OUT, "history": LAST, "resources": [ROW]}, True),
        ({"sync": {**OUT, "revision": "def"}, "history": LAST, "resources": [ROW]}, False),
        ({"sync": {**OUT, "status": "Synced"}, "history": LAST, "resources": [ROW]}, False),
        ({"sync": OUT, "history": [], "resources": [ROW]}, False),
        ({"sync": OUT, "history": [{**LAST[0], "source": {"repoURL": "y"}}], "resources": [ROW]}, False),
        ({"sync": OUT, "history": LAST, "resources": [ROW], "operationState": {"phase": "Running"}}, False),
        ({"sync": OUT, "history": LAST, "resources": [{**ROW, "requiresPruning": True}]}, False),
    ],
)
def test_only_a_difference_at_the_last_synced_revision_is_drift(status: dict[str, Any], is_drift: bool) -> None:
    assert bool(list_drifted_keys(app(**status))) is is_drift


@pytest.mark.parametrize(
    ("spec", "deployed", "is_drift"),
    [
        ({"source": {"repoURL": "x", "helm": {"parameters": []}}}, {"source": {"repoURL": "x"}}, True),
        ({"source": {"repoURL": "x", "helm": {"valuesObject": {"a": None}}}},
         {"source": {"repoURL": "x", "helm": {"valuesObject": {}}}}, True),
        ({"source": {"repoURL": "x", "helm": {"valuesObject": {"a": 0}}}}, {"source": {"repoURL": "x"}}, False),
        ({"sources": [{"repoURL": "x", "directory": {}}]},
         {"source": {"repoURL": ""}, "sources": [{"repoURL": "x"}]}, True),
        ({"sources": [{"repoURL": "x"}]}, {"source": {"repoURL": "x"}, "sources": [{"repoURL": "y"}]}, False),
        ({"source": {"repoURL": "x"}}, {}, True),
    ],
)  # fmt: skip
def test_drift_ignores_empty_tool_options_and_nulls_of_the_source(
    spec: dict[str, Any], deployed: dict[str, Any], is_drift: bool
) -> None:
    has_many = "sources" in spec
    revision = {"revisions": ["abc"]} if has_many else {"revision": "abc"}
    history = [{**revision, "deployedAt": "2026-01-01T00:00:00Z", **deployed}]
    manifest = app(sync={"status": "OutOfSync", **revision}, history=history, resources=[ROW])
    assert bool(list_drifted_keys({**manifest, "spec": spec})) is is_drift


def entry(name: str, time: str, fields: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"manager": name, "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1",
            "fieldsV1": fields, **more}  # fmt: skip


def test_drift_lists_fields_that_other_managers_wrote_since_the_last_sync() -> None:
    live = {
        "metadata": {
            "managedFields": [
                entry("argocd-controller", "2026-01-01T00:00:00Z", {"f:data": {"f:a": {}}}),
                entry("old-hand", "2025-01-01T00:00:00Z", {"f:data": {"f:b": {}}}),
                entry("kubectl-edit", "2026-01-02T00:00:00Z", {"f:data": {"f:c": {}}}),
                entry("kubelet", "2026-01-02T00:00:00Z", {"f:status": {"f:x": {}}}, subresource="status"),
            ]
        },
        "data": {"a": "1", "b": "2", "c": "3"},
    }
    key = ResourceKey("", "ConfigMap", "ns", "a")
    drift = build_drift(app(sync=OUT, history=LAST), {key: live, ResourceKey("", "Secret", "ns", "s"): None})
    assert drift is not None
    first, gone = drift["objects"]
    assert first["fields"] == [{"path": ".data.c", "manager": "kubectl-edit", "since": "2026-01-02T00:00:00Z"}]
    assert gone["why"] == "it was deleted"


def test_drift_lists_an_applied_field_that_was_removed() -> None:
    applied = json.dumps({"spec": {"replicas": 2, "paused": True}})
    marks = {"kubectl.kubernetes.io/last-applied-configuration": applied}
    live = {"metadata": {"annotations": marks}, "spec": {"replicas": 2}}
    drift = build_drift(app(sync=OUT, history=LAST), {ResourceKey("apps", "Deployment", "ns", "a"): live})
    assert drift is not None and [field["path"] for field in drift["objects"][0]["fields"]] == [".spec.paused"]


def test_failing_condition_does_not_hold_and_reports_the_error() -> None:
    texts = [("app.nothing.here", ""), ("true", "app.x.y"), ("5", "")]
    conditions = [{"when": when, "once": once} for when, once in texts]
    results = evaluate_conditions({"values": {"app": {}}, "now": NOW, "conditions": conditions})
    assert [result["holds"] for result in results] == [False, True, False]
    assert "cannot fetch" in results[0]["fault"] and "oncePer" in results[1]["fault"]


def test_template_error_names_the_line_and_later_templates_override_earlier_ones() -> None:
    request = {"values": {"app": {"n": 1}}, "now": NOW}
    assert "line 2" in render_templates({**request, "templates": [{"message": "\n{{.x"}]})["fault"]
    two = [{"message": "a{{.app.n}}", "email": {"subject": "s"}}, {"message": "b"}]
    assert render_templates({**request, "templates": two})["notification"] == {
        "message": "b",
        "email": {"subject": "s"},
    }


@pytest.mark.parametrize("is_operated", [False, True])
def test_export_for_a_stock_controller_is_valid_and_refers_only_to_app(is_operated: bool) -> None:
    export = build_export("argocd", ["slack:x"], is_operated=is_operated)
    parts = export["spec"] if is_operated else {"": export["data"]}
    data = {key: value for part in parts.values() for key, value in part.items()}
    settings = read_settings({"data": data}, None)
    assert not settings.problems and settings.subscriptions[0].recipients == ("slack:x",)
    for key in data:
        if key.startswith("trigger."):
            for condition in settings.triggers[key.removeprefix("trigger.")]:
                assert compile_expression(condition.when).names | {"app"} == {"app"}
