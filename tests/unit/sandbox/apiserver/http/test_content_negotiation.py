"""HTTP formats of the API server: content negotiation, request bodies, protobuf and discovery."""

from __future__ import annotations

import gzip
import struct
from typing import Any

import orjson
import pytest
import yaml

from argosy.errors import ClusterError
from argosy.kube.schema import protobuf_envelope
from argosy.kube.schema.protobuf_wire_format import split_fields
from argosy.observability.metrics import CONTENT_TYPE
from argosy.sandbox.apiserver.http.content_negotiation import PROTOBUF_MEDIA_TYPE, negotiate_format
from support import prometheus_text
from support.api_client import CONFIGS, DEFINITIONS, WIDGETS, Api, config, definition, named, widget

pytestmark = pytest.mark.anyio
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

FORMS = [
    ("", ("json", "")),
    ("*/*", ("json", "")),
    ("application/json", ("json", "")),
    ("application/json;charset=utf-8", ("json", "")),
    ("application/yaml", ("yaml", "")),
    (PROTOBUF_MEDIA_TYPE, ("protobuf", "")),
    (f"{PROTOBUF_MEDIA_TYPE};stream=watch", ("protobuf", "")),
    (f"{PROTOBUF_MEDIA_TYPE},application/json", ("json", "")),
    (TABLE, ("json", "Table")),
    (f"{TABLE},application/json", ("json", "Table")),
    (f"{TABLE.replace('v=v1', 'v=v7')},application/json", ("json", "")),
    (f"{TABLE.replace('meta.k8s.io', 'other.io')},application/json", ("json", "")),
    (f"{PROTOBUF_MEDIA_TYPE};as=Table;v=v1;g=meta.k8s.io,application/json", ("json", "")),
    (f"{PROTOBUF_MEDIA_TYPE};as=PartialObjectMetadata;v=v1;g=meta.k8s.io", ("protobuf", "PartialObjectMetadata")),
    ("application/json;q=0.1,application/yaml", ("yaml", "")),
    ("application/json;q=0.1,application/yaml;q=0.05", ("json", "")),
    ("text/html,application/json;q=0.9", ("json", "")),
    ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", ("json", "")),
]


@pytest.mark.parametrize(("accept", "form"), FORMS)
async def test_most_preferred_supported_format_is_chosen(accept: str, form: tuple[str, str]) -> None:
    chosen = negotiate_format(accept)
    assert (chosen.encoding, chosen.projection) == form


REFUSED = [
    "text/html",
    "garbage",
    ";;",
    "application/cbor",
    f"{PROTOBUF_MEDIA_TYPE};as=Table;v=v1;g=meta.k8s.io",
    "a/b,c/d;q=x",
]


@pytest.mark.parametrize("accept", REFUSED)
async def test_unsupported_accept_header_returns_406(api: Api, accept: str) -> None:
    with pytest.raises(ClusterError, match="406: Not Acceptable"):
        negotiate_format(accept)
    answer = await api.get(CONFIGS, accept)
    assert (answer.code, answer.json["reason"]) == (406, "NotAcceptable")
    assert answer.headers["content-type"] == "application/json"


async def test_objects_lists_and_errors_are_sent_as_yaml(api: Api) -> None:
    await api.made(CONFIGS, config("a", {"x": "1"}))
    for path, kind in ((f"{CONFIGS}/a", "ConfigMap"), (CONFIGS, "ConfigMapList"), (f"{CONFIGS}/none", "Status")):
        answer = await api.get(path, "application/yaml")
        assert answer.headers["content-type"] == "application/yaml"
        assert yaml.safe_load(answer.body)["kind"] == kind


async def test_yaml_body_is_accepted(api: Api) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: 'yes'}\n"
    answer = await api.ask("POST", CONFIGS, body, "application/yaml")
    assert (answer.code, answer.json["data"]) == (201, {"x": "yes"})


