from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import ManifestError
from argosy.kube.schema import protobuf_envelope, protobuf_reader
from argosy.kube.schema.builtin_go_struct_fields import StructField, Type, find_builtin_type, get_named_type
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES
from argosy.kube.schema.builtin_type_json_codec import decode
from argosy.kube.schema.protobuf_wire_format import (
    encode_bytes_field,
    encode_number_field,
    encode_varint,
    split_fields,
    to_signed,
)
from support import go_modules
from support.counted_calls import calls_of
from support.examples import examples

MODULES = go_modules.folder()
GOLDEN = MODULES / "k8s.io/api@v0.32.13/testdata/HEAD"
EXTENSIONS = MODULES / "k8s.io/apiextensions-apiserver@v0.32.13/pkg/apis/testdata/HEAD"
KINDS = [
    *((resource.group, resource.version, resource.kind) for resource in BUILTIN_RESOURCES),
    ("autoscaling", "v1", "Scale"),
    ("policy", "v1", "Eviction"),
    ("authentication.k8s.io", "v1", "TokenRequest"),
    ("", "v1", "DeleteOptions"),
    ("", "v1", "Status"),
]


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    head = encode_bytes_field(1, api_version.encode()) + encode_bytes_field(2, kind.encode())
    return b"k8s\x00" + encode_bytes_field(1, head) + encode_bytes_field(2, raw)


def config_map(raw: bytes) -> dict[str, Any]:
    return protobuf_envelope.decode(envelope("v1", "ConfigMap", raw)).value


# Values of every type.

TIMES = st.sampled_from(["2026-11-15T02:00:00Z", "1969-12-31T23:59:59Z", "0001-01-02T00:00:00Z"])
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=4),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False, allow_infinity=False, width=32),
    "bytes": st.sampled_from(["", "YQ==", "AAECAwQF"]),
    "Time": st.none() | TIMES,
    "MicroTime": st.none() | TIMES.map(lambda timestamp: timestamp.replace("Z", ".000123Z")),
    "Quantity": st.sampled_from(["0", "500m", "1Gi", "-3", "12e6"]),
    "IntOrString": st.integers(-(2**31), 2**31 - 1) | st.text(max_size=3),
    "Raw": st.none() | st.dictionaries(st.text(max_size=2), st.integers(-5, 5), min_size=1, max_size=2),
    "SchemaOrBool": st.booleans() | st.just({"type": "string"}),
    "SchemaOrArray": st.just({"type": "string"}) | st.just([{"type": "string"}]),
    "SchemaOrStringArray": st.just({"type": "string"}) | st.just(["a"]),
}


def values(type_: Type, depth: int) -> st.SearchStrategy[Any]:
    if type_.kind == "struct":
        return structs(type_, depth)
    if type_.kind in ("list", "map") and depth <= 0:
        return st.none()
    # k8s: protobuf cannot tell an empty list from an absent one.
    if type_.kind == "list":
        return st.lists(values(type_.items(), depth - 1), min_size=1, max_size=2)
    if type_.kind == "map":
        return st.dictionaries(st.text(max_size=3), values(type_.items(), depth - 1), min_size=1, max_size=2)
    return SCALARS[type_.scalar]


@st.composite
def structs(draw: st.DrawFn, type_: Type, depth: int) -> dict[str, Any]:
    # k8s: an object inside another has no kind in protobuf, only the envelope has one.
    unsaid = {"kind", "apiVersion"} if type_.is_kind else set()
    fields = [field for name, field in type_.fields.items() if name not in unsaid]
    if depth <= 0 or not fields:
        return {}
    chosen: list[StructField] = draw(st.lists(st.sampled_from(fields), max_size=6))
    return {field.name: draw(values(field.type, depth - 1)) for field in chosen}


@st.composite
def manifests(draw: st.DrawFn) -> dict[str, Any]:
    group, version, kind = draw(st.sampled_from(KINDS))
    type_ = find_builtin_type(group, version, kind)
    assert type_ is not None
    api_version = f"{group}/{version}" if group else version
    return decode(type_, draw(structs(type_, 5)), kind=kind, api_version=api_version).manifest


@settings(max_examples=examples(), deadline=None)
@given(manifests())
def test_manifest_round_trips_through_protobuf(manifest: dict[str, Any]) -> None:
    read = protobuf_envelope.decode(protobuf_envelope.encode(manifest))
    assert read.value == manifest
    assert protobuf_envelope.encode(read.value) == protobuf_envelope.encode(manifest)
    type_ = find_builtin_type(*_group_version(read.api_version), read.kind)
    assert type_ is not None
    again = decode(type_, read.value, kind=read.kind, api_version=read.api_version)
    assert again.manifest is read.value  # already canonical


