from __future__ import annotations

import json
import sys
from copy import deepcopy
from typing import Any

import pytest

from argosy.errors import ManifestError
from argosy.kube.schema.builtin_go_struct_fields import Type, find_builtin_type
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES
from argosy.kube.schema.builtin_type_json_codec import DecodedManifest, build_empty_object, decode
from support import go_modules

MODULES = go_modules.folder()
GOLDEN = MODULES / "k8s.io/api@v0.32.13/testdata/HEAD"


def built_in(kind: str) -> tuple[Type, str]:
    resource = next(candidate for candidate in BUILTIN_RESOURCES if candidate.kind == kind)
    builtin_type = find_builtin_type(resource.group, resource.version, kind)
    assert builtin_type is not None
    return builtin_type, resource.api_version


def read(kind: str, /, **fields: Any) -> DecodedManifest:
    type_, api_version = built_in(kind)
    return decode(type_, fields, kind=kind, api_version=api_version)


def refusal(kind: str, /, **fields: Any) -> str:
    with pytest.raises(ManifestError) as caught:
        read(kind, **fields)
    return str(caught.value)


def test_canonical_manifest_is_returned_as_the_same_object() -> None:
    type_, api_version = built_in("ConfigMap")
    manifest = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"creationTimestamp": None}, "data": {"a": "b"}}
    decoded = decode(type_, manifest, kind="ConfigMap", api_version=api_version)
    assert decoded.manifest is manifest
    assert decoded.unknown_fields == ()


def test_decode_does_not_change_its_input() -> None:
    spec = {"zzz": 1, "template": {"spec": {"containers": [{"image": "", "resources": {"limits": {"cpu": "0.5"}}}]}}}
    before = deepcopy(spec)
    read("Deployment", spec=spec)
    assert spec == before


def test_kind_and_api_version_are_those_of_the_request() -> None:
    manifest = read("ConfigMap", kind="Other", data={"a": "b"}).manifest
    assert (manifest["kind"], manifest["apiVersion"]) == ("ConfigMap", "v1")
    assert list(manifest)[:2] == ["kind", "apiVersion"]


def test_unknown_fields_are_dropped_and_reported_by_path() -> None:
    template = {"spec": {"containers": [{"name": "c", "imag": "x"}]}}
    decoded = read("Deployment", spec={"zzz": 1, "template": template}, Data={})
    assert decoded.unknown_fields == ("spec.zzz", "spec.template.spec.containers[0].imag", "Data")
    assert "zzz" not in decoded.manifest["spec"]
    assert decoded.manifest["spec"]["template"]["spec"]["containers"] == [{"name": "c", "resources": {}}]


def test_unknown_field_below_a_map_is_reported_with_its_key() -> None:
    schema = {"properties": {"spec": {"typ": "object"}}}
    versions = [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]
    decoded = read("CustomResourceDefinition", spec={"versions": versions})
    assert decoded.unknown_fields == ("spec.versions[0].schema.openAPIV3Schema.properties.spec.typ",)


def test_field_names_are_case_sensitive() -> None:
    assert read("ConfigMap", DATA={"a": "b"}).unknown_fields == ("DATA",)


@pytest.mark.parametrize("empty", [None, {}])
def test_empty_optional_map_is_omitted(empty: Any) -> None:
    assert "data" not in read("ConfigMap", data=empty).manifest


def test_zero_is_kept_only_for_pointer_fields() -> None:
    spec = read("Deployment", spec={"replicas": 0, "minReadySeconds": 0, "paused": False}).manifest["spec"]
    assert spec["replicas"] == 0
    assert "minReadySeconds" not in spec
    assert "paused" not in spec


def test_null_is_the_same_as_absent() -> None:
    assert read("Deployment", spec={"replicas": None, "template": None}).manifest == read("Deployment").manifest


def test_null_element_becomes_the_go_zero_value() -> None:
    containers = read("Pod", spec={"containers": [None]}).manifest["spec"]["containers"]
    assert containers == [{"name": "", "resources": {}}]
    assert read("ConfigMap", data={"a": None}).manifest["data"] == {"a": ""}
    assert read("Secret", data={"a": None}).manifest["data"] == {"a": None}


