"""Names changed by Kustomize prefixes and suffixes, misspelt names, and kubectl calls in scripts."""

from __future__ import annotations

import pytest

from argosy.gitops.analysis.kubectl_calls import KubectlCall, list_kubectl_calls
from argosy.gitops.analysis.kustomize_prefixed_name_lookup import find_affixed_name
from argosy.gitops.analysis.repository_view import ManifestWithLocations
from argosy.gitops.analysis.rule_violation import FileLocation
from argosy.gitops.analysis.rules.notebooks import _find_misspelt_name
from argosy.kube.resource_key import ResourceKey


def named(name: str) -> ManifestWithLocations:
    return ManifestWithLocations(
        {}, ResourceKey("serving.kserve.io", "InferenceService", "", name), lambda pointer: FileLocation("a.yaml")
    )


@pytest.mark.parametrize(
    ("own", "name", "known_names", "expected"),
    [
        ("dev-fraud", "scikit", ["dev-scikit"], "dev-scikit"),
        ("fraud-v2", "scikit", ["scikit-v2"], "scikit-v2"),
        ("staging-fraud", "dev-scikit", ["staging-scikit"], "staging-scikit"),
        ("staging-fraud", "shared-scikit", ["staging-scikit"], ""),
        ("fraud", "dev-scikit", ["staging-scikit"], ""),
        ("fraud", "scikit", ["dev-scikit"], ""),
        ("fraud", "scikit", ["scikit-old"], ""),
        ("dev-fraud", "scikit", ["dev-scikit", "scikit"], ""),
        ("dev-fraud", "", ["dev-"], ""),
    ],
)
def test_referenced_name_is_found_only_with_the_affix_of_the_referring_object(
    own: str, name: str, known_names: list[str], expected: str
) -> None:
    assert find_affixed_name(named(own), name, known_names) == expected


@pytest.mark.parametrize(
    ("name", "known_names", "expected"),
    [
        ("fruad-model", ["fraud-model"], "fraud-model"),
        ("fraud-eu", ["fraud-us"], ""),
        ("fraud-v1", ["fraud-v2"], ""),
        ("fraud-a", ["fraud-b"], ""),
        ("fraud-dev", ["fraud-prod"], ""),
        ("fraud", ["fraud-model"], ""),
    ],
)
def test_misspelt_name_is_found_and_a_different_name_is_not(name: str, known_names: list[str], expected: str) -> None:
    assert _find_misspelt_name(name, known_names) == expected


@pytest.mark.parametrize(
    ("script", "call"),
    [
        ("oc rollout status deployment/front -n ml", KubectlCall("wait", "deployment", "front", "ml")),
        ("kubectl rollout  restart deploy front", KubectlCall("patch", "deployment", "front", "")),
        ("kubectl annotate isvc fraud a=b", KubectlCall("patch", "inferenceservice", "fraud", "")),
        ("oc logs -f job/train", KubectlCall("get", "pod", "?", "", subresource="log")),
        (
            "oc -n ml start-build trainer --wait",
            KubectlCall("create", "buildconfig", "trainer", "ml", subresource="instantiate"),
        ),
        ("kubectl get pods", KubectlCall("get", "pod", "", "")),
    ],
)
def test_kubectl_command_is_parsed_into_an_api_call(script: str, call: KubectlCall) -> None:
    assert list(list_kubectl_calls(script)) == [call]