def _group_version(api_version: str) -> tuple[str, str]:
    group, _, version = api_version.rpartition("/")
    return group, version


@settings(max_examples=examples(), deadline=None)
@given(manifests(), st.data())
def test_damaged_bytes_decode_or_raise_manifest_error(manifest: dict[str, Any], data: st.DataObject) -> None:
    body = bytearray(protobuf_envelope.encode(manifest))
    for at in data.draw(st.lists(st.integers(4, len(body) - 1), max_size=4)):
        body[at] = data.draw(st.integers(0, 255))
    del body[data.draw(st.integers(4, len(body))) :]
    try:
        assert isinstance(protobuf_envelope.decode(bytes(body)).value, dict)
    except ManifestError:
        pass


@pytest.mark.skipif(not GOLDEN.exists(), reason="the Go module k8s.io/api is not in the module cache")
def test_golden_objects_round_trip_byte_for_byte() -> None:
    compared = 0
    for group, version, kind in KINDS:
        folder = EXTENSIONS if group == "apiextensions.k8s.io" else GOLDEN
        file = folder / f"{group or 'core'}.{version}.{kind}.pb"
        if file.exists():
            manifest = json.loads(file.with_suffix(".json").read_text())
            assert protobuf_envelope.decode(file.read_bytes()).value == manifest, kind
            assert protobuf_envelope.encode(manifest) == file.read_bytes(), kind
            compared += 1
    assert compared > 60


def test_hand_encoded_config_map_is_decoded() -> None:
    pair = encode_bytes_field(1, b"a") + encode_bytes_field(2, b"b")
    manifest = config_map(
        encode_bytes_field(1, encode_bytes_field(1, b"name")) + encode_bytes_field(2, pair) + encode_number_field(4, 1)
    )
    assert manifest == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "name", "creationTimestamp": None},
        "data": {"a": "b"},
        "immutable": True,
    }


def test_zero_is_kept_only_for_pointer_fields() -> None:
    spec = encode_number_field(1, 0) + encode_number_field(5, 0)  # replicas, minReadySeconds
    manifest = protobuf_envelope.decode(envelope("apps/v1", "Deployment", encode_bytes_field(2, spec))).value
    assert manifest["spec"]["replicas"] == 0
    assert "minReadySeconds" not in manifest["spec"]


def test_packed_repeated_numbers_are_decoded() -> None:
    context = encode_bytes_field(4, encode_varint(7) + encode_varint(300))  # supplementalGroups
    pod = encode_bytes_field(2, encode_bytes_field(14, context))
    spec = protobuf_envelope.decode(envelope("v1", "Pod", pod)).value["spec"]
    assert spec["securityContext"]["supplementalGroups"] == [7, 300]


def test_negative_numbers_are_twos_complement() -> None:
    assert to_signed(2**64 - 1, 32) == to_signed(2**64 - 1, 64) == -1
    assert split_fields(encode_number_field(1, -5))[0][2] == 2**64 - 5


def test_unknown_fields_are_ignored() -> None:
    assert config_map(encode_number_field(99, 1) + encode_bytes_field(98, b"x"))["kind"] == "ConfigMap"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"\x0a", "unexpected EOF"),
        (b"\x0a\x05ab", "unexpected EOF"),
        (b"\x0a" + b"\xff" * 9 + b"\x01", "unexpected EOF"),
        (b"\xff" * 11, "integer overflow"),
        (b"\x20\x80", "unexpected EOF"),
        (b"\x13", "illegal wireType 3"),
        (b"\x02\x00", "illegal tag 0"),
        (b"\x10\x01", "wrong wireType = 0 for field data"),
        (encode_bytes_field(4, b"\x01"), "wrong wireType = 2 for field immutable"),
        (b"\x09\x00", "unexpected EOF"),
    ],
)
def test_malformed_protobuf_is_rejected(raw: bytes, words: str) -> None:
    with pytest.raises(ManifestError, match=words):
        config_map(raw)


def test_data_without_protobuf_envelope_is_rejected() -> None:
    for data in (b"", b"{}", b"k8s"):
        with pytest.raises(ManifestError, match="does not appear to be a protobuf message"):
            protobuf_envelope.decode(data)


