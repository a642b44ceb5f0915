"""Tracking: who owns a manifest is written and read as Argo CD writes and reads it."""

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


# -- written


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
def test_each_method_writes_what_is_its_own(
    tracking: TrackingSettings, annotations: dict[str, str], labels: dict[str, str]
) -> None:
    metadata = add_tracking(config(), APP, tracking)["metadata"]
    assert (metadata.get("annotations", {}), metadata.get("labels", {})) == (annotations, labels)


def test_what_else_is_written_on_a_manifest_stays() -> None:
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
        (  # the name is added when a sync generates it
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "migrate-", "namespace": "prod"}},
            "shop:batch/Job:prod/",
        ),
    ],
)
def test_the_id_names_group_kind_namespace_and_name(manifest: Manifest, written: str) -> None:
    tracked_manifest = add_tracking(manifest, APP, ANNOTATION)
    assert tracked_manifest["metadata"]["annotations"][TRACKING_ID] == written
    assert read_instance_name(tracked_manifest, ANNOTATION) == "shop"


def test_a_definition_is_given_no_tracking() -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.sea.dev"},
    }
    assert add_tracking(definition, APP, BOTH) == definition


def test_without_an_installation_id_that_of_another_installation_is_taken_off() -> None:
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
def test_beside_the_annotation_a_long_label_is_cut_where_a_label_may_end(name: str, label: str) -> None:
    app = Application(name=name, namespace="argocd")
    tracked_manifest = add_tracking(config(), app, BOTH)
    assert tracked_manifest["metadata"]["labels"][INSTANCE_LABEL] == label
    assert read_instance_name(tracked_manifest, BOTH) == name


def test_a_label_that_decides_is_never_cut() -> None:
    app = Application(name="a" * 80, namespace="argocd")
    assert add_tracking(config(), app, LABEL)["metadata"]["labels"][INSTANCE_LABEL] == "a" * 80


@pytest.mark.parametrize(("namespace", "name"), [("argocd", "shop"), ("", "shop"), ("team", "team_shop")])
def test_an_application_elsewhere_has_its_namespace_in_its_name(namespace: str, name: str) -> None:
    app = Application(name="shop", namespace=namespace)
    assert build_instance_name(app, ANNOTATION) == name
    assert read_instance_name(add_tracking(config(), app, ANNOTATION), ANNOTATION) == name


@pytest.mark.parametrize("part", ["annotations", "labels"])
def test_metadata_that_is_no_map_is_named(part: str) -> None:
    with pytest.raises(ManifestError, match=f"metadata.{part} must be a map"):
        add_tracking(config(**{part: "text"}), APP, BOTH)


# -- read


@pytest.mark.parametrize(
    "text",
    ["", "shop", "shop:", "shop:apps/Deployment", "shop:Deployment:prod/web", "shop:apps/v1/Deployment:prod/web",
     "shop:apps/Deployment:web", "shop:apps/Deployment:a/b/c", "::", "/:/"],
)  # fmt: skip
def test_what_is_no_tracking_id_belongs_to_nobody(text: str) -> None:
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
def test_a_manifest_of_any_shape_can_be_asked_for_its_owner(manifest: Manifest) -> None:
    assert [read_instance_name(manifest, method) for method in (ANNOTATION, LABEL, BOTH)] == ["", "", ""]


@pytest.mark.parametrize(
    ("tracking", "name"),
    [(ANNOTATION, "shop"), (BOTH, "shop"), (LABEL, "old"), (TrackingSettings("label", "other/key"), "")],
)
def test_the_annotation_decides_but_for_tracking_by_label(tracking: TrackingSettings, name: str) -> None:
    assert read_instance_name(tracked("shop:/ConfigMap:prod/web", labels={INSTANCE_LABEL: "old"}), tracking) == name


@pytest.mark.parametrize(
    ("ours", "recorded_id", "name"),
    [("", "", "shop"), ("east", "east", "shop"), ("east", "west", ""), ("east", "", ""), ("", "west", "")],
)
def test_only_the_installation_that_wrote_it_reads_an_id(ours: str, recorded_id: str, name: str) -> None:
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
def test_a_copied_id_is_told_from_an_own_one(text: str, namespace: str, is_own: bool) -> None:
    live = tracked(text, namespace=namespace)
    assert is_self_referenced(live, ANNOTATION) is is_own
    assert is_self_referenced(live, BOTH) is is_own
    assert is_self_referenced(live, LABEL)


def test_what_is_desired_under_its_key_is_no_copy() -> None:
    assert is_self_referenced(tracked("shop:/ConfigMap:prod/other"), ANNOTATION, config())
    assert not is_self_referenced(tracked("shop:/ConfigMap:prod/web"), ANNOTATION, config("another"))


# -- from one method to another


def test_a_labelled_manifest_is_no_drift_once_annotations_decide() -> None:
    desired, live = add_tracking(config(), APP, ANNOTATION), add_tracking(config(), APP, LABEL)
    assert normalize_tracking(desired, live, ANNOTATION) == desired


def test_with_both_the_label_stays() -> None:
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
def test_without_the_label_or_the_need_the_live_side_is_left_alone(live: Manifest, tracking: TrackingSettings) -> None:
    assert normalize_tracking(add_tracking(config(), APP, tracking), live, tracking) is live


def test_other_labels_and_annotations_are_not_settled() -> None:
    live = config(labels={INSTANCE_LABEL: "shop", "b": "2"}, annotations={"a": "1"})
    metadata = normalize_tracking(add_tracking(config(), APP, ANNOTATION), live, ANNOTATION)["metadata"]
    assert metadata["labels"] == {"b": "2"}
    assert metadata["annotations"] == {"a": "1", TRACKING_ID: "shop:/ConfigMap:prod/web"}


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
def test_settings_say_how_is_tracked(data: dict[str, str], read: TrackingSettings) -> None:
    assert read_tracking(data, "argocd") == read


def test_an_unknown_method_is_a_fault_that_names_the_known_ones() -> None:
    assert read_tracking({"application.resourceTrackingMethod": "labels"}, "argocd").faults == (
        "argocd-cm: application.resourceTrackingMethod: unknown tracking method 'labels'; "
        "use one of annotation, label, annotation+label",
    )
    assert read_tracking({}, "argocd").faults == ()


# -- for every name

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
def test_what_is_tracked_is_found_again_and_the_given_manifest_is_untouched(
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
def test_no_change_of_the_method_is_drift_where_annotations_decide_now(
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
def test_any_text_as_an_id_is_read_or_ignored(text: str) -> None:
    tracking_id = parse_tracking_id(text)
    assert tracking_id is None or str(tracking_id) == text
