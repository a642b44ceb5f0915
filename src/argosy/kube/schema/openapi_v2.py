"""Builds the server's OpenAPI v2 document in protobuf: the names of its kinds without their fields.

In: the served resources. Out: bytes. Never: describes a field; OpenAPI v3 does.
# k8s: kubectl validates a file of `kind: List` only against this document, and rejects the file if it is missing.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from argosy.kube.schema.api_resource import ApiResource
from argosy.kube.schema.openapi_schema_builder import schema_name
from argosy.kube.schema.protobuf_wire_format import encode_bytes_field

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
ACCEPT_MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

# Field numbers of gnostic's openapi.v2 messages.
_DOCUMENT_SWAGGER, _DOCUMENT_INFO, _DOCUMENT_PATHS, _DOCUMENT_DEFINITIONS = 1, 2, 8, 9
_SCHEMA_TYPE, _SCHEMA_EXTENSION = 22, 31


def build_document(resources: Iterable[ApiResource]) -> bytes:
    """Describe every kind as an object with any fields: kubectl finds the kind, and the server validates the fields."""
    definitions = b"".join(encode_bytes_field(1, _encode_definition(resource)) for resource in resources)
    return (
        encode_bytes_field(_DOCUMENT_SWAGGER, b"2.0")
        + encode_bytes_field(_DOCUMENT_INFO, encode_bytes_field(1, b"Kubernetes") + encode_bytes_field(2, b"v1.32.13"))
        + encode_bytes_field(_DOCUMENT_PATHS, b"")
        + encode_bytes_field(_DOCUMENT_DEFINITIONS, definitions)
    )


def _encode_definition(resource: ApiResource) -> bytes:
    kinds = [{"group": resource.group, "version": resource.version, "kind": resource.kind}]
    extension = encode_bytes_field(1, b"x-kubernetes-group-version-kind") + encode_bytes_field(
        2, encode_bytes_field(2, orjson.dumps(kinds))
    )
    schema = encode_bytes_field(_SCHEMA_TYPE, encode_bytes_field(1, b"object")) + encode_bytes_field(
        _SCHEMA_EXTENSION, extension
    )
    name = schema_name(resource.group, resource.version, resource.kind)
    return encode_bytes_field(1, name.encode()) + encode_bytes_field(2, schema)
