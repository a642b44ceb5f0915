"""Import plans, without a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import UserError
from argosy.features.backup.export_format import manifest_to_export, render_stream
from argosy.features.backup.import_plan import ImportChange, ImportOptions, ImportVerb, plan_changes
from argosy.features.backup.import_service import read_import_file
from argosy.features.backup.installation_objects import BackupScope
from argosy.gitops.policy.application_delivery_engine_detection import ArgoCDController, DeliveryEngines
from argosy.gitops.status.sync_hold_annotation import SyncHold
from argosy.kube.objects import dump_yaml

SCOPE = BackupScope("argocd", has_secrets=True)
DECISIONS = {
    "argosy.dev/hold": '{"reason": "it loses orders"}',
    "argosy.dev/engine": "argosy",
    "argocd.argoproj.io/skip-reconcile": "true",
    "argocd.argoproj.io/deletion-approved": "2026-01-01T00:00:00Z",
}


def application(annotations: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    metadata = {"name": "shop", "namespace": "argocd", "annotations": annotations or {}}
    spec = {"source": {"repoURL": "https://git.example.com/shop"}, "syncPolicy": {"automated": {}}}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec, **more}


def test_truncated_export_file_is_rejected() -> None:
    whole = render_stream(
        [manifest_to_export(application(DECISIONS), "argocd"), manifest_to_export(application(), "")]
    ).encode()
    assert len(read_import_file(whole, "a.yaml")) == 2
    assert len(read_import_file(whole.replace(b"\n", b"\r\n") + whole, "a.yaml")) == 4
    lines = whole.splitlines(keepends=True)
    cuts = {len(whole) - 2, *(len(b"".join(lines[:count])) for count in range(1, len(lines)))}
    for cut in cuts:
        with pytest.raises(UserError, match="the file is truncated"):
            read_import_file(whole[:cut], "a.yaml")
    with pytest.raises(UserError, match="the file is truncated"):
        read_import_file(b"".join(lines[3:]), "a.yaml")
    assert len(read_import_file(b"".join(lines[1:-1]), "a.yaml")) == 2  # format of argocd admin export


@pytest.mark.parametrize(
    ("shape", "named"),
    [
        ({"kind": ["a"]}, "document 2: kind"),
        ({"metadata": {"generateName": "a"}}, "Application without a name: metadata.name"),
        ({"metadata": {"name": "a", "namespace": 3}}, "Application a: metadata.namespace"),
        ({"metadata": {"name": "a", "labels": ["a"]}}, "Application a: metadata.labels"),
        ({"metadata": {"name": "a", "labels": {"team": 5}}}, "Application a: metadata.labels"),
        ({"metadata": {"name": "a", "annotations": "x"}}, "Application a: metadata.annotations"),
        ({"metadata": {"name": "a", "finalizers": 3}}, "Application a: metadata.finalizers"),
        ({"kind": "ConfigMap", "data": {"a": True}}, "ConfigMap shop: data"),
        ({"kind": "Secret", "stringData": ["a"]}, "Secret shop: stringData"),
        ({"spec": "x"}, "Application shop: spec"),
        ({"status": {"history": 3}}, "Application shop: status.history"),
    ],
)
def test_invalid_manifest_is_rejected_with_object_and_field(shape: dict[str, Any], named: str) -> None:
    content = f"{dump_yaml(application())}---\n{dump_yaml(application(**shape))}".encode()
    with pytest.raises(UserError, match=rf"a\.yaml.*{named}"):
        read_import_file(content, "a.yaml")


def test_malformed_operation_state_does_not_prevent_planning() -> None:
    status = {"operationState": {"phase": ["a"]}, "sync": 3}
    (manifest,) = read_import_file(dump_yaml(application(status=status, operation=3)).encode(), "a.yaml")
    assert change(manifest, None).verb is ImportVerb.CREATE


def test_secret_string_data_is_merged_into_data() -> None:
    metadata = {"name": "argocd-secret", "namespace": "argocd"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    file = {**secret, "data": {"a": "b2xk", "b": "Yg=="}, "stringData": {"a": "new"}}
    (imported_secret,) = read_import_file(dump_yaml(file).encode(), "a.yaml")
    live = {**secret, "type": "Opaque", "data": {"a": "bmV3", "b": "Yg=="}}
    assert change(imported_secret, live).verb is ImportVerb.UNCHANGED
    assert change(imported_secret, {**live, "data": {"a": "b2xk", "b": "Yg=="}}).body == {"data": {"a": "bmV3"}}


def change(file: dict[str, Any], live: dict[str, Any] | None, wish: ImportOptions | None = None) -> ImportChange:
    (planned_change,) = plan_changes([file], [live] if live else [], wish or ImportOptions(SCOPE))
    return planned_change


@pytest.mark.parametrize("name", DECISIONS)
def test_local_decision_annotations_are_kept_unless_overwritten(name: str) -> None:
    decided, plain = application({name: DECISIONS[name]}), application()
    for file, live in ((plain, decided), (decided, plain)):
        planned_change = change(file, live, ImportOptions(SCOPE, hold=SyncHold("imported")))
        assert planned_change.verb is ImportVerb.UNCHANGED
        assert name in planned_change.reason
        overwriting_change = change(file, live, ImportOptions(SCOPE, overwrites_decisions=True))
        assert overwriting_change.verb is ImportVerb.UPDATE and not overwriting_change.reason
        assert overwriting_change.body["metadata"]["annotations"] == {
            name: DECISIONS[name] if file is decided else None
        }
    other = change({**plain, "spec": {"source": {}}}, decided)
    assert other.verb is ImportVerb.UPDATE and "metadata" not in other.body


def test_only_the_history_of_a_status_is_imported() -> None:
    history = [{"id": 3, "revision": "abc"}]
    state = {"phase": "Succeeded", "syncResult": {"revision": "abc"}}
    file = application(status={"history": history, "operationState": state, "sync": {"status": "Synced"}})
    assert change(file, None).body["status"] == {"history": history}
    assert change(file, application(status={"sync": {"status": "OutOfSync"}})).body == {"status": {"history": history}}
    newer = application(status={"history": [{"id": 4, "revision": "def"}]})
    assert change(file, newer).verb is ImportVerb.UNCHANGED
    assert "status" not in change(application(status={"operationState": state}), None).body


def test_differences_list_changed_fields_and_redact_secret_values() -> None:
    file = application(status={"history": [{"id": 0}]})
    live = {**file, "spec": {"source": {"repoURL": "https://git.example.com/old", "path": "app"}}, "status": {}}
    assert change(file, live).differences == (
        "spec.source.repoURL: https://git.example.com/old → https://git.example.com/shop",
        "spec.source.path: app is removed",
        "spec.syncPolicy.automated: {} is added",
        "status.history: 1 entry added",
    )
    metadata = {"name": "argocd-secret", "namespace": "argocd"}
    before = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"a": "b2xk", "gone": "Z29uZQ=="}}
    planned_change = change({**before, "data": {"a": "bmV3", "more": "bW9yZQ=="}}, before)
    assert planned_change.differences == (
        "data.a: ++++++++ → ++++++++++++",
        "data.more: ++++++++ is added",
        "data.gone: ++++++++ is removed",
    )
    assert planned_change.to_wire()["differences"] == list(planned_change.differences)


def test_new_application_keeps_its_imported_decision_annotations() -> None:
    planned_change = change(application(DECISIONS), None, ImportOptions(SCOPE, hold=SyncHold("imported")))
    assert planned_change.verb is ImportVerb.CREATE
    assert planned_change.body["metadata"]["annotations"] == DECISIONS


def test_duplicate_object_in_an_import_is_rejected_by_name() -> None:
    whole = render_stream([manifest_to_export(application(), "argocd")]).encode()
    twice = read_import_file(whole + whole, "a.yaml")
    for live in ([], [application()]):
        with pytest.raises(UserError, match="Application shop in argocd occurs more than once"):
            plan_changes(twice, live, ImportOptions(SCOPE))
    elsewhere = manifest_to_export({**application(), "metadata": {"name": "shop", "namespace": "team-a"}}, "argocd")
    assert [
        planned_change.verb for planned_change in plan_changes([twice[0], elsewhere], [], ImportOptions(SCOPE))
    ] == [
        ImportVerb.CREATE,
        ImportVerb.CREATE,
    ]


def labelled(**labels: str) -> dict[str, Any]:
    manifest = application()
    return {**manifest, "metadata": {**manifest["metadata"], "labels": labels}}


@pytest.mark.parametrize("label", ["keep", "keep=yes", "other,keep=yes"])
def test_object_with_a_skipped_label_is_neither_written_nor_pruned(label: str) -> None:
    wish = ImportOptions(SCOPE, prunes=True, skipped_labels=tuple(label.split(",")))
    labelled_app = labelled(keep="yes")
    assert plan_changes([], [labelled_app], wish) == []
    for file, live in ((labelled_app, None), (labelled_app, application()), (application(), labelled_app)):
        planned_change = change(file, live, wish)
        assert planned_change.verb is ImportVerb.SKIP and "the label keep" in planned_change.reason


def test_label_with_another_value_is_not_skipped() -> None:
    wish = ImportOptions(SCOPE, prunes=True, skipped_labels=("keep=yes",))
    assert [planned_change.verb for planned_change in plan_changes([], [labelled(keep="no")], wish)] == [
        ImportVerb.PRUNE
    ]


def test_application_of_another_argocd_is_pruned_only_in_selected_namespaces() -> None:
    engines_of_argocd = DeliveryEngines((ArgoCDController("StatefulSet", "argocd", "controller", ("team-*",)),))
    live = [application()]
    live += [
        {**application(), "metadata": {"name": "shop", "namespace": namespace}} for namespace in ("team-a", "other")
    ]

    def verbs(engines: DeliveryEngines, scope: BackupScope) -> dict[str, ImportVerb]:
        planned_changes = plan_changes([], live, ImportOptions(scope, prunes=True, engines=engines))
        return {planned_change.key.namespace: planned_change.verb for planned_change in planned_changes}

    skip, prune = ImportVerb.SKIP, ImportVerb.PRUNE
    assert verbs(engines_of_argocd, BackupScope("argosy")) == {"argocd": skip, "team-a": skip, "other": prune}
    assert verbs(engines_of_argocd, BackupScope("argocd")) == {
        "argocd": prune,
        "team-a": prune,
        "other": prune,
    }  # the Argo CD of this installation
    assert verbs(engines_of_argocd, BackupScope("argosy", namespaces=("team-a",))) == {"team-a": prune}
    assert verbs(DeliveryEngines(is_known=False), BackupScope("argocd")) == {
        "argocd": prune,
        "team-a": skip,
        "other": skip,
    }
    assert plan_changes([], live[:1], ImportOptions(BackupScope("argosy"), engines=engines_of_argocd)) == []
