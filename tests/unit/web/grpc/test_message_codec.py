from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import ManifestError
from argosy.web.grpc.message_codec import decode_message, encode_message
from argosy.web.grpc.service_table import MESSAGE_TYPES, list_methods, load_table
from support.examples import examples
from support.protobuf_mutations import JUNK, fill

REQUESTS = sorted({method.request.name for method in list_methods().values()})
RESPONSES = sorted({method.response.name for method in list_methods().values()})


def decode(name: str, data: bytes) -> dict[str, Any]:
    return decode_message(MESSAGE_TYPES.get_type(name), data)


def encode(name: str, document: Any) -> bytes:
    return encode_message(MESSAGE_TYPES.get_type(name), document)


def test_request_bytes_of_the_argocd_cli_become_json() -> None:
    # argocd app get models -N teams: ApplicationQuery{name, appNamespace, projects}
    data = b"\x0a\x06models\x12\x00\x1a\x02ml\x1a\x02qa\x3a\x05teams"
    assert decode("application.ApplicationQuery", data) == {
        "name": "models", "refresh": "", "projects": ["ml", "qa"], "appNamespace": "teams",
    }  # fmt: skip


def test_required_fields_are_written_with_their_zero_value() -> None:
    # Go refuses a proto2 message without its required fields
    assert encode("application.LogEntry", {"content": "a"}) == b"\x0a\x01a\x12\x00\x18\x00\x22\x00\x2a\x00"


@pytest.mark.parametrize(("name", "data", "missing"), [
    ("application.ApplicationRollbackRequest", b"\x0a\x01a", "id"),
    ("application.ApplicationRollbackRequest", b"\x10\x00", "name"),
    ("application.ApplicationRollbackRequest", b"", "name"),
    ("application.ApplicationUpdateRequest", b"", "application"),
    ("application.ResourceActionRunRequestV2", b"\x52\x03\x0a\x01p", "value"),
])  # fmt: skip
def test_a_message_without_a_required_field_is_refused(name: str, data: bytes, missing: str) -> None:
    with pytest.raises(ManifestError, match=f'^proto: required field "{missing}" not set$'):
        decode(name, data)


def test_a_required_field_may_be_zero() -> None:
    decoded = decode("application.ApplicationRollbackRequest", b"\x0a\x01a\x10\x00")
    assert (decoded["name"], decoded["id"]) == ("a", 0)


def test_optional_fields_of_proto2_are_left_out_if_absent() -> None:
    assert encode("application.ApplicationDeleteRequest", {"name": "a"}) == b"\x0a\x01a"
    assert encode("application.ApplicationDeleteRequest", {"name": "a", "cascade": False}) == b"\x0a\x01a\x10\x00"


def test_an_absent_optional_field_differs_from_false() -> None:
    assert "cascade" not in decode("application.ApplicationDeleteRequest", b"\x0a\x01a")
    assert decode("application.ApplicationDeleteRequest", b"\x0a\x01a\x10\x00")["cascade"] is False


def test_json_names_that_differ_from_field_names_are_used() -> None:
    # the field is called jSONPointers in the .proto file
    assert encode("v1alpha1.OverrideIgnoreDiff", {"jsonPointers": ["/spec"]}) == b"\x0a\x05/spec"


def test_embedded_structs_are_flattened_in_json() -> None:
    data = encode("v1alpha1.SyncStrategy", {"hook": {"force": True}})
    assert decode("v1alpha1.SyncStrategy", data) == {"hook": {"force": True}}
    assert data == b"\x12\x04\x0a\x02\x08\x01"


def test_an_embedded_optional_struct_is_written_only_if_it_has_a_value() -> None:
    name = "v1alpha1.ApplicationSourcePluginParameter"
    parameter = {"name": "values", "array": ["a", "b"]}
    data = encode(name, parameter)
    assert data == b"\x0a\x06values\x22\x06\x0a\x01a\x0a\x01b"
    assert decode(name, data) == parameter
    assert encode(name, {"name": "values", "map": {}}) == b"\x0a\x06values\x1a\x00"


