"""Converts messages between protobuf and the JSON that the REST API reads and writes.

In: the bytes of a message, or a JSON document, and the message's Type. Out: the other form. Never: trusts a length, a
depth or a type; an invalid message raises ManifestError; a required field that was not sent becomes zero.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from argosy.errors import ManifestError
from argosy.kube.schema import protobuf_writer
from argosy.kube.schema.builtin_go_struct_fields import Type
from argosy.kube.schema.builtin_type_json_codec import decode_value
from argosy.kube.schema.protobuf_reader import MessageReader
from argosy.web.grpc.service_table import MESSAGE_TYPES


class RequestMessageReader(MessageReader):
    """Refuses messages without a field that their .proto file requires, as Argo CD's generated code does."""

    def read_into(self, manifest: dict[str, Any], type_: Type, data: bytes, depth: int) -> None:
        super().read_into(manifest, type_, data, depth)
        for name in _list_required_fields(type_):
            if name not in manifest:
                raise ManifestError(f'proto: required field "{name}" not set')


@cache
def _list_required_fields(type_: Type) -> tuple[str, ...]:
    """List the required fields of one of Argo CD's messages; the table of Kubernetes has other marks."""
    fields = type_.declared_fields if type_.table is MESSAGE_TYPES else ()
    return tuple(field.name for field in fields if field.required)


def decode_message(type_: Type, data: bytes) -> dict[str, Any]:
    try:
        return RequestMessageReader().read_message(type_, data, 0)
    except RecursionError:
        raise ManifestError("proto: the message is nested too deeply") from None


def encode_message(type_: Type, document: Any) -> bytes:
    """Encode a JSON document; fields that the message does not have are left out, as in Argo CD's own answers."""
    value, _ = decode_value(type_, {} if document is None else document)
    return protobuf_writer.encode_message(type_, value)
