"""What an import plans, without a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import UserError
from argosy.features.backup.file_format import exported, stream
from argosy.features.backup.import_plan import Change, Verb, Wish, planned
from argosy.features.backup.import_service import read_stream
from argosy.features.backup.installation_objects import Scope
from argosy.gitops.policy.delivery_engine import Controller, Engines
from argosy.gitops.status.hold import Hold
from argosy.kube.objects import dump

SCOPE = Scope("argocd", has_secrets=True)
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


def test_a_file_that_was_cut_anywhere_is_refused() -> None:
    whole = stream([exported(application(DECISIONS), "argocd"), exported(application(), "")]).encode()
    assert len(read_stream(whole, "a.yaml")) == 2
    assert len(read_stream(whole.replace(b"\n", b"\r\n") + whole, "a.yaml")) == 4
    lines = whole.splitlines(keepends=True)
    cuts = {len(whole) - 2, *(len(b"".join(lines[:count])) for count in range(1, len(lines)))}
    for cut in cuts:
        with pytest.raises(UserError, match="the file is truncated"):
            read_stream(whole[:cut], "a.yaml")
    with pytest.raises(UserError, match="the file is truncated"):
        read_stream(b"".join(lines[3:]), "a.yaml")
    assert len(read_stream(b"".join(lines[1:-1]), "a.yaml")) == 2  # as argocd writes it


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
def test_what_no_cluster_would_take_is_refused_by_its_name(shape: dict[str, Any], named: str) -> None:
    content = f"{dump(application())}---\n{dump(application(**shape))}".encode()
    with pytest.raises(UserError, match=rf"a\.yaml.*{named}"):
        read_stream(content, "a.yaml")


def test_what_has_any_other_shape_is_planned() -> None:
    status = {"operationState": {"phase": ["a"]}, "sync": 3}
    (found,) = read_stream(dump(application(status=status, operation=3)).encode(), "a.yaml")
    assert change(found, None).verb is Verb.CREATE


def test_texts_of_a_secret_are_its_data() -> None:
    metadata = {"name": "argocd-secret", "namespace": "argocd"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    file = {**secret, "data": {"a": "b2xk", "b": "Yg=="}, "stringData": {"a": "new"}}
    (found,) = read_stream(dump(file).encode(), "a.yaml")
    live = {**secret, "type": "Opaque", "data": {"a": "bmV3", "b": "Yg=="}}
    assert change(found, live).verb is Verb.UNCHANGED
    assert change(found, {**live, "data": {"a": "b2xk", "b": "Yg=="}}).body == {"data": {"a": "bmV3"}}


def change(file: dict[str, Any], live: dict[str, Any] | None, wish: Wish | None = None) -> Change:
    (found,) = planned([file], [live] if live else [], wish or Wish(SCOPE))
    return found


@pytest.mark.parametrize("name", DECISIONS)
def test_what_people_decided_here_is_kept_whatever_the_file_says(name: str) -> None:
    decided, plain = application({name: DECISIONS[name]}), application()
    for file, live in ((plain, decided), (decided, plain)):
        found = change(file, live, Wish(SCOPE, hold=Hold("imported")))
        assert found.verb is Verb.UNCHANGED
        assert name in found.why
        asked = change(file, live, Wish(SCOPE, decides=True))
        assert asked.verb is Verb.UPDATE and not asked.why
        assert asked.body["metadata"]["annotations"] == {name: DECISIONS[name] if file is decided else None}
    other = change({**plain, "spec": {"source": {}}}, decided)
    assert other.verb is Verb.UPDATE and "metadata" not in other.body


def test_of_a_status_the_history_alone_is_written() -> None:
    history = [{"id": 3, "revision": "abc"}]
    state = {"phase": "Succeeded", "syncResult": {"revision": "abc"}}
    file = application(status={"history": history, "operationState": state, "sync": {"status": "Synced"}})
    assert change(file, None).body["status"] == {"history": history}
    assert change(file, application(status={"sync": {"status": "OutOfSync"}})).body == {"status": {"history": history}}
    newer = application(status={"history": [{"id": 4, "revision": "def"}]})
    assert change(file, newer).verb is Verb.UNCHANGED
    assert "status" not in change(application(status={"operationState": state}), None).body


def test_every_field_that_changes_is_told_but_no_value_of_a_secret() -> None:
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
    found = change({**before, "data": {"a": "bmV3", "more": "bW9yZQ=="}}, before)
    assert found.differences == (
        "data.a: ++++++++ → ++++++++++++",
        "data.more: ++++++++ is added",
        "data.gone: ++++++++ is removed",
    )
    assert found.document()["differences"] == list(found.differences)


def test_what_was_decided_elsewhere_goes_along_with_what_is_new_here() -> None:
    made = change(application(DECISIONS), None, Wish(SCOPE, hold=Hold("imported")))
    assert made.verb is Verb.CREATE
    assert made.body["metadata"]["annotations"] == DECISIONS


def test_two_exports_in_one_file_that_have_the_same_are_refused_by_its_name() -> None:
    whole = stream([exported(application(), "argocd")]).encode()
    twice = read_stream(whole + whole, "a.yaml")
    for live in ([], [application()]):
        with pytest.raises(UserError, match="Application shop in argocd occurs more than once"):
            planned(twice, live, Wish(SCOPE))
    elsewhere = exported({**application(), "metadata": {"name": "shop", "namespace": "team-a"}}, "argocd")
    assert [each.verb for each in planned([twice[0], elsewhere], [], Wish(SCOPE))] == [Verb.CREATE, Verb.CREATE]


def labelled(**labels: str) -> dict[str, Any]:
    made = application()
    return {**made, "metadata": {**made["metadata"], "labels": labels}}


@pytest.mark.parametrize("label", ["keep", "keep=yes", "other,keep=yes"])
def test_what_has_a_label_that_is_skipped_is_neither_written_nor_pruned(label: str) -> None:
    wish = Wish(SCOPE, prunes=True, skipped_labels=tuple(label.split(",")))
    kept = labelled(keep="yes")
    assert planned([], [kept], wish) == []
    for file, live in ((kept, None), (kept, application()), (application(), kept)):
        found = change(file, live, wish)
        assert found.verb is Verb.SKIP and "the label keep" in found.why


def test_a_label_of_another_value_is_not_skipped() -> None:
    wish = Wish(SCOPE, prunes=True, skipped_labels=("keep=yes",))
    assert [each.verb for each in planned([], [labelled(keep="no")], wish)] == [Verb.PRUNE]


def test_what_another_argo_cd_delivers_is_pruned_only_where_its_namespace_is_named() -> None:
    theirs = Engines((Controller("StatefulSet", "argocd", "controller", ("team-*",)),))
    live = [application()]
    live += [{**application(), "metadata": {"name": "shop", "namespace": each}} for each in ("team-a", "other")]

    def verbs(engines: Engines, scope: Scope) -> dict[str, Verb]:
        found = planned([], live, Wish(scope, prunes=True, engines=engines))
        return {each.key.namespace: each.verb for each in found}

    skip, prune = Verb.SKIP, Verb.PRUNE
    assert verbs(theirs, Scope("argosy")) == {"argocd": skip, "team-a": skip, "other": prune}
    assert verbs(theirs, Scope("argocd")) == {"argocd": prune, "team-a": prune, "other": prune}  # it is this one
    assert verbs(theirs, Scope("argosy", namespaces=("team-a",))) == {"team-a": prune}
    assert verbs(Engines(is_known=False), Scope("argocd")) == {"argocd": prune, "team-a": skip, "other": skip}
    assert planned([], live[:1], Wish(Scope("argosy"), engines=theirs)) == []
