"""Detection of the cause of a field difference from the available evidence."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from argosy.gitops.analysis.difference_cause_detection import find_causes
from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind, is_interactive_client
from argosy.gitops.analysis.object_versions_as_cause_evidence import (
    ABSENT,
    Evidence,
    find_rejection_message,
    get_matching_value,
    read_rejected_fields,
)
from argosy.gitops.application.step_results import FieldDifference, FieldOrigin, Pair
from argosy.kube.resource_key import ResourceKey
from support.paths import ROOT

KEY = ResourceKey("example.org", "Widget", "ml", "one")
SIZE = FieldDifference("/spec/size", 1, 2, manager="tuner", since="2026-01-02T03:04:05Z")
OURS = SIZE._replace(manager="argocd-controller")


def manifest(applied: Any = None, **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "one"}
    if applied is not None:
        text = orjson.dumps({"spec": applied}).decode()
        metadata["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": text}
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


def evidence(applied: Any = None, **more: Any) -> Evidence:
    """Build evidence in which Git has size 1 and the live object has size 2."""
    return Evidence("models", Pair(KEY, manifest(size=1), manifest(applied, size=2), differs=True), **more)


def kind(facts: Evidence, difference: FieldDifference = SIZE) -> CauseKind:
    (cause,) = find_causes(facts, [difference])
    return cause.kind


@pytest.mark.parametrize(
    "facts, difference, expected",
    [
        (evidence({"size": 1}), SIZE, CauseKind.OTHER_CONTROLLER),
        (evidence({"size": 2}), OURS, CauseKind.GIT_CHANGE),
        (evidence({"size": 3}), SIZE, CauseKind.GIT_CHANGE),  # both changed: a sync applies the new value
        (evidence({}), OURS, CauseKind.GIT_CHANGE),
        (evidence(), OURS, CauseKind.GIT_CHANGE),
        (evidence(), SIZE, CauseKind.OTHER_CONTROLLER),
        (evidence(), SIZE._replace(manager="", since=""), CauseKind.UNKNOWN),
        (evidence({"size": 1}), OURS, CauseKind.UNKNOWN),
        (evidence({"size": 1}, predicted=manifest(size=1)), SIZE, CauseKind.OTHER_CONTROLLER),
        (evidence({"size": 1}, predicted=manifest(size=2)), OURS, CauseKind.WEBHOOK),
        (evidence({"size": 1}, predicted=manifest(size=2), with_defaults=manifest(size=2)), OURS, CauseKind.DEFAULTING),
        (evidence({"size": 1}, predicted=manifest(size=2), with_defaults=manifest(size=1)), OURS, CauseKind.WEBHOOK),
        (evidence(rejected_fields={"spec.size": "field is immutable"}), OURS, CauseKind.IMMUTABLE),
        (evidence(rejected_fields={"spec.size": "Invalid value: 1: too small"}), OURS, CauseKind.REFUSED),
        (evidence(rejected_fields={"spec.other": "field is immutable"}), OURS, CauseKind.GIT_CHANGE),
        (evidence(on_default_branch=manifest(size=2), default_branch="main", ref="old"), OURS, CauseKind.STALE_BRANCH),
        (
            evidence(on_default_branch=manifest(size=5), default_branch="main", ref="old"),
            OURS,
            CauseKind.GIT_CHANGE,
        ),
        (evidence(on_default_branch=manifest(size=2)), OURS, CauseKind.GIT_CHANGE),  # it follows the default branch
        # compared with a revision that the Application does not follow
        (evidence({"size": 2}, other_revision="v1"), OURS, CauseKind.OTHER_REVISION),
        (evidence({"size": 1}, other_revision="v1"), SIZE, CauseKind.OTHER_CONTROLLER),
    ],
)  # fmt: skip
def test_difference_has_the_cause_that_the_evidence_shows(
    facts: Evidence, difference: FieldDifference, expected: CauseKind
) -> None:
    assert kind(facts, difference) is expected


def test_field_missing_in_live_was_removed_never_applied_or_unknown() -> None:
    absent = FieldDifference("/spec/size", 1, None, has_live=False)
    live = manifest({"size": 1})
    live["metadata"]["managedFields"] = [
        {"manager": "tuner", "operation": "Update", "apiVersion": "example.org/v1", "time": "2026-01-02T03:04:05Z",
         "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:colour": {}}}},
    ]  # fmt: skip
    gone = Evidence("models", Pair(KEY, manifest(size=1), live, differs=True))
    new = Evidence("models", Pair(KEY, manifest(size=1), manifest({}), differs=True))
    dropped = Evidence("models", Pair(KEY, manifest(size=1), manifest({"size": 1}), differs=True), predicted=manifest())
    (cause,) = find_causes(gone, [absent])
    assert (cause.kind, cause.manager) == (CauseKind.OTHER_CONTROLLER, "tuner")
    assert kind(new, absent) is CauseKind.GIT_CHANGE
    assert kind(dropped, absent) is CauseKind.UNKNOWN_FIELD


def test_interactive_manager_is_reported_as_changed_by_hand() -> None:
    (hand,) = find_causes(evidence(), [SIZE._replace(manager="kubectl-edit")])
    (other,) = find_causes(evidence(), [SIZE])
    assert hand.text == "changed by hand with kubectl-edit, 2026-01-02T03:04:05Z"
    assert other.text == "changed by tuner, 2026-01-02T03:04:05Z"


def test_rejection_message_of_a_secret_is_not_repeated() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}, "data": {"key": "aHVudGVyMg=="}}
    pair = Pair(ResourceKey("", "Secret", "ml", "one"), secret, secret, differs=True)
    secret_evidence = Evidence("models", pair, rejected_fields={"data.key": 'Invalid value: "aHVudGVyMg=="'})
    (cause,) = find_causes(secret_evidence, [FieldDifference("/data/key", "+++", "++++")])
    assert cause.kind is CauseKind.REFUSED and "aHV" not in cause.text


def test_cause_to_wire_omits_unknown_fields() -> None:
    (cause,) = find_causes(evidence({"size": 2}, origins={"/spec/size": FieldOrigin("a.yaml", 7)}), [OURS])
    assert cause.location == "a.yaml:7" and cause.commit_summary == ""
    assert set(cause.to_wire()) == {"kind", "text", "next", "file", "line", "manager", "at"}
    assert Cause(CauseKind.PRUNE, "x").to_wire() == {"kind": "Prune", "text": "x"}


SELECTOR = 'Deployment.apps "x" is invalid: spec.selector: Invalid value: {"a":"b"}: field is immutable'
TWO = '[metadata.name: Invalid value: "X": bad, spec.volumes[0].name: Forbidden: updates to it]'
STATEFUL = "updates to statefulset spec for fields other than 'replicas', 'template' are forbidden"


@pytest.mark.parametrize(
    "message, fields",
    [
        (SELECTOR, ["spec.selector"]),
        (TWO, ["metadata.name", "spec.volumes[0].name"]),
        (f"spec: Forbidden: {STATEFUL}", ["spec"]),
        (".spec.colour: field not declared in schema", ["spec.colour"]),
        ("no room on the disk", []),
        ("", []),
    ],
)
def test_rejected_fields_are_parsed_from_the_server_message(message: str, fields: list[str]) -> None:
    assert list(read_rejected_fields(message)) == fields


def test_status_causes_take_precedence_over_the_message() -> None:
    details = {"causes": [{"field": "spec.size", "message": "must be odd"}, {"reason": "x"}, 3]}
    assert read_rejected_fields(SELECTOR, details) == {"spec.size": "must be odd"}


def test_rejection_of_a_parent_field_covers_its_children_except_allowed_ones() -> None:
    assert find_rejection_message("/spec/selector/matchLabels/app", {"spec.selector": "no"}) == "no"
    assert find_rejection_message("/spec/containers/0/image", {"spec.containers[0]": "no"}) == "no"
    assert find_rejection_message("/spec/selectors", {"spec.selector": "no"}) == ""
    assert find_rejection_message("/spec/serviceName", {"spec": STATEFUL}) == STATEFUL
    assert find_rejection_message("/spec/replicas", {"spec": STATEFUL}) == ""


def test_list_elements_are_matched_by_name() -> None:
    live = {"items": [{"name": "a", "v": 1}, {"name": "b", "v": 2}]}
    git = {"items": [{"name": "b", "v": 3}]}
    assert get_matching_value(git, ["items", "1", "v"], live) == 3
    assert get_matching_value(git, ["items", "0", "v"], live) is ABSENT
    assert get_matching_value({"items": [1, 2]}, ["items", "1"], {"items": [5, 6]}) == 2
    assert get_matching_value(None, ["items"], live) is ABSENT


def test_all_cause_kinds_are_documented() -> None:
    page = (ROOT / "docs" / "reference" / "difference-causes.md").read_text()
    assert [cause_kind.value for cause_kind in CauseKind if f"| `{cause_kind.value}` |" not in page] == []
    assert all(cause_kind.label for cause_kind in CauseKind)


@pytest.mark.parametrize("manager", ["kubectl-edit", "oc", "argocd-server", "Mozilla", "k9s"])
def test_interactive_clients_are_detected(manager: str) -> None:
    assert is_interactive_client(manager)


@pytest.mark.parametrize("manager", ["ocs-operator", "argocd-server-operator", "opendatahub-operator", ""])
def test_controllers_are_not_interactive_clients(manager: str) -> None:
    assert not is_interactive_client(manager)


def test_webhook_cause_mentions_a_change_in_git_since_the_last_sync() -> None:
    (anew,) = find_causes(evidence({"size": 3}, predicted=manifest(size=2)), [OURS])
    (same,) = find_causes(evidence({"size": 1}, predicted=manifest(size=2)), [OURS])
    assert anew.has_changed_in_git and anew.text.endswith("; changed in Git since the last sync")
    assert not same.has_changed_in_git
