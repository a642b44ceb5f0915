"""Typos in fields of KServe kinds, and fields that a newer KServe version may have."""

from __future__ import annotations

from typing import Any

from argosy.gitops.analysis.schema_validation import UNKNOWN, WRONG, SchemaValidator
from argosy.kube.objects import Manifest


def service(**predictor: Any) -> Manifest:
    model = {"modelFormat": {"name": "sklearn"}, **predictor.pop("model", {})}
    about = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": {"name": "a"}}
    return {**about, "spec": {"predictor": {"model": model, **predictor}}}


def runtime(**spec: Any) -> Manifest:
    about = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "ServingRuntime", "metadata": {"name": "a"}}
    return {**about, "spec": {"containers": [{"name": "kserve-container", "image": "a"}], **spec}}


def list_violations(manifest: Manifest) -> list[tuple[str, str]]:
    problems = SchemaValidator().validate(manifest)
    assert all(problem.is_bundled for problem in problems)
    return [(problem.category, ".".join(map(str, problem.path))) for problem in problems]


def test_misspelt_field_is_unknown() -> None:
    assert list_violations(service(minReplica=1)) == [(UNKNOWN, "spec.predictor.minReplica")]
    assert list_violations(service(model={"storageURI": "s3://a/b"})) == [(UNKNOWN, "spec.predictor.model.storageURI")]
    assert list_violations(runtime(supportedModelFormat=[])) == [(UNKNOWN, "spec.supportedModelFormat")]
    assert list_violations(runtime(containers=[{"name": "a", "volumeMount": []}])) == [
        (UNKNOWN, "spec.containers.0.volumeMount")
    ]


def test_possible_field_of_a_newer_kserve_version_is_accepted() -> None:
    assert list_violations(service(multiNode={"size": 2}, model={"storageUris": []})) == []
    assert list_violations(service(minReplicas=1, minReplica=1)) == []
    assert list_violations(service(nodeSelector={}, serviceAccountName="a", resourceClaims=[], containers=[])) == []


def test_negative_quantity_is_wrong() -> None:
    problems = list_violations(service(model={"resources": {"limits": {"cpu": "-2", "memory": "1Gi"}}}))
    assert problems == [(WRONG, "spec.predictor.model.resources.limits.cpu")]
