"""Tests resource tracking: tracking metadata is written and read as in Argo CD."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.annotations import INSTALLATION_ID, INSTANCE_LABEL, TRACKING_ID
from argosy.errors import ManifestError
from argosy.gitops.application import Application, Destination
from argosy.gitops.live import (
    TrackingSettings,
    add_tracking,
    build_instance_name,
    is_self_referenced,
    normalize_tracking,
    parse_tracking_id,
    read_instance_name,
    read_tracking,
)
from argosy.gitops.live.tracking import TrackingMethod
from argosy.kube.objects import Manifest
from support.examples import examples

APP = Application(name="shop", namespace="argocd", destination=Destination(namespace="prod"))
ANNOTATION = TrackingSettings(control_namespace="argocd")
LABEL = TrackingSettings("label", control_namespace="argocd")
BOTH = TrackingSettings("annotation+label", control_namespace="argocd")


def config(name: str = "web", namespace: str = "prod", **metadata: Any) -> Manifest:
    namespace_field = {"namespace": namespace} if namespace else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **namespace_field, **metadata}}


def tracked(text: str, **metadata: Any) -> Manifest:
    return config(annotations={TRACKING_ID: text}, **metadata)


# -- writing


@pytest.mark.parametrize(
    ("tracking", "annotations", "labels"),
    [
        (ANNOTATION, {TRACKING_ID: "shop:/ConfigMap:prod/web"}, {}),
        (LABEL, {}, {INSTANCE_LABEL: "shop"}),
        (BOTH, {TRACKING_ID: "shop:/ConfigMap:prod/web"}, {INSTANCE_LABEL: "shop"}),
        (TrackingSettings("label", "team/app", control_namespace="argocd"), {}, {"team/app": "shop"}),
        (
            TrackingSettings(installation_id="east", control_namespace="argocd"),
            {TRACKING_ID: "shop:/ConfigMap:prod/web", INSTALLATION_ID: "east"},
            {},
        ),
        (TrackingSettings("label", installation_id="east", control_namespace="argocd"), {}, {INSTANCE_LABEL: "shop"}),
    ],
)
def test_each_method_writes_its_own_metadata(
    tracking: TrackingSettings, annotations: dict[str, str], labels: dict[str, str]
) -> None:
    metadata = add_tracking(config(), APP, tracking)["metadata"]
    assert (metadata.get("annotations", {}), metadata.get("labels", {})) == (annotations, labels)


def test_other_annotations_and_labels_are_kept() -> None:
    metadata = add_tracking(config(annotations={"a": "1"}, labels={"b": "2"}), APP, BOTH)["metadata"]
    assert metadata["annotations"]["a"] == "1"
    assert metadata["labels"] == {"b": "2", INSTANCE_LABEL: "shop"}


@pytest.mark.parametrize(
    ("manifest", "written"),
    [
        (config(namespace=""), "shop:/ConfigMap:prod/web"),
        ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}}, "shop:/Namespace:prod/prod"),
        (
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "other"}},
            "shop:apps/Deployment:other/web",
        ),
        (
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:web"}},
            "shop:rbac.authorization.k8s.io/ClusterRole:prod/system:web",
        ),
        (  # a sync generates the name and adds it to the ID
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "migrate-", "namespace": "prod"}},
            "shop:batch/Job:prod/",
        ),
    ],
)
def test_tracking_id_contains_group_kind_namespace_and_name(manifest: Manifest, written: str) -> None:
    tracked_manifest = add_tracking(manifest, APP, ANNOTATION)
    assert tracked_manifest["metadata"]["annotations"][TRACKING_ID] == written
    assert read_instance_name(tracked_manifest, ANNOTATION) == "shop"


def test_crd_gets_no_tracking() -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.sea.dev"},
    }
    assert add_tracking(definition, APP, BOTH) == definition


def test_foreign_installation_id_is_removed_if_none_is_configured() -> None:
    tracked_manifest = add_tracking(config(annotations={INSTALLATION_ID: "west"}), APP, ANNOTATION)
    assert INSTALLATION_ID not in tracked_manifest["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("a" * 63, "a" * 63),
        ("a" * 64, "a" * 63),
        ("a" * 60 + "-.-" + "b" * 9, "a" * 60),
        ("a" * 62 + "-b", "a" * 62),
    ],
)
def test_long_label_is_truncated_if_the_annotation_decides(name: str, label: str) -> None:
    app = Application(name=name, namespace="argocd")
    tracked_manifest = add_tracking(config(), app, BOTH)
    assert tracked_manifest["metadata"]["labels"][INSTANCE_LABEL] == label
    assert read_instance_name(tracked_manifest, BOTH) == name


def test_label_is_never_truncated_for_label_tracking() -> None:
    app = Application(name="a" * 80, namespace="argocd")
    assert add_tracking(config(), app, LABEL)["metadata"]["labels"][INSTANCE_LABEL] == "a" * 80


@pytest.mark.parametrize(("namespace", "name"), [("argocd", "shop"), ("", "shop"), ("team", "team_shop")])
def test_application_in_another_namespace_has_namespace_in_its_name(namespace: str, name: str) -> None:
    app = Application(name="shop", namespace=namespace)
    assert build_instance_name(app, ANNOTATION) == name
    assert read_instance_name(add_tracking(config(), app, ANNOTATION), ANNOTATION) == name


@pytest.mark.parametrize("part", ["annotations", "labels"])
def test_metadata_that_is_not_a_map_is_rejected(part: str) -> None:
    with pytest.raises(ManifestError, match=f"metadata.{part} must be a map"):
        add_tracking(config(**{part: "text"}), APP, BOTH)


# -- reading


@pytest.mark.parametrize(
    "text",
    ["", "shop", "shop:", "shop:apps/Deployment", "shop:Deployment:prod/web", "shop:apps/v1/Deployment:prod/web",
     "shop:apps/Deployment:web", "shop:apps/Deployment:a/b/c", "::", "/:/"],
)  # fmt: skip
def test_invalid_tracking_id_belongs_to_no_application(text: str) -> None:
    assert parse_tracking_id(text) is None
    assert read_instance_name(tracked(text), ANNOTATION) == ""
    assert is_self_referenced(tracked(text), ANNOTATION)


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"metadata": None},
        {"metadata": "text"},
        {"metadata": {"annotations": None, "labels": None}},
        {"metadata": {"annotations": [], "labels": "x"}},
        {"metadata": {"annotations": {TRACKING_ID: 7}, "labels": {INSTANCE_LABEL: True}}},
    ],
)
def test_instance_name_of_malformed_manifest_is_empty(manifest: Manifest) -> None:
    assert [read_instance_name(manifest, method) for method in (ANNOTATION, LABEL, BOTH)] == ["", "", ""]


@pytest.mark.parametrize(
    ("tracking", "name"),
    [(ANNOTATION, "shop"), (BOTH, "shop"), (LABEL, "old"), (TrackingSettings("label", "other/key"), "")],
)
def test_annotation_decides_except_for_label_tracking(tracking: TrackingSettings, name: str) -> None:
    assert read_instance_name(tracked("shop:/ConfigMap:prod/web", labels={INSTANCE_LABEL: "old"}), tracking) == name


@pytest.mark.parametrize(
    ("ours", "recorded_id", "name"),
    [("", "", "shop"), ("east", "east", "shop"), ("east", "west", ""), ("east", "", ""), ("", "west", "")],
)
def test_tracking_id_is_read_only_by_the_same_installation(ours: str, recorded_id: str, name: str) -> None:
    live = tracked("shop:/ConfigMap:prod/web")
    if recorded_id:
        live["metadata"]["annotations"][INSTALLATION_ID] = recorded_id
    assert read_instance_name(live, TrackingSettings(installation_id=ours)) == name


# -- copies


@pytest.mark.parametrize(
    ("text", "namespace", "is_own"),
    [
        ("shop:/ConfigMap:prod/web", "prod", True),
        ("shop:/ConfigMap:prod/other", "prod", False),
        ("shop:/Secret:prod/web", "prod", False),
        ("shop:apps/ConfigMap:prod/web", "prod", False),
        ("shop:/ConfigMap:stage/web", "prod", False),
        ("shop:/ConfigMap:prod/web", "", True),
        ("nonsense", "prod", True),
    ],
)
def test_copied_tracking_id_is_not_self_referenced(text: str, namespace: str, is_own: bool) -> None:
    live = tracked(text, namespace=namespace)
    assert is_self_referenced(live, ANNOTATION) is is_own
    assert is_self_referenced(live, BOTH) is is_own
    assert is_self_referenced(live, LABEL)


def test_object_with_desired_key_is_not_a_copy() -> None:
    assert is_self_referenced(tracked("shop:/ConfigMap:prod/other"), ANNOTATION, config())
    assert not is_self_referenced(tracked("shop:/ConfigMap:prod/web"), ANNOTATION, config("another"))


# -- changing the tracking method


def test_change_from_label_to_annotation_is_not_drift() -> None:
    desired, live = add_tracking(config(), APP, ANNOTATION), add_tracking(config(), APP, LABEL)
    assert normalize_tracking(desired, live, ANNOTATION) == desired


def test_label_is_kept_with_annotation_and_label_tracking() -> None:
    desired, live = add_tracking(config(), APP, BOTH), add_tracking(config(), APP, LABEL)
    assert normalize_tracking(desired, live, BOTH) == desired


@pytest.mark.parametrize(
    ("live", "tracking"),
    [
        (config(), ANNOTATION),
        (tracked("other:/ConfigMap:prod/web"), ANNOTATION),
        (config(labels={INSTANCE_LABEL: "old"}), LABEL),
        (config(labels={"b": "2"}), ANNOTATION),
        ({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
          "metadata": {"name": "b", "labels": {INSTANCE_LABEL: "old"}}}, ANNOTATION),
    ],
)  # fmt: skip
def test_live_manifest_without_own_label_is_not_normalized(live: Manifest, tracking: TrackingSettings) -> None:
    assert normalize_tracking(add_tracking(config(), APP, tracking), live, tracking) is live


def test_other_labels_and_annotations_are_not_normalized() -> None:
    live = config(labels={INSTANCE_LABEL: "shop", "b": "2"}, annotations={"a": "1"})
    metadata = normalize_tracking(add_tracking(config(), APP, ANNOTATION), live, ANNOTATION)["metadata"]
    assert metadata["labels"] == {"b": "2"}
    assert metadata["annotations"] == {"a": "1", TRACKING_ID: "shop:/ConfigMap:prod/web"}


def test_annotation_of_another_application_is_drift_even_if_the_chart_sets_the_label() -> None:
    chart_labels = {INSTANCE_LABEL: "my-release"}
    live = config(labels=chart_labels, annotations={TRACKING_ID: "old:/ConfigMap:prod/web"})
    desired = add_tracking(config(labels=chart_labels), APP, ANNOTATION)
    assert normalize_tracking(desired, live, ANNOTATION) == live


# -- settings


@pytest.mark.parametrize(
    ("data", "read"),
    [
        ({}, TrackingSettings(control_namespace="argocd")),
        ({"application.resourceTrackingMethod": "label"}, LABEL),
        ({"application.resourceTrackingMethod": "annotation+label"}, BOTH),
        ({"application.instanceLabelKey": "team/app"}, TrackingSettings(label="team/app", control_namespace="argocd")),
        ({"application.instanceLabelKey": ""}, ANNOTATION),
        ({"installationID": "east"}, TrackingSettings(installation_id="east", control_namespace="argocd")),
        ({"application.resourceTrackingMethod": "labels"}, ANNOTATION),
    ],
)
def test_tracking_settings_are_read_from_argocd_cm(data: dict[str, str], read: TrackingSettings) -> None:
    assert read_tracking(data, "argocd") == read


def test_unknown_tracking_method_is_a_fault_with_known_ones() -> None:
    assert read_tracking({"application.resourceTrackingMethod": "labels"}, "argocd").faults == (
        "argocd-cm: application.resourceTrackingMethod: unknown tracking method 'labels'; "
        "use one of annotation, label, annotation+label",
    )
    assert read_tracking({}, "argocd").faults == ()


# -- properties

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,80}[a-z0-9])?", fullmatch=True)
KINDS = st.sampled_from([("v1", "ConfigMap"), ("apps/v1", "Deployment"), ("sea.dev/v1beta1", "Boat")])
METHODS: st.SearchStrategy[TrackingMethod] = st.sampled_from(["annotation", "label", "annotation+label"])


@settings(max_examples=examples(), deadline=None)
@given(
    app=st.builds(Application, name=NAMES, namespace=st.sampled_from(["", "argocd", "team"])),
    kind=KINDS,
    name=NAMES | NAMES.map("system:{}".format),
    namespace=st.just("") | NAMES,
    tracking=st.builds(
        TrackingSettings, METHODS, installation_id=st.sampled_from(["", "east"]), control_namespace=NAMES
    ),
)
def test_tracking_round_trips_and_does_not_change_the_input(
    app: Application, kind: tuple[str, str], name: str, namespace: str, tracking: TrackingSettings
) -> None:
    manifest = {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": name, "namespace": namespace}}
    before = copy.deepcopy(manifest)
    tracked_manifest = add_tracking(manifest, app, tracking)
    assert manifest == before
    assert read_instance_name(tracked_manifest, tracking) == build_instance_name(app, tracking)
    assert is_self_referenced(tracked_manifest, tracking)
    assert add_tracking(tracked_manifest, app, tracking) == tracked_manifest


@settings(max_examples=examples(), deadline=None)
@given(METHODS, METHODS, NAMES)
def test_change_of_tracking_method_is_not_drift_if_annotation_decides(
    old: TrackingMethod, new: TrackingMethod, name: str
) -> None:
    app = Application(name=name, namespace="argocd")
    then, now = TrackingSettings(old, control_namespace="argocd"), TrackingSettings(new, control_namespace="argocd")
    desired, live = add_tracking(config(), app, now), add_tracking(config(), app, then)
    before = copy.deepcopy((desired, live))
    settled = normalize_tracking(desired, live, now)["metadata"]
    assert (desired, live) == before
    if old != "annotation" and new != "label":
        assert settled["annotations"] == desired["metadata"]["annotations"]
        assert ("labels" in settled) is (new == "annotation+label")


@settings(max_examples=examples(), deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_valid_tracking_id_or_ignored(text: str) -> None:
    tracking_id = parse_tracking_id(text)
    assert tracking_id is None or str(tracking_id) == text
