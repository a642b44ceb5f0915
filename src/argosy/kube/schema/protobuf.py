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
from argosy.kube.names import split_api_version
from argosy.kube.objects import Manifest
from argosy.kube.schema import protobuf_writer
from argosy.kube.schema.builtin_types import EVERYWHERE, META, Type, named, type_of
from argosy.kube.schema.protobuf_encoding import BYTES, bytes_field, split
from argosy.kube.schema.protobuf_reader import Reading

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
PREFIX = b"k8s\x00"
ENVELOPE_FIELDS, HEAD_FIELDS = 4, 2  # typeMeta, raw, contentEncoding, contentType; apiVersion, kind
HEAD = 1


class ProtoObject(NamedTuple):
    api_version: str
    kind: str
    value: Manifest


def decode(data: bytes) -> ProtoObject:
    """Decode an envelope into a manifest with kind and apiVersion. Unknown fields are ignored, as in Go."""
    if data[:4] != PREFIX:
        raise ManifestError(f"provided data does not appear to be a protobuf message, expected prefix {list(PREFIX)}")
    parts = _parts(data[4:], ENVELOPE_FIELDS, merged=(HEAD,))
    head = _parts(parts.get(HEAD, b""), HEAD_FIELDS)
    api_version, kind = (head.get(number, b"").decode("utf-8", "replace") for number in (1, 2))
    type_ = _type(api_version, kind)
    try:
        value = Reading().message(type_, parts.get(2, b""), 0)
    except RecursionError:
        raise ManifestError("proto: the message is nested too deeply") from None
    return ProtoObject(api_version, kind, {"kind": kind, "apiVersion": api_version} | value)


def encode(manifest: Manifest) -> bytes:
    """Encode a manifest of a built-in kind with its envelope."""
    type_ = _type(manifest["apiVersion"], manifest["kind"])
    return _envelope(manifest["apiVersion"], manifest["kind"], protobuf_writer.message(type_, manifest))


def encode_list(manifest: Manifest) -> bytes:
    """Encode a list (`PodList`) with its envelope; its items need no kind and apiVersion."""
    items = encode_items(manifest["apiVersion"], manifest["kind"], manifest.get("items") or ())
    return join_list(manifest, [items])


def encode_items(api_version: str, list_kind: str, items: Sequence[Manifest]) -> bytes:
    """Encode some items of a list; `join_list` builds the list from them."""
    element = _type(api_version, list_kind.removesuffix("List"))
    return b"".join([bytes_field(2, protobuf_writer.message(element, item)) for item in items])


def join_list(head: Manifest, groups: Sequence[bytes]) -> bytes:
    """Build the envelope of a list from encoded items."""
    metadata = bytes_field(1, protobuf_writer.message(named(f"{META}.ListMeta"), head.get("metadata") or {}))
    return _envelope(head["apiVersion"], head["kind"], b"".join([metadata, *groups]))


def encode_event(event: str, encoded: bytes) -> bytes:
    """Encode one watch frame: a four-byte length, then the event around a manifest's bytes, without an envelope."""
    frame = bytes_field(1, event.encode()) + bytes_field(2, bytes_field(1, encoded))
    return struct.pack(">I", len(frame)) + frame


def _parts(data: bytes, known: int, merged: tuple[int, ...] = ()) -> dict[int, bytes]:
    """Return the known fields of an envelope or of its typeMeta; all are bytes. Fields in `merged` are concatenated."""
    parts: dict[int, list[bytes]] = {}
    for number, wire, value in split(data):
        if number <= known:
            if wire != BYTES or not isinstance(value, bytes):
                raise ManifestError(f"proto: wrong wireType = {wire} for field {number} of the envelope")
            if number not in merged:
                parts[number] = []
            parts.setdefault(number, []).append(value)
    return {number: b"".join(values) for number, values in parts.items()}


def _type(api_version: str, kind: str) -> Type:
    group, version = split_api_version(api_version)
    type_ = type_of(group, version, kind)
    if type_ is None or (kind in EVERYWHERE and (group, version) not in _group_versions()):
        raise ManifestError(f'no kind "{kind}" is registered for version "{api_version}"')
    return type_


@cache
def _group_versions() -> frozenset[tuple[str, str]]:
    from argosy.kube.schema.builtin_kinds import BUILT_IN

    return frozenset((resource.group, resource.version) for resource in BUILT_IN)


def _envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    head = bytes_field(1, bytes_field(1, api_version.encode()) + bytes_field(2, kind.encode()))
    # k8s: Go writes the empty content encoding and content type too.
    return PREFIX + head + bytes_field(2, raw) + bytes_field(3, b"") + bytes_field(4, b"")
