from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from argosy.kube.patch.merge_schema_protocol import Shape
from argosy.kube.schema.builtin_go_struct_fields import Type, find_builtin_type, get_named_type, load_table
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES
from support import go_modules
from support.paths import ROOT

PUBLISHED = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema/v1.32.0-local/_definitions.json"
MODULES = go_modules.folder()
LIBRARIES = ("api", "apimachinery", "apiextensions-apiserver", "kube-aggregator")
NEEDED = [MODULES / "k8s.io/kubernetes@v1.32.13", *(MODULES / f"k8s.io/{name}@v0.32.13" for name in LIBRARIES)]
PROTO_FIELDS = ROOT.parent / "shared/data/kubeapi/proto-fields.json"


def pod_spec() -> Type:
    pod = find_builtin_type("", "v1", "Pod")
    assert pod is not None
    spec = pod.field("spec")
    assert spec is not None
    return spec


def field(type_: Type, *names: str) -> Type:
    for name in names:
        field_type = (type_.items() if type_.kind == "list" else type_).field(name)
        assert field_type is not None, name
        type_ = field_type
    return type_


def test_struct_type_is_a_merge_schema_shape() -> None:
    shape: Shape = pod_spec()
    assert shape.kind == "struct"


def test_list_types_have_map_keys_merge_keys_and_defaults() -> None:
    ports = field(pod_spec(), "containers", "ports")
    assert (ports.list_type, ports.map_keys, ports.merge_key) == ("map", ("containerPort", "protocol"), "containerPort")
    assert ports.key_default("protocol") == ports.items().key_default("protocol") == "TCP"
    assert field(pod_spec(), "containers", "args").list_type == "atomic"
    assert field(pod_spec(), "volumes").strategies == ("merge", "retainKeys")
    assert field(pod_spec(), "topologySpreadConstraints").key_default("topologyKey") == ""
    assert field(pod_spec(), "imagePullSecrets").key_default("name") == ""


def test_atomic_is_read_from_fields_and_types() -> None:
    assert field(pod_spec(), "nodeSelector").atomic
    assert field(pod_spec(), "containers", "env", "valueFrom", "secretKeyRef").atomic
    assert not field(pod_spec(), "securityContext").atomic


def test_embedded_struct_is_flattened_but_keeps_its_protobuf_number() -> None:
    volume = get_named_type("io.k8s.api.core.v1.Volume")
    assert "hostPath" in volume.fields
    assert [
        (declared_field.name, declared_field.number, declared_field.inline) for declared_field in volume.declared_fields
    ] == [
        ("name", 1, False),
        ("volumeSource", 2, True),
    ]


def test_free_form_json_is_untyped() -> None:
    revision = find_builtin_type("apps", "v1", "ControllerRevision")
    assert revision is not None
    assert field(revision, "data").kind == "untyped"


def test_required_lists_and_struct_values_are_not_omitted_if_empty() -> None:
    assert not pod_spec().fields["containers"].is_omitted_if_empty
    assert not get_named_type("io.k8s.api.core.v1.Container").fields["resources"].is_omitted_if_empty
    assert pod_spec().fields["securityContext"].is_omitted_if_empty


def test_string_enums_keep_their_go_name_and_values() -> None:
    policy = field(pod_spec(), "containers", "imagePullPolicy")
    assert (policy.scalar, policy.go_name, policy.enum) == (
        "string",
        "v1.PullPolicy",
        ("Always", "IfNotPresent", "Never"),
    )


@pytest.mark.parametrize(
    "group_version_kind",
    [("", "v1", "Container"), ("", "v2", "Pod"), ("example.dev", "v1", "Pod"), ("apps", "v1", "Pod")],
)
def test_unknown_group_version_kind_has_no_type(group_version_kind: tuple[str, str, str]) -> None:
    assert find_builtin_type(*group_version_kind) is None