def test_empty_object_has_the_fields_that_go_always_writes() -> None:
    type_, _ = built_in("Deployment")
    assert build_empty_object(type_) == {
        "metadata": {"creationTimestamp": None},
        "spec": {
            "selector": None,
            "template": {"metadata": {"creationTimestamp": None}, "spec": {"containers": None}},
            "strategy": {},
        },
        "status": {},
    }


def test_empty_event_has_timestamps_and_source() -> None:
    manifest = build_empty_object(built_in("Event")[0])
    assert manifest["source"] == {}
    assert manifest["firstTimestamp"] is None
    assert manifest["reportingComponent"] == ""


def test_changing_an_empty_object_does_not_affect_the_next() -> None:
    type_, _ = built_in("Deployment")
    build_empty_object(type_)["spec"]["strategy"]["type"] = "Recreate"
    assert build_empty_object(type_)["spec"]["strategy"] == {}


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("ConfigMap", {"data": {"a": 1}}, "number into Go struct field ConfigMap.data of type string"),
        ("ConfigMap", {"data": []}, "array into Go struct field ConfigMap.data of type map[string]string"),
        ("ConfigMap", {"immutable": "x"}, "string into Go struct field ConfigMap.immutable of type bool"),
        ("Secret", {"data": {"a": 1}}, "number into Go struct field Secret.data of type []uint8"),
        ("ConfigMap", {"metadata": "x"}, "string into Go struct field ConfigMap.metadata of type v1.ObjectMeta"),
        (
            "ConfigMap",
            {"metadata": {"labels": {"a": True}}},
            "bool into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            "Deployment",
            {"spec": {"replicas": "1"}},
            "string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "Deployment",
            {"spec": {"replicas": 1.5}},
            "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "Deployment",
            {"spec": {"replicas": 2**31}},
            "number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "Deployment",
            {"spec": {"template": {"spec": {"containers": [{"env": [{"value": 1}]}]}}}},
            "number into Go struct field EnvVar.spec.template.spec.containers.env.value of type string",
        ),
        (
            "Pod",
            {"spec": {"containers": [{"imagePullPolicy": 1}]}},
            "number into Go struct field Container.spec.containers.imagePullPolicy of type v1.PullPolicy",
        ),
        (
            "Pod",
            {"spec": {"containers": {}}},
            "object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            "Pod",
            {"spec": {"volumes": [{"hostPath": 3}]}},
            "number into Go struct field Volume.spec.volumes.hostPath of type v1.HostPathVolumeSource",
        ),
        (
            "Service",
            {"spec": {"ports": [{"targetPort": True}]}},
            "bool into Go struct field ServicePort.spec.ports.targetPort of type int32",
        ),
        (
            "Pod",
            {"metadata": {"creationTimestamp": 5}},
            "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
    ],
)
def test_value_of_wrong_type_is_rejected_with_go_error(kind: str, fields: dict[str, Any], words: str) -> None:
    assert refusal(kind, **fields) == f"json: cannot unmarshal {words}"


def test_quantities_are_canonicalized() -> None:
    limits = {"cpu": "0.5", "memory": 1024, "x": "1000Mi"}
    spec = {"containers": [{"name": "c", "resources": {"limits": limits}}]}
    container = read("Pod", spec=spec).manifest["spec"]["containers"][0]
    assert container["resources"]["limits"] == {"cpu": "500m", "memory": "1024", "x": "1000Mi"}
    spec["containers"][0]["resources"] = {"limits": {"cpu": "lots"}}
    assert refusal("Pod", spec=spec).startswith("quantities must match the regular expression")


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("2026-11-15T02:00:00Z", "2026-11-15T02:00:00Z"),
        ("2026-11-15T02:00:00.75Z", "2026-11-15T02:00:00Z"),
        ("2026-11-15T02:00:00+02:00", "2026-11-15T00:00:00Z"),
        ("2026-11-15T02:00:00-05:30", "2026-11-15T07:30:00Z"),
        ("0001-01-01T00:00:00Z", None),
    ],
)
def test_times_are_normalized_to_seconds_in_utc(written: str, normal: str | None) -> None:
    assert read("Pod", metadata={"creationTimestamp": written}).manifest["metadata"]["creationTimestamp"] == normal


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("x", '"x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ("2026-11-15", '"2026-11-15" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
        ("2026-11-15T00:00:00", '"2026-11-15T00:00:00" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"'),
        ("2026-13-15T00:00:00Z", '"2026-13-15T00:00:00Z": month out of range'),
        ("2026-02-30T00:00:00Z", '"2026-02-30T00:00:00Z": day out of range'),
        ("2026-11-15T00:00:00Zx", '"2026-11-15T00:00:00Zx": extra text: "x"'),
    ],
)
def test_invalid_time_is_rejected_with_go_error(written: str, words: str) -> None:
    assert refusal("Pod", metadata={"creationTimestamp": written}) == f"parsing time {words}"


