"""Encodes and decodes manifests in Kubernetes' protobuf format: an envelope with the kind around the object's message.

In: the bytes of a request, or a manifest. Out: a manifest as Go would write it in JSON, or the bytes of a response.
Never: handles custom kinds; invalid bytes raise ManifestError.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from argosy.errors import ManifestError
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import split_api_version
from argosy.kube.schema import protobuf_writer
from argosy.kube.schema.builtin_go_struct_fields import (
    META_KINDS,
    META_PACKAGE,
    Type,
    find_builtin_type,
    get_named_type,
)
from argosy.kube.schema.protobuf_reader import MessageReader
from argosy.kube.schema.protobuf_wire_format import BYTES, encode_bytes_field, split_fields

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC_PREFIX = b"k8s\x00"
ENVELOPE_FIELD_COUNT, TYPE_META_FIELD_COUNT = 4, 2  # typeMeta, raw, contentEncoding, contentType; apiVersion, kind
TYPE_META_FIELD = 1


class ProtoObject(NamedTuple):
    api_version: str
    kind: str
    value: Manifest


def decode(data: bytes) -> ProtoObject:
    """Decode an envelope into a manifest with kind and apiVersion. Unknown fields are ignored, as in Go."""
    if data[:4] != MAGIC_PREFIX:
        raise ManifestError(
            f"provided data does not appear to be a protobuf message, expected prefix {list(MAGIC_PREFIX)}"
        )
    parts = _read_envelope_fields(data[4:], ENVELOPE_FIELD_COUNT, merged=(TYPE_META_FIELD,))
    type_meta = _read_envelope_fields(parts.get(TYPE_META_FIELD, b""), TYPE_META_FIELD_COUNT)
    api_version, kind = (type_meta.get(number, b"").decode("utf-8", "replace") for number in (1, 2))
    type_ = _get_type(api_version, kind)
    try:
        value = MessageReader().read_message(type_, parts.get(2, b""), 0)
    except RecursionError:
        raise ManifestError("proto: the message is nested too deeply") from None
    return ProtoObject(api_version, kind, {"kind": kind, "apiVersion": api_version} | value)


def encode(manifest: Manifest) -> bytes:
    """Encode a manifest of a built-in kind with its envelope."""
    type_ = _get_type(manifest["apiVersion"], manifest["kind"])
    return _encode_envelope(manifest["apiVersion"], manifest["kind"], protobuf_writer.encode_message(type_, manifest))


def encode_list(manifest: Manifest) -> bytes:
    """Encode a list (`PodList`) with its envelope; its items need no kind and apiVersion."""
    items = encode_items(manifest["apiVersion"], manifest["kind"], manifest.get("items") or ())
    return join_list(manifest, [items])


def encode_items(api_version: str, list_kind: str, items: Sequence[Manifest]) -> bytes:
    """Encode some items of a list; `join_list` builds the list from them."""
    element = _get_type(api_version, list_kind.removesuffix("List"))
    return b"".join([encode_bytes_field(2, protobuf_writer.encode_message(element, item)) for item in items])


def join_list(list_head: Manifest, encoded_items: Sequence[bytes]) -> bytes:
    """Build the envelope of a list from encoded items."""
    metadata = encode_bytes_field(
        1, protobuf_writer.encode_message(get_named_type(f"{META_PACKAGE}.ListMeta"), list_head.get("metadata") or {})
    )
    return _encode_envelope(list_head["apiVersion"], list_head["kind"], b"".join([metadata, *encoded_items]))


def encode_event(event: str, encoded: bytes) -> bytes:
    """Encode one watch frame: a four-byte length, then the event around a manifest's bytes, without an envelope."""
    frame = encode_bytes_field(1, event.encode()) + encode_bytes_field(2, encode_bytes_field(1, encoded))
    return struct.pack(">I", len(frame)) + frame


def _read_envelope_fields(data: bytes, max_number: int, merged: tuple[int, ...] = ()) -> dict[int, bytes]:
    """Return the known fields of an envelope or of its typeMeta; all are bytes. Fields in `merged` are concatenated."""
    parts: dict[int, list[bytes]] = {}
    for number, wire_type, value in split_fields(data):
        if number <= max_number:
            if wire_type != BYTES or not isinstance(value, bytes):
                raise ManifestError(f"proto: wrong wireType = {wire_type} for field {number} of the envelope")
            if number not in merged:
                parts[number] = []
            parts.setdefault(number, []).append(value)
    return {number: b"".join(values) for number, values in parts.items()}


def _get_type(api_version: str, kind: str) -> Type:
    group, version = split_api_version(api_version)
    type_ = find_builtin_type(group, version, kind)
    if type_ is None or (kind in META_KINDS and (group, version) not in _group_versions()):
        raise ManifestError(f'no kind "{kind}" is registered for version "{api_version}"')
    return type_


@cache
def _group_versions() -> frozenset[tuple[str, str]]:
    from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES

    return frozenset((resource.group, resource.version) for resource in BUILTIN_RESOURCES)


def _encode_envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    type_meta = encode_bytes_field(
        1, encode_bytes_field(1, api_version.encode()) + encode_bytes_field(2, kind.encode())
    )
    # k8s: Go writes the empty content encoding and content type too.
    return (
        MAGIC_PREFIX + type_meta + encode_bytes_field(2, raw) + encode_bytes_field(3, b"") + encode_bytes_field(4, b"")
    )