async def test_body_without_content_type_is_read_as_json(api: Api) -> None:
    assert (await api.ask("POST", CONFIGS, config("a"), "")).code == 201


@pytest.mark.parametrize("media", ["text/plain", "application/cbor", "multipart/form-data"])
async def test_body_of_unsupported_content_type_returns_415(api: Api, media: str) -> None:
    answer = await api.ask("POST", CONFIGS, config("a"), media)
    assert (answer.code, answer.json["reason"]) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_table_has_the_requested_version(api: Api, version: str) -> None:
    await api.made(CONFIGS, config("a", {"x": "1"}))
    for path in (CONFIGS, f"{CONFIGS}/a"):
        table = (await api.get(path, TABLE.replace("v=v1", f"v={version}"))).json
        assert (table["kind"], table["apiVersion"]) == ("Table", f"meta.k8s.io/{version}")
        assert table["rows"][0]["cells"][:2] == ["a", 1]
        assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


INCLUDED = [
    ("None", None),
    ("Metadata", "PartialObjectMetadata"),
    ("Object", "ConfigMap"),
    ("", "PartialObjectMetadata"),
]


@pytest.mark.parametrize(("include", "kind"), INCLUDED)
async def test_include_object_selects_the_objects_in_table_rows(api: Api, include: str, kind: str | None) -> None:
    await api.made(CONFIGS, config("a"))
    row = (await api.get(f"{CONFIGS}?includeObject={include}", TABLE)).json["rows"][0]
    assert (row["object"] or {}).get("kind") == kind


async def test_invalid_include_object_returns_422(api: Api) -> None:
    assert (await api.get(f"{CONFIGS}?includeObject=Everything", TABLE)).code == 422


async def test_partial_object_metadata_is_sent_for_objects_and_lists(api: Api) -> None:
    config_map = await api.made(CONFIGS, config("a", {"x": "1"}))
    one = (await api.get(f"{CONFIGS}/a", PARTIAL)).json
    assert one == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": config_map["metadata"]}
    many = (await api.get(CONFIGS, PARTIALS)).json
    assert (many["kind"], many["items"]) == ("PartialObjectMetadataList", [one])


async def test_json_is_indented_only_with_pretty_query(api: Api) -> None:
    await api.made(CONFIGS, config("a"))
    plain, pretty = [(await api.get(f"{CONFIGS}/a{query}")) for query in ("", "?pretty=true")]
    assert plain.json == pretty.json and plain.body.count(b"\n") == 1 < pretty.body.count(b"\n")