def test_every_built_in_resource_and_subresource_has_a_type() -> None:
    for resource in BUILTIN_RESOURCES:
        assert find_builtin_type(resource.group, resource.version, resource.kind), resource
        for subresource in resource.subresources:
            if subresource.kind and not subresource.kind.endswith("Options"):
                assert find_builtin_type(
                    subresource.group or resource.group, subresource.version or resource.version, subresource.kind
                ), subresource


def test_delete_options_are_the_same_type_in_every_group() -> None:
    assert find_builtin_type("apps", "v1", "DeleteOptions") is find_builtin_type("", "v1", "DeleteOptions") is not None


@pytest.mark.skipif(not all(map(Path.exists, NEEDED)), reason="not all of Kubernetes' Go modules are in the cache")
def test_bundled_tables_match_the_generator_output(tmp_path: Path) -> None:
    tool = ROOT / "tools/make_types.py"
    subprocess.run([sys.executable, str(tool), str(MODULES), "--into", str(tmp_path)], check=True, capture_output=True)
    for name in ("types", "descriptions"):
        assert json.loads(gzip.decompress((tmp_path / f"{name}.json.gz").read_bytes())) == load_table(name)


def test_generator_names_a_missing_module(tmp_path: Path) -> None:
    tool = ROOT / "tools/make_types.py"
    command = [sys.executable, str(tool), str(tmp_path), "--into", str(tmp_path)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "k8s.io/kube-aggregator@v0.32.13" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not list(tmp_path.iterdir())


def test_import_does_not_load_the_tables() -> None:
    script = (
        "from argosy.kube.schema.builtin_go_struct_fields import load_table; print(load_table.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


def list_extensions(type_: Type) -> dict[str, Any]:
    """The merge settings of a field as x-kubernetes-* extensions of the published document, without defaults."""
    facts = {
        "list-type": type_.list_type if type_.kind == "list" and type_.list_type != "atomic" else None,
        "list-map-keys": list(type_.map_keys),
        "patch-merge-key": type_.merge_key,
        "patch-strategy": ",".join(type_.strategies),
        "map-type": "atomic" if type_.kind == "map" and type_.atomic else None,
    }
    return {f"x-kubernetes-{key}": value for key, value in facts.items() if value}


def published(schema: dict[str, Any]) -> dict[str, Any]:
    usual = {"x-kubernetes-list-type": "atomic", "x-kubernetes-map-type": "granular"}
    return {key: value for key, value in schema.items() if key.startswith("x-kubernetes") and usual.get(key) != value}


def test_struct_fields_and_merge_extensions_match_the_published_schema() -> None:
    definitions = json.loads(PUBLISHED.read_text())["$defs"]
    compared = 0
    for name, text in load_table("types").items():
        schema = definitions.get(name)
        if text.startswith("=") or schema is None:
            continue
        type_ = get_named_type(name)
        assert set(type_.fields) == set(schema.get("properties", {})), name
        assert type_.atomic == (schema.get("x-kubernetes-map-type") == "atomic"), name
        assert {key for key, value in type_.fields.items() if value.required} == set(schema.get("required", [])), name
        for key, value in type_.fields.items():
            there = schema["properties"][key]
            assert list_extensions(value.type) == published(there), (name, key)
            compared += 1
    assert compared > 1900


@pytest.mark.skipif(not PROTO_FIELDS.exists(), reason="the list of protobuf fields is not there")
def test_protobuf_field_numbers_match_the_published_messages() -> None:
    messages = json.loads(PROTO_FIELDS.read_text())
    compared = 0
    for name, text in load_table("types").items():
        message = messages.get("k8s.io" + name.removeprefix("io.k8s"))
        if text.startswith("=") or message is None:
            continue
        # Some messages spell a name differently from JSON (uID), and one embedded struct has no name.
        our_names = {
            str(declared_field.number): declared_field.name.lower()
            for declared_field in get_named_type(name).declared_fields
            if declared_field.number
        }
        published_names = {number: declaration[0].lower() for number, declaration in message.items()}
        assert our_names == {
            key: "-" if our_names.get(key) == "-" else value for key, value in published_names.items()
        }, name
        compared += len(our_names)
    assert compared > 1600
