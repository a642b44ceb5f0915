"""The OpenAPI v2 document lists every served kind by name, as kubectl reads it."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from argosy.kube.schema.api_resource import ApiResource
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES
from argosy.kube.schema.openapi_v2 import build_document
from argosy.kube.schema.protobuf_wire_format import split_fields

BOAT = ApiResource("harbour.example.com", "v1", "Boat", "boats", "boat", True, custom=True)


def parts(message: bytes, number: int) -> Iterator[bytes]:
    return (
        value for field_number, _, value in split_fields(message) if field_number == number and isinstance(value, bytes)
    )


def kinds(message: bytes) -> dict[str, object]:
    """Map each definition name to the kinds in its extension; the field numbers are those of gnostic."""
    kinds_by_name = {}
    for definition in (encoded_definition for group in parts(message, 9) for encoded_definition in parts(group, 1)):
        (name,), (schema,) = parts(definition, 1), parts(definition, 2)
        (extension,) = parts(schema, 31)
        assert list(parts(extension, 1)) == [b"x-kubernetes-group-version-kind"]
        (value,) = parts(extension, 2)
        (text,) = parts(value, 2)
        kinds_by_name[name.decode()] = orjson.loads(text)
    return kinds_by_name


def test_document_lists_every_kind_once_with_group_and_version() -> None:
    kinds_by_name = kinds(build_document([*BUILTIN_RESOURCES, BOAT]))
    assert (
        len(kinds_by_name)
        == len({(resource.group, resource.version, resource.kind) for resource in BUILTIN_RESOURCES}) + 1
    )
    assert kinds_by_name["io.k8s.api.apps.v1.Deployment"] == [{"group": "apps", "version": "v1", "kind": "Deployment"}]
    assert kinds_by_name["com.example.harbour.v1.Boat"] == [
        {"group": "harbour.example.com", "version": "v1", "kind": "Boat"}
    ]


def test_document_declares_openapi_version_2() -> None:
    assert list(parts(build_document([]), 1)) == [b"2.0"]
