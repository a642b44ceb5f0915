"""Tests foreign fields: live-only fields with their managers, shown beside a difference but never counted as one."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.diff import list_foreign_fields
from argosy.kube.objects import Manifest
from support.comparisons import manifest, pair, widget


def owned(live: Manifest, **managers: Any) -> Manifest:
    entries = [
        {
            "manager": name.replace("_", "-"), "operation": "Update", "apiVersion": live["apiVersion"],
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
        }
        for name, fields in managers.items()
    ]  # fmt: skip
    return {**live, "metadata": {**live["metadata"], "managedFields": entries}}


def list_added_fields(desired: Manifest, live: Manifest) -> list[tuple[str, Any, str]]:
    return [(field.pointer, field.live, field.manager) for field in list_foreign_fields(pair(desired, live))]


def test_field_set_by_a_webhook_is_listed_with_manager_and_value() -> None:
    desired = widget({"model": {"cpu": "4"}})
    live = owned(
        widget({"model": {"cpu": "3", "name": ""}, "mount": False}),
        argocd_controller={"f:spec": {"f:model": {"f:cpu": {}}}},
        kserve_webhook={"f:spec": {"f:model": {"f:name": {}}, "f:mount": {}}},
    )
    assert list_added_fields(desired, live) == [
        ("/spec/model/name", "", "kserve-webhook"),
        ("/spec/mount", False, "kserve-webhook"),
    ]
    one = list_foreign_fields(pair(desired, live))[0]
    assert (one.has_desired, one.since) == (False, "2026-01-01T00:00:00Z")


def test_defaults_owned_by_the_applier_are_not_listed() -> None:
    live = owned(widget({"a": 2, "b": 1}), argocd_controller={"f:spec": {"f:a": {}, "f:b": {}}})
    assert list_added_fields(widget({"a": 1}), live) == []


def test_fields_without_owner_are_not_listed() -> None:
    assert list_added_fields(widget({"a": 1}), widget({"a": 2, "b": 1})) == []


def test_metadata_and_status_are_not_listed() -> None:
    live = owned(
        {**widget({"a": 2}, annotations={"x": "y"}), "status": {"ready": True}},
        argocd_controller={"f:spec": {"f:a": {}}},
        other={"f:metadata": {"f:annotations": {"f:x": {}}}, "f:status": {"f:ready": {}}},
    )
    assert list_added_fields(widget({"a": 1}), live) == []


@pytest.mark.parametrize("kind", ["Secret"])
def test_fields_of_a_secret_are_not_listed(kind: str) -> None:
    live = owned(manifest(kind, data={"a": "Mg==", "b": "Mg=="}), other={"f:data": {"f:b": {}}})
    assert list_added_fields(manifest(kind, data={"a": "MQ=="}), live) == []


def test_unreadable_managed_fields_list_nothing() -> None:
    live = owned(widget({"a": 2, "b": 1}), other={"f:spec": {"f:b": {}}})
    live["metadata"]["managedFields"][0]["fieldsV1"] = {"x": 1}
    assert list_added_fields(widget({"a": 1}), live) == []