def test_an_application_set_with_nested_generators_survives() -> None:
    generators = [
        {"matrix": {"generators": [
            {"list": {"elements": [{"cluster": "a", "n": 1}]}},
            {"matrix": {"generators": [{"clusters": {"selector": {"matchLabels": {"tier": "ml"}}}}]}},
        ]}}
    ]  # fmt: skip
    document = {"metadata": {"name": "set"}, "spec": {"generators": generators, "template": {"spec": {}}}}
    decoded = decode("v1alpha1.ApplicationSet", encode("v1alpha1.ApplicationSet", document))
    matrix = decoded["spec"]["generators"][0]["matrix"]["generators"]
    assert matrix[0]["list"]["elements"] == [{"cluster": "a", "n": 1}]
    assert matrix[1]["matrix"] == {"generators": [{"clusters": {"selector": {"matchLabels": {"tier": "ml"}}}}]}


def test_fields_that_the_message_lacks_are_left_out() -> None:
    with_kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a"}, "more": [1]}
    assert encode("v1alpha1.Application", with_kind) == encode("v1alpha1.Application", {"metadata": {"name": "a"}})


@pytest.mark.parametrize(("name", "document"), [
    ("v1alpha1.Application", {"spec": []}),
    ("v1alpha1.Application", {"metadata": {"name": 1}}),
    ("v1alpha1.Application", {"metadata": {"creationTimestamp": "yesterday"}}),
    ("v1alpha1.Application", []),
    ("account.Token", {"issuedAt": "1"}),
    ("v1alpha1.TLSClientConfig", {"caData": "no base64!"}),
])  # fmt: skip
def test_json_of_another_type_is_refused(name: str, document: Any) -> None:
    with pytest.raises(ManifestError):
        encode(name, document)


@pytest.mark.parametrize("name", sorted(load_table()["types"]))
def test_every_message_survives_a_round_trip(name: str) -> None:
    type_ = MESSAGE_TYPES.get_type(name)
    document = fill(type_)
    data = encode_message(type_, document)
    assert encode_message(type_, decode_message(type_, data)) == data


def test_every_request_with_an_unknown_field_is_read() -> None:
    for name in REQUESTS:
        data = encode(name, {})  # has the required fields
        assert decode(name, data + b"\xfa\xff\x0f\x03new") == decode(name, data)


def test_a_message_nested_too_deeply_is_refused() -> None:
    deep = b""
    for _ in range(200):
        deep = b"\x0a" + _varint(len(deep)) + deep  # LabelSelector and others have a message as field 1
    data = deep
    with pytest.raises(ManifestError):
        decode("v1alpha1.ApplicationSetNestedGenerator", b"\x0b" * 300)
    for name in REQUESTS:
        try:
            decode(name, data)
        except ManifestError:
            continue


def _varint(value: int) -> bytes:
    encoded = b""
    while value > 127:
        encoded, value = encoded + bytes([value & 127 | 128]), value >> 7
    return encoded + bytes([value])


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(REQUESTS), st.binary(max_size=200))
def test_random_bytes_give_a_document_or_a_manifest_error(name: str, data: bytes) -> None:
    try:
        document = decode(name, data)
    except ManifestError:
        return
    encode(name, document)


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(REQUESTS), st.randoms(use_true_random=False))
def test_mutated_messages_give_a_document_or_a_manifest_error(name: str, source: Random) -> None:
    type_ = MESSAGE_TYPES.get_type(name)
    data = bytearray(encode_message(type_, fill(type_))[:20_000])
    for _ in range(source.randint(1, 4)):
        position = source.randint(0, len(data))
        if source.random() < 0.5:
            data[position : position + source.randint(0, 4)] = source.choice(JUNK)
        else:
            data[position : position + 1] = source.randbytes(1)
    try:
        decode_message(type_, bytes(data))
    except ManifestError:
        return


FIELD_NAMES = ["metadata", "spec", "items", "name", "status", "labels", "project", "connectionState", "a"]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELD_NAMES), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(RESPONSES), JSON_VALUES)
def test_any_json_is_encoded_or_gives_a_manifest_error(name: str, document: Any) -> None:
    try:
        encode(name, document)
    except ManifestError:
        return
