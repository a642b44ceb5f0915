"""What is misspelt in KServe's kinds, and what a newer KServe may know."""

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


def told(manifest: Manifest) -> list[tuple[str, str]]:
    found = SchemaValidator().validate(manifest)
    assert all(each.is_bundled for each in found)
    return [(each.category, ".".join(map(str, each.path))) for each in found]


def test_a_name_that_is_almost_a_field_is_unknown() -> None:
    assert told(service(minReplica=1)) == [(UNKNOWN, "spec.predictor.minReplica")]
    assert told(service(model={"storageURI": "s3://a/b"})) == [(UNKNOWN, "spec.predictor.model.storageURI")]
    assert told(runtime(supportedModelFormat=[])) == [(UNKNOWN, "spec.supportedModelFormat")]
    assert told(runtime(containers=[{"name": "a", "volumeMount": []}])) == [(UNKNOWN, "spec.containers.0.volumeMount")]


def test_a_name_that_a_newer_definition_may_have_is_left_alone() -> None:
    assert told(service(multiNode={"size": 2}, model={"storageUris": []})) == []
    assert told(service(minReplicas=1, minReplica=1)) == []
    assert told(service(nodeSelector={}, serviceAccountName="a", resourceClaims=[], containers=[])) == []


def test_an_amount_below_nothing_is_wrong() -> None:
    found = told(service(model={"resources": {"limits": {"cpu": "-2", "memory": "1Gi"}}}))
    assert found == [(WRONG, "spec.predictor.model.resources.limits.cpu")]