def test_kind_that_is_not_built_in_is_rejected() -> None:
    with pytest.raises(ManifestError, match='no kind "Widget" is registered for version "argosy'):
        protobuf_envelope.decode(envelope("argosy.dev/v1", "Widget", b""))
    with pytest.raises(ManifestError, match='no kind "" is registered'):
        protobuf_envelope.decode(b"k8s\x00")


def crd(schema: bytes) -> bytes:
    version = encode_bytes_field(4, encode_bytes_field(1, schema))
    return envelope(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", encode_bytes_field(2, encode_bytes_field(7, version))
    )


def test_deep_nesting_is_rejected_with_little_work() -> None:
    schema = b""
    number = (
        get_named_type("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps").fields["not"].number
    )
    for _ in range(2000):
        schema = encode_bytes_field(number, schema)

    def refused() -> None:
        with pytest.raises(ManifestError, match="nested too deeply"):
            protobuf_envelope.decode(crd(schema))

    assert calls_of(refused) < 20_000


@pytest.mark.parametrize("most", [2_500, pytest.param(protobuf_reader.MAX_MESSAGES, marks=pytest.mark.tier("all"))])
def test_too_many_nested_messages_are_rejected(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf_reader, "MAX_MESSAGES", most)
    with pytest.raises(ManifestError, match="too many nested messages"):
        protobuf_envelope.decode(envelope("v1", "Pod", encode_bytes_field(2, b"\x12\x00" * (most + 1))))


def test_time_outside_of_the_calendar_is_rejected() -> None:
    created = encode_bytes_field(8, encode_number_field(1, 2**62))
    with pytest.raises(ManifestError, match="year outside of range"):
        config_map(encode_bytes_field(1, created))


def test_encoded_list_has_resource_version_and_items() -> None:
    items = [{"metadata": {"name": "a"}, "data": {"x": "y"}}, {"metadata": {"name": "b"}}]
    listing = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": items}
    parts = split_fields(protobuf_envelope.encode_list(listing)[4:])
    message = next(value for number, _, value in parts if number == 2)
    assert isinstance(message, bytes)
    (_, _, head), *item_fields = split_fields(message)
    assert isinstance(head, bytes)
    assert (2, 2, b"7") in split_fields(head)
    names = [config_map(value)["metadata"]["name"] for _, _, value in item_fields if isinstance(value, bytes)]
    assert names == ["a", "b"]


def test_watch_event_has_a_length_prefix() -> None:
    encoded = protobuf_envelope.encode({"kind": "ConfigMap", "apiVersion": "v1"})
    frame = protobuf_envelope.encode_event("ADDED", encoded)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert split_fields(frame[4:]) == [(1, 2, b"ADDED"), (2, 2, encode_bytes_field(1, encoded))]


def test_repeated_message_field_is_merged() -> None:
    """As in Go. The bytes are joined once: many repeats of one field must not take quadratic time."""
    metadata = [
        encode_bytes_field(1, encode_bytes_field(1, b"name")),
        encode_bytes_field(1, encode_bytes_field(3, b"ml")),
    ]
    merged_metadata = config_map(b"".join(metadata) + encode_bytes_field(1, b"") * 10)["metadata"]
    assert (merged_metadata["name"], merged_metadata["namespace"]) == ("name", "ml")
    repeated = [encode_bytes_field(1, encode_bytes_field(1, b"%09d" % number)) for number in range(200_000)]
    assert config_map(b"".join(repeated))["metadata"]["name"] == "000199999"


@pytest.mark.parametrize(
    "head",
    [
        encode_number_field(1, 5) + encode_bytes_field(2, b"ConfigMap"),
        encode_bytes_field(1, b"v1") + encode_number_field(2, 5),
    ],
)
def test_envelope_field_of_wrong_wire_type_is_rejected(head: bytes) -> None:
    with pytest.raises(ManifestError, match="wrong wireType = 0"):
        protobuf_envelope.decode(b"k8s\x00" + encode_bytes_field(1, head) + encode_bytes_field(2, b""))
    good = encode_bytes_field(1, encode_bytes_field(1, b"v1") + encode_bytes_field(2, b"ConfigMap"))
    with pytest.raises(ManifestError, match="wrong wireType = 0"):
        protobuf_envelope.decode(b"k8s\x00" + good + encode_number_field(2, 1))


def test_delete_options_of_unserved_version_are_rejected() -> None:
    with pytest.raises(ManifestError, match='no kind "DeleteOptions" is registered for version "v61"'):
        protobuf_envelope.decode(envelope("v61", "DeleteOptions", b""))
    assert protobuf_envelope.decode(envelope("apps/v1", "DeleteOptions", b"")).kind == "DeleteOptions"