async def test_large_responses_are_compressed_if_client_accepts_gzip(api: Api) -> None:
    await api.made(CONFIGS, config("small"))
    await api.made(CONFIGS, config("large", {"x": "y" * (200 << 10)}))
    small = await api.get(f"{CONFIGS}/small", accept_encoding="gzip")
    plain = await api.get(f"{CONFIGS}/large")
    large = await api.get(f"{CONFIGS}/large", accept_encoding="gzip")
    assert "content-encoding" not in small.headers and "content-encoding" not in plain.headers
    assert (large.headers["content-encoding"], large.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert gzip.decompress(large.body) == plain.body


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE"])
async def test_unsupported_http_methods_return_405(api: Api, method: str) -> None:
    for path in (CONFIGS, f"{CONFIGS}/a", "/api", "/healthz"):
        assert (await api.ask(method, path)).code == 405


async def test_every_response_has_audit_id_and_cache_control_headers(api: Api) -> None:
    for path in (CONFIGS, f"{CONFIGS}/none", "/version", "/nowhere"):
        headers = (await api.get(path)).headers
        assert headers["audit-id"] and headers["cache-control"] == "no-cache, private"


# -- protobuf ---------------------------------------------------------------------------------------------------


async def test_objects_and_errors_are_sent_as_protobuf(api: Api) -> None:
    config_map = await api.made(CONFIGS, config("a", {"x": "1"}))
    answer = await api.get(f"{CONFIGS}/a", PROTOBUF_MEDIA_TYPE)
    assert answer.headers["content-type"] == PROTOBUF_MEDIA_TYPE
    assert protobuf_envelope.decode(answer.body).value == config_map
    refused = await api.get(f"{CONFIGS}/none", PROTOBUF_MEDIA_TYPE)
    status = protobuf_envelope.decode(refused.body).value
    assert (refused.code, status["kind"], status["reason"], status["code"]) == (404, "Status", "NotFound", 404)


def items_of(body: bytes) -> list[bytes]:
    """Encoded items of a list in its protobuf envelope."""
    raw = next(value for number, _, value in split_fields(body[4:]) if number == 2)
    assert isinstance(raw, bytes)
    return [value for number, _, value in split_fields(raw) if number == 2 and isinstance(value, bytes)]


@pytest.mark.parametrize("kind", ["", ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"])
async def test_lists_are_sent_as_protobuf(api: Api, kind: str) -> None:
    for name in ("a", "b"):
        await api.made(CONFIGS, config(name, {"x": "1"}))
    answer = await api.get(CONFIGS, PROTOBUF_MEDIA_TYPE + kind)
    assert (answer.code, answer.headers["content-type"], answer.body[:4]) == (200, PROTOBUF_MEDIA_TYPE, b"k8s\0")
    expected = b"PartialObjectMetadataList" if kind else b"ConfigMapList"
    assert expected in answer.body[:60] and len(items_of(answer.body)) == 2
    assert (b"\x01x" in items_of(answer.body)[0]) == (not kind)  # full objects have data, partial ones only metadata


def frames(data: bytes) -> list[tuple[str, Any]]:
    """Events of a protobuf watch: their types, and the objects decoded from their envelopes."""
    events = []
    while data:
        (length,) = struct.unpack(">I", data[:4])
        event = {number: value for number, _, value in split_fields(data[4 : 4 + length])}
        raw = next(value for _, _, value in split_fields(event[2]))
        events.append((event[1].decode(), protobuf_envelope.decode(raw).value))
        data = data[4 + length :]
    return events


async def test_watch_events_are_sent_as_protobuf_frames(api: Api) -> None:
    await api.made(CONFIGS, config("a", {"x": "1"}))
    async with api.watch(f"{CONFIGS}?allowWatchBookmarks=true&timeoutSeconds=3600", PROTOBUF_MEDIA_TYPE) as watching:
        assert watching.headers["content-type"] == f"{PROTOBUF_MEDIA_TYPE};stream=watch"
        await api.delete(f"{CONFIGS}/a")
        await watching.until(lambda: len(frames(watching.data)) >= 2)
        events = frames(watching.data)
    assert [(kind, manifest["metadata"]["name"]) for kind, manifest in events[:2]] == [("ADDED", "a"), ("DELETED", "a")]
    assert events[0][1]["data"] == {"x": "1"}


async def test_watch_from_compacted_revision_ends_with_protobuf_error(api: Api) -> None:
    for name in ("a", "b"):
        await api.made(CONFIGS, config(name))
    await api.plane.store.compact(api.plane.store.revision)
    async with api.watch(f"{CONFIGS}?resourceVersion=1", PROTOBUF_MEDIA_TYPE) as watching:
        await watching.until(lambda: watching.ended)
    ((kind, status),) = frames(watching.data)
    assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")


async def test_watch_as_yaml_returns_406(api: Api) -> None:
    assert (await api.get(f"{CONFIGS}?watch=true", "application/yaml")).code == 406


async def test_custom_objects_are_not_sent_as_protobuf(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    await api.made(WIDGETS, widget("w"))
    assert (await api.get(f"{WIDGETS}/w", PROTOBUF_MEDIA_TYPE)).code == 406
    assert (await api.get(f"{WIDGETS}/w", f"{PROTOBUF_MEDIA_TYPE},application/json")).code == 200


async def test_protobuf_delete_options_of_the_resource_group_are_accepted(api: Api) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    await api.made(path, {"metadata": {"name": "l", "finalizers": ["a.b/c"]}})
    options = named("coordination.k8s.io/v1", "DeleteOptions", "") | {"propagationPolicy": "Orphan"}
    answer = await api.ask("DELETE", f"{path}/l", protobuf_envelope.encode(options), PROTOBUF_MEDIA_TYPE)
    assert answer.json["metadata"]["finalizers"] == ["a.b/c", "orphan"]


# -- discovery --------------------------------------------------------------------------------------------------


AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


@pytest.mark.parametrize("path", ["/api", "/apis"])
@pytest.mark.parametrize("version", ["v2", "v2beta1"])
async def test_aggregated_discovery_has_content_type_and_etag(api: Api, path: str, version: str) -> None:
    answer = await api.get(path, AGGREGATED.format(version))
    assert answer.headers["content-type"] == AGGREGATED.format(version)
    assert answer.json["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    again = await api.get(path, AGGREGATED.format(version), if_none_match=answer.headers["etag"])
    assert (again.code, again.body) == (304, b"")
    await api.made(DEFINITIONS, definition())
    changed = await api.get(path, AGGREGATED.format(version), if_none_match=answer.headers["etag"])
    assert changed.code == (304 if path == "/api" else 200)


async def test_legacy_discovery_documents_are_served(api: Api) -> None:
    paths = ("/api", "/apis", "/apis/apps", "/apis/apps/v1", "/api/v1")
    kinds = [(await api.get(path)).json["kind"] for path in paths]
    assert kinds == ["APIVersions", "APIGroupList", "APIGroup", "APIResourceList", "APIResourceList"]
    rows = {row["name"] for row in (await api.get("/apis/apps/v1")).json["resources"]}
    assert {"deployments", "deployments/scale", "deployments/status"} <= rows


async def test_custom_kind_is_in_discovery_and_openapi(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    for path in ("/apis/argosy.dev", "/apis/argosy.dev/v1", "/openapi/v3/apis/argosy.dev/v1"):
        assert b"idget" in (await api.get(path)).body or path == "/apis/argosy.dev"
        assert (await api.get(path)).code == 200
    groups = orjson.loads((await api.get("/apis", AGGREGATED.format("v2"))).body)["items"]
    own = next(group for group in groups if group["metadata"]["name"] == "argosy.dev")
    (resource,) = own["versions"][0]["resources"]
    assert {subresource["subresource"] for subresource in resource["subresources"]} == {"status", "scale"}


PLAIN = [("/healthz", b"ok"), ("/livez", b"ok"), ("/readyz", b"ok"), ("/readyz?verbose", b"readyz check passed\n")]


@pytest.mark.parametrize(("path", "end"), PLAIN)
async def test_health_endpoints_need_no_valid_token(api: Api, path: str, end: bytes) -> None:
    answer = await api.of("nobody").get(path)
    assert answer.code == 200 and answer.body.endswith(end)


@pytest.mark.parametrize("path", ["/", "/version", "/metrics", "/openapi/v3", "/openid/v1/jwks"])
async def test_non_resource_paths_are_served(api: Api, path: str) -> None:
    assert (await api.get(path)).code == 200


async def test_metrics_can_be_parsed_by_prometheus(api: Api) -> None:
    answer = await api.get("/metrics")
    assert answer.headers["content-type"] == CONTENT_TYPE
    series = prometheus_text.read(answer.body.decode())
    assert prometheus_text.one(series, "apiserver_storage_objects", resource="namespaces") > 0


@pytest.mark.parametrize("path", ["/nowhere", "/apis/nobody.dev/v1/things", "/api/v7/pods"])
async def test_unknown_paths_return_plain_text_404(api: Api, path: str) -> None:
    answer = await api.get(path)
    assert (answer.code, answer.body) == (404, b"404 page not found\n")
