"""Comparison of the images and models of two environments."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.features.promote.classified_manifest_fields import (
    EnvironmentContents,
    FieldKind,
    NameDecoration,
    read_contents,
)
from argosy.features.promote.image_and_model_comparison import compare_versions
from argosy.kube.objects import Manifest

DIGEST = "@sha256:" + "a" * 64


def model(uri: str, name: str = "fraud") -> Manifest:
    predictor = {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": uri}}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {"predictor": predictor},
    }


def web(image: str, name: str = "web") -> Manifest:
    containers = [{"name": "web", "image": image}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"containers": containers}}},
    }


def environment(name: str, *manifests: Manifest) -> EnvironmentContents:
    decorated = [{**manifest, "metadata": {"name": f"{name}-{manifest['metadata']['name']}"}} for manifest in manifests]
    return read_contents(decorated, NameDecoration(f"{name}-"))


def compare(source: list[Manifest], target: list[Manifest], **more: Any) -> Any:
    return compare_versions(environment("dev", *source), environment("prod", *target), **more)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("oci://example.com/fraud:1", "oci://example.com/fraud:1"),
        (f"oci://dev.example.com/fraud:1{DIGEST}", f"oci://prod.example.com/fraud:1{DIGEST}"),
        ("s3://models/fraud/1", "s3://models/fraud/1"),
        ("hf://acme/fraud:1", "hf://acme/fraud:1"),
    ],
)
def test_models_with_the_same_address_or_digest_are_equal(source: str, target: str) -> None:
    comparison = compare([model(source)], [model(target)])
    assert comparison.same == (FieldKind.MODEL,) and comparison.differences == ()


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("s3://models-dev/fraud/1", "s3://models-prod/fraud/1"),  # same path, but another bucket
        ("s3://models/fraud/1", "pvc://models/fraud"),
        ("oci://dev.example.com/fraud:1", "oci://prod.example.com/fraud:1"),
        ("oci://example.com/fraud:1", "oci://example.com/score:1"),
    ],
)
def test_models_at_different_addresses_differ(source: str, target: str) -> None:
    comparison = compare([model(source)], [model(target)])
    assert comparison.same == ()
    [difference] = comparison.differences
    assert (difference.kind, difference.source, difference.target) == (FieldKind.MODEL, source, target)


@pytest.mark.parametrize(("shares_volumes", "same"), [(False, ()), (True, (FieldKind.MODEL,))])
def test_same_pvc_name_in_another_namespace_is_an_unknown_difference(
    shares_volumes: bool, same: tuple[FieldKind, ...]
) -> None:
    there = [model("pvc://models/fraud")]
    comparison = compare(there, there, shares_volumes=shares_volumes)
    assert comparison.same == same
    assert [difference.is_unknown for difference in comparison.differences] == ([] if shares_volumes else [True])


def test_model_present_in_only_one_environment_is_a_difference() -> None:
    one, two = model("s3://models/fraud/1"), model("s3://models/score/1", "score")
    assert compare([one, two], [one]).differences[0].target is None
    assert compare([one], [one, two]).differences[0].source is None


def test_images_can_be_equal_while_models_differ() -> None:
    source = [web("example.com/web:1"), model("s3://a/fraud")]
    comparison = compare(source, [web("example.com/web:1"), model("s3://b/fraud")])
    assert comparison.same == (FieldKind.IMAGE,) and [difference.kind for difference in comparison.differences] == [
        FieldKind.MODEL
    ]


def test_environments_without_versions_are_compared_by_parameters() -> None:
    one, other = ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": v}} for v in "xy")
    assert compare([one], [one]).same == (FieldKind.PARAMETER,)
    assert compare([one], [other]).same == ()