def test_micro_time_has_six_decimals() -> None:
    assert read("Lease", spec={"renewTime": "2026-11-15T02:00:00.123456+01:00"}).manifest["spec"] == {
        "renewTime": "2026-11-15T01:00:00.123456Z"
    }
    layout = "2006-01-02T15:04:05.000000Z07:00"
    assert refusal("Lease", spec={"renewTime": "2026-11-15T00:00:00Z"}) == (
        f'parsing time "2026-11-15T00:00:00Z" as "{layout}": cannot parse "Z" as ".000000"'
    )


@pytest.mark.parametrize(("written", "normal"), [("YQ==", "YQ=="), ("YR==", "YQ=="), ("Y\nQ==\n", "YQ=="), ("", "")])
def test_bytes_are_normalized_to_canonical_base64(written: str, normal: str) -> None:
    assert read("Secret", data={"a": written}).manifest["data"]["a"] == normal


@pytest.mark.parametrize(
    ("written", "at"), [("a", 0), ("ab=", 3), ("ab=c", 2), ("a b", 1), ("abcde", 4), ("abcd=", 4), ("ab==x", 4)]
)
def test_invalid_base64_is_rejected_at_the_byte_go_reports(written: str, at: int) -> None:
    assert refusal("Secret", data={"a": written}) == f"illegal base64 data at input byte {at}"


def test_canonical_managed_fields_are_returned_as_the_same_object() -> None:
    entries = [{"manager": "m", "fieldsV1": {"f:data": {}}, "time": "2026-11-15T00:00:00Z"}]
    assert read("ConfigMap", metadata={"managedFields": entries}).manifest["metadata"]["managedFields"] is entries


def test_additional_properties_may_be_boolean_or_schema() -> None:
    def additional(value: Any) -> Any:
        schema = {"openAPIV3Schema": {"additionalProperties": value}}
        decoded = read("CustomResourceDefinition", spec={"versions": [{"name": "v1", "schema": schema}]})
        assert decoded.unknown_fields == ()  # k8s: types with a custom UnmarshalJSON do not report unknown fields
        return decoded.manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["additionalProperties"]

    assert additional(False) is False
    assert additional({"type": "string", "typo": 1}) == {"type": "string"}
    with pytest.raises(ManifestError, match="boolean or JSON schema expected"):
        additional("yes")


def test_schema_nested_too_deeply_is_rejected() -> None:
    schema: dict[str, Any] = {}
    for _ in range(sys.getrecursionlimit()):
        schema = {"not": schema}
    versions = [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]
    assert refusal("CustomResourceDefinition", spec={"versions": versions}) == "exceeded max depth"


@pytest.mark.skipif(not GOLDEN.exists(), reason="the Go module k8s.io/api is not in the module cache")
def test_golden_objects_are_decoded_unchanged() -> None:
    compared = 0
    for resource in BUILTIN_RESOURCES:
        file = GOLDEN / f"{resource.group or 'core'}.{resource.version}.{resource.kind}.json"
        if file.exists():
            manifest = json.loads(file.read_text())
            type_ = find_builtin_type(resource.group, resource.version, resource.kind)
            assert type_ is not None
            decoded = decode(type_, manifest, kind=resource.kind, api_version=resource.api_version)
            assert decoded == DecodedManifest(manifest, ())
            compared += 1
    assert compared > 50
