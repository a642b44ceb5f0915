"""Whether two environments run the same images and models."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.features.promote.environment_contents import EnvironmentContents, FieldKind, NameDecoration, read_contents
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
def test_a_model_at_the_same_address_or_with_the_same_digest_is_the_same(source: str, target: str) -> None:
    comparison = compare([model(source)], [model(target)])
    assert comparison.same == (FieldKind.MODEL,) and comparison.differences == ()


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("s3://models-dev/fraud/1", "s3://models-prod/fraud/1"),  # nothing to carry over, yet another bucket
        ("s3://models/fraud/1", "pvc://models/fraud"),
        ("oci://dev.example.com/fraud:1", "oci://prod.example.com/fraud:1"),
        ("oci://example.com/fraud:1", "oci://example.com/score:1"),
    ],
)
def test_a_model_at_another_address_is_not_the_same(source: str, target: str) -> None:
    comparison = compare([model(source)], [model(target)])
    assert comparison.same == ()
    [difference] = comparison.differences
    assert (difference.kind, difference.source, difference.target) == (FieldKind.MODEL, source, target)


@pytest.mark.parametrize(("shares_volumes", "same"), [(False, ()), (True, (FieldKind.MODEL,))])
def test_the_same_claim_in_another_namespace_is_another_volume(
    shares_volumes: bool, same: tuple[FieldKind, ...]
) -> None:
    there = [model("pvc://models/fraud")]
    comparison = compare(there, there, shares_volumes=shares_volumes)
    assert comparison.same == same
    assert [difference.is_unknown for difference in comparison.differences] == ([] if shares_volumes else [True])


def test_a_model_that_only_one_environment_has_is_a_difference() -> None:
    one, two = model("s3://models/fraud/1"), model("s3://models/score/1", "score")
    assert compare([one, two], [one]).differences[0].target is None
    assert compare([one], [one, two]).differences[0].source is None


def test_images_may_be_the_same_where_models_are_not() -> None:
    source = [web("example.com/web:1"), model("s3://a/fraud")]
    comparison = compare(source, [web("example.com/web:1"), model("s3://b/fraud")])
    assert comparison.same == (FieldKind.IMAGE,) and [difference.kind for difference in comparison.differences] == [
        FieldKind.MODEL
    ]


def test_an_environment_without_versions_is_compared_by_its_parameters() -> None:
    one, other = ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": v}} for v in "xy")
    assert compare([one], [one]).same == (FieldKind.PARAMETER,)
    assert compare([one], [other]).same == ()
