"""Converts messages between protobuf and the JSON that the REST API reads and writes.

In: the bytes of a message, or a JSON document, and the message's Type. Out: the other form. Never: trusts a length, a
depth or a type; an invalid message raises ManifestError.
"""

from __future__ import annotations

from typing import Any

from argosy.errors import ManifestError
from argosy.kube.schema import protobuf_writer
from argosy.kube.schema.builtin_go_struct_fields import Type
from argosy.kube.schema.builtin_type_json_codec import decode_value
from argosy.kube.schema.protobuf_reader import MessageReader


def decode_message(type_: Type, data: bytes) -> dict[str, Any]:
    try:
        return MessageReader().read_message(type_, data, 0)
    except RecursionError:
        raise ManifestError("proto: the message is nested too deeply") from None


def encode_message(type_: Type, document: Any) -> bytes:
    """Encode a JSON document; fields that the message does not have are left out, as in Argo CD's own answers."""
    value, _ = decode_value(type_, {} if document is None else document)
    return protobuf_writer.encode_message(type_, value)
