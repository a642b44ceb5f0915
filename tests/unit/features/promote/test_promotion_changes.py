"""Changes of a promotion: versions and changed parameters move; settings of the target environment stay."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.features.promote.classified_manifest_fields import (
    EnvironmentContents,
    FieldKind,
    NameDecoration,
    classify_field,
    read_contents,
)
from argosy.features.promote.promotion_changes import compute_changes, describe_kept, split_image


def deployment(image: str, prefix: str = "dev-", replicas: int = 1, env: str = "", args: Any = ("-v",)) -> Any:
    container = {"name": "web", "image": image, "args": list(args), "env": [{"name": "MODE", "value": env}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"{prefix}web", "namespace": f"{prefix}ns"},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [container]}}},
    }


def build_contents(*manifests: Any, prefix: str = "dev-") -> EnvironmentContents:
    return read_contents(manifests, NameDecoration(prefix))


def moves(
    source: EnvironmentContents, target: EnvironmentContents, was: EnvironmentContents | None = None
) -> list[tuple[str, Any, Any]]:
    return [(str(move.kind), move.before, move.after) for move in compute_changes(source, target, was).moves]


def test_image_moves_and_replicas_and_namespace_stay() -> None:
    source, target = (
        build_contents(deployment("a/web:2")),
        build_contents(deployment("a/web:1", "prod-", 5), prefix="prod-"),
    )
    assert moves(source, target) == [("image", "a/web:1", "a/web:2")]
    stays = dict(describe_kept(compute_changes(source, target).stays))
    assert stays["replicas"] == "5" and stays["namespace"] == "prod-ns"


@pytest.mark.parametrize(
    ("source", "target", "after"),
    [
        ("dev.example/x/web:2", "prod.example:5000/y/web:1", "prod.example:5000/y/web:2"),
        ("a/web@sha256:22", "a/web:1", "a/web@sha256:22"),
        ("a/web:2@sha256:22", "b/web", "b/web:2@sha256:22"),
        ("a/web", "a/web:1", "a/web"),
    ],
)
def test_target_keeps_its_registry_and_gets_the_new_version(source: str, target: str, after: str) -> None:
    assert moves(build_contents(deployment(source)), build_contents(deployment(target))) == [("image", target, after)]


def test_different_image_does_not_move_and_is_reported_as_doubtful() -> None:
    changes = compute_changes(build_contents(deployment("a/web-debug:2")), build_contents(deployment("a/web:1")))
    assert not changes.moves
    assert [stay.reason for stay in changes.doubtful] == ["another image"]


def model(uri: str, name: str = "fraud") -> Any:
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {"predictor": {"model": {"storageUri": uri}}},
    }


@pytest.mark.parametrize(
    ("source", "target", "after"),
    [
        ("s3://dev-bucket/fraud/8", "s3://prod-bucket/fraud/7", "s3://prod-bucket/fraud/8"),
        ("oci://quay.io/a/cat:fraud-8", "oci://quay.io/a/cat:fraud-7", "oci://quay.io/a/cat:fraud-8"),
        ("pvc://models/fraud/8", "pvc://models/fraud/7", "pvc://models/fraud/8"),
        ("hf://org/fraud-8", "hf://org/fraud-7", "hf://org/fraud-8"),
    ],
)
def test_model_version_moves_and_the_bucket_stays(source: str, target: str, after: str) -> None:
    assert moves(build_contents(model(source)), build_contents(model(target))) == [("model", target, after)]


def test_model_with_another_storage_scheme_does_not_move() -> None:
    assert not moves(build_contents(model("s3://a/fraud")), build_contents(model("pvc://models/fraud")))


def test_parameters_that_always_differed_stay() -> None:
    source, target = (
        build_contents(deployment("a/web:1", env="test")),
        build_contents(deployment("a/web:1", env="real")),
    )
    assert moves(source, target) == []
    assert moves(source, target, was=source) == []


def test_parameters_that_changed_since_the_last_promotion_move() -> None:
    was = build_contents(deployment("a/web:1", args=["-v"]))
    source, target = (
        build_contents(deployment("a/web:1", args=["-v", "--fast"])),
        build_contents(deployment("a/web:1", args=["-v"])),
    )
    assert moves(source, target, was) == [("parameter", ["-v"], ["-v", "--fast"])]


def test_parameters_changed_on_both_sides_are_reported_as_doubtful() -> None:
    was = build_contents(deployment("a/web:1", env="a"))
    changes = compute_changes(
        build_contents(deployment("a/web:1", env="b")), build_contents(deployment("a/web:1", env="c")), was
    )
    assert not changes.moves and [stay.reason for stay in changes.doubtful] == ["changed in both"]


def test_object_present_only_in_the_source_is_reported_as_missing() -> None:
    changes = compute_changes(
        build_contents(deployment("a/web:1"), model("s3://a/b")), build_contents(deployment("a/web:1"))
    )
    assert [str(owner) for owner in changes.missing] == ["InferenceService/fraud"]


def test_only_object_of_its_kind_is_matched_regardless_of_its_name() -> None:
    assert moves(build_contents(model("s3://a/8", "fraud-blue")), build_contents(model("s3://a/7", "scam"))) == [
        ("model", "s3://a/7", "s3://a/8")
    ]


def test_several_models_are_matched_only_by_name() -> None:
    source = build_contents(model("s3://a/fraud/2"), model("s3://a/churn/2", "churn"))
    changes = compute_changes(source, build_contents(model("s3://b/fraud/1"), model("s3://b/intent/1", "intent")))
    assert [(move.before, move.after) for move in changes.moves] == [("s3://b/fraud/1", "s3://b/fraud/2")]
    assert [str(owner) for owner in changes.missing] == ["InferenceService/churn"]


def test_hugging_face_model_is_replaced_by_its_full_name() -> None:
    model_moves = moves(build_contents(model("hf://Qwen/Qwen2.5")), build_contents(model("hf://meta-llama/Llama-3")))
    assert model_moves == [("model", "hf://meta-llama/Llama-3", "hf://Qwen/Qwen2.5")]


def test_secret_values_are_not_read() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"image": "hunter2"}}
    contents = build_contents(secret)
    assert "hunter2" not in str(contents)


def test_generated_names_are_compared_without_their_hash() -> None:
    def config(name: str, value: str) -> Any:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a.b": value}}

    contents = build_contents(config("dev-conf-4g2fh6tk9c", "1"), config("dev-other", "1"))
    assert sorted(owner.name for owner in contents.owners) == ["conf", "other"]
    assert any(at.path == 'data."a.b"' for at in contents.fields)


@pytest.mark.parametrize(
    ("kind", "path", "expected"),
    [
        ("Deployment", "spec.template.spec.containers[a].image", FieldKind.IMAGE),
        ("NotebookValidationJob", "spec.podConfig.containerImage", FieldKind.IMAGE),
        ("InferenceService", "spec.predictor.model.storage.path", FieldKind.MODEL),
        ("InferenceService", "spec.predictor.model.storage.parameters.bucket", FieldKind.PARAMETER),
        ("Deployment", "spec.template.spec.containers[a].env[X].value", FieldKind.PARAMETER),
        ("Deployment", "spec.replicas", FieldKind.ENVIRONMENT),
        ("Deployment", "metadata.annotations.image", FieldKind.ENVIRONMENT),
        ("ConfigMap", "data.image", FieldKind.PARAMETER),
    ],
)
def test_field_classification_depends_only_on_kind_and_path(kind: str, path: str, expected: FieldKind) -> None:
    assert classify_field(kind, path) is expected


def test_split_image_splits_at_the_tag_and_not_at_the_port() -> None:
    assert split_image("host:5000/a/b:1@sha256:2") == ("host:5000/a/b", ":1@sha256:2")
    assert split_image("host:5000/a/b") == ("host:5000/a/b", "")
