"""The OpenAPI v2 document holds every served kind by name, as kubectl reads it."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from argosy.kube.schema.api_resource import ApiResource
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES
from argosy.kube.schema.openapi_v2 import build_document
from argosy.kube.schema.protobuf_wire_format import split_fields

BOAT = ApiResource("harbour.example.com", "v1", "Boat", "boats", "boat", True, custom=True)


def parts(message: bytes, number: int) -> Iterator[bytes]:
    return (value for found, _, value in split_fields(message) if found == number and isinstance(value, bytes))


def kinds(message: bytes) -> dict[str, object]:
    """Definition name → the kinds that its extension names, by gnostic's field numbers."""
    found = {}
    for definition in (each for group in parts(message, 9) for each in parts(group, 1)):
        (name,), (schema,) = parts(definition, 1), parts(definition, 2)
        (extension,) = parts(schema, 31)
        assert list(parts(extension, 1)) == [b"x-kubernetes-group-version-kind"]
        (value,) = parts(extension, 2)
        (text,) = parts(value, 2)
        found[name.decode()] = orjson.loads(text)
    return found


def test_every_kind_is_named_once_with_its_group_and_version() -> None:
    found = kinds(build_document([*BUILTIN_RESOURCES, BOAT]))
    assert len(found) == len({(each.group, each.version, each.kind) for each in BUILTIN_RESOURCES}) + 1
    assert found["io.k8s.api.apps.v1.Deployment"] == [{"group": "apps", "version": "v1", "kind": "Deployment"}]
    assert found["com.example.harbour.v1.Boat"] == [{"group": "harbour.example.com", "version": "v1", "kind": "Boat"}]


def test_it_says_which_specification_it_follows() -> None:
    assert list(parts(build_document([]), 1)) == [b"2.0"]
