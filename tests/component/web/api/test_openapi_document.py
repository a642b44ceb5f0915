"""The OpenAPI document contains every API route and no secret fields."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from argosy.web.api.openapi import build_openapi_document
from argosy.web.api.request_examples import EXAMPLES
from argosy.web.server_audit_counters_and_limits import SyncCounter
from support import prometheus_text
from support.page_site import CONTROL, KnownPeople, a_site, anything, on_a_socket
from support.route_table import ROUTE_TABLE

# The two responses that exist to return a token, and fields that are only sent.
HANDED_OUT = {("SessionResponse", "token"), ("TokenResponse", "token"), ("SessionRequest", "password"),
              ("PasswordRequest", "currentPassword"), ("PasswordRequest", "newPassword"),
              ("/api/v1/projects/{project}/roles/{role}/token", "token")}  # fmt: skip
# Public keys.
HANDED_OUT |= {("/api/v1/gpgkeys", "keyData"), ("/api/v1/gpgkeys/{keyID}", "keyData")}
SECRET_WORDS = ("password", "token", "privatekey", "secret", "bearer", "keydata", "hash", "credential")
DOCUMENT = build_openapi_document(ROUTE_TABLE, "argosy", "1.2.3")


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def test_document_contains_every_api_route() -> None:
    written = {(method.upper(), path) for method, path, _ in operations()}
    assert written == {(route.method, route.path.replace("*}", "}")) for route in ROUTE_TABLE if route.is_api}


def test_operation_ids_are_unique() -> None:
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(names) == len(set(names))


def test_every_operation_documents_its_errors_and_path_parameters() -> None:
    for _, path, operation in operations():
        assert {"200", "400", "401", "403"} <= set(operation["responses"])
        named = {parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"}
        assert named == {part[1:-1] for part in path.split("/") if part.startswith("{")}


def test_every_schema_reference_resolves() -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"].rpartition("/")[2]
            for child in value.values():
                yield from references(child)
        elif isinstance(value, list):
            for child in value:
                yield from references(child)

    assert set(references(DOCUMENT)) <= set(DOCUMENT["components"]["schemas"])


def test_schemas_have_no_secret_fields() -> None:
    def properties(name: str, value: Any) -> Iterator[tuple[str, str]]:
        if isinstance(value, dict):
            for inner, child in (value.get("properties") or {}).items():
                yield name, inner
                yield from properties(name, child)
            for child in value.values():
                yield from properties(name, child)

    shapes = dict(DOCUMENT["components"]["schemas"])
    for _, path, operation in operations():
        shapes[path] = operation["responses"]["200"]
    pairs = {pair for name, shape in shapes.items() for pair in properties(name, shape)}
    assert {pair for pair in pairs if any(word in pair[1].lower() for word in SECRET_WORDS)} <= HANDED_OUT


def application(name: str, project: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": CONTROL, "resourceVersion": "1", "uid": name}
    source = {"repoURL": "https://ann:hunter2hunter2@x/y", "path": "p"}
    spec = {"project": project, "source": source, "destination": {"namespace": "n", "server": "https://c"}}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}


@pytest.mark.anyio
async def test_metrics_contain_only_applications_that_the_caller_may_see() -> None:
    people = KnownPeople({"ann": anything, "cid": lambda resource, action, thing: thing.startswith("mine")})
    site = a_site([application("a", "default"), application("m", "mine")], people)
    async with on_a_socket(site) as (client, _):
        alone = (await asyncio.to_thread(client.bearer, "cid", "GET", "/metrics")).body.decode()
        whole = (await asyncio.to_thread(client.bearer, "ann", "GET", "/metrics")).body.decode()
        strange = await asyncio.to_thread(client.ask, "GET", "/metrics")
    assert ('name="m"' in alone, 'name="a"' in alone, 'name="a"' in whole) == (True, False, True)
    metric = 'argocd_app_info{namespace="argocd",name="m",project="mine",autosync_enabled="false",repo="https://x/y"'
    assert metric in alone
    assert "argocd_cluster_connection_status" in whole and "argocd_cluster_connection_status" not in alone
    assert 'argosy_http_requests_total{method="GET",route="/metrics",code="200"} 1' in whole
    assert strange.code == 401
    assert prometheus_text.read(whole)


def test_sync_counter_counts_a_finished_operation_once() -> None:
    syncs, app = SyncCounter(), application("a", "default")
    app["status"] = {"operationState": {"phase": "Failed", "finishedAt": "2026-01-01T00:00:00Z", "operation": {}}}
    assert syncs.count_syncs([app]) == []  # finished before the first count
    app["status"]["operationState"] |= {"phase": "Succeeded", "finishedAt": "2026-01-01T00:00:09Z"}
    for _ in range(2):
        (sample,) = syncs.count_syncs([app])
    labels = sample.labels
    assert (labels["phase"], labels["dry_run"], labels["dest_server"]) == ("Succeeded", "false", "https://c")
    assert sample.value == 1


@pytest.mark.anyio
async def test_document_is_served_at_the_paths_of_argo_cd_and_as_a_page() -> None:
    async with on_a_socket(a_site()) as (client, _):
        for path in ("/swagger.json", "/api/openapi.json"):
            assert (await asyncio.to_thread(client.bearer, "ann", "GET", path)).json()["openapi"] == "3.1.0"
        page = await asyncio.to_thread(client.bearer, "ann", "GET", "/api/docs")
    assert (page.code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    text = page.body.decode()
    assert "/api/v1/applications" in text
    assert "syncOptions.items" in text and "resources[].kind" in text and "ApplyOutOfSyncOnly=true" in text


def test_every_operation_with_a_body_has_a_valid_example() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    for method, path, operation in operations():
        sent = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if sent is None or operation["summary"].startswith(("Not built", "Not supported", "Refused")):
            continue
        schema = {**sent["schema"], "components": DOCUMENT["components"]}
        assert "example" in sent or not sent["schema"], f"{method} {path}: add one to api/examples.py"
        jsonschema.validate(sent.get("example"), schema)
    unknown = set(EXAMPLES) - {f"{method.upper()} {path}" for method, path, _ in operations()}
    assert not unknown
