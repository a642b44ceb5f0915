"""Writes to the API server: create, update, patch, dry run, field validation, generation and status."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.sandbox.apiserver import metadata
from support.api_client import (
    CONFIGS,
    DEFINITIONS,
    JSON_PATCH,
    MERGE,
    WIDGETS,
    Api,
    config,
    definition,
    deployment,
    named,
    version,
    widget,
)

pytestmark = pytest.mark.anyio
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
NO_NAME = "the name of the object (a based on URL) was undeterminable: name must be provided"
NO_VERSION = 'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be '


# -- create -----------------------------------------------------------------------------------------------


REFUSED_CREATES = [
    ({"metadata": {}}, 422, 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'),
    ({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "b"}}, 400, "converting (v1.Secret) to"),
    ({"kind": "ConfigMap", "apiVersion": "v2", "metadata": {"name": "b"}}, 400, 'no kind "ConfigMap" is registered'),
    (config("b", namespace="other"), 400, "the namespace of the provided object does not match"),
    (config("b", resourceVersion="5"), 500, "resourceVersion should not be set on objects to be created"),
    (config("Bad_Name"), 422, "a lowercase RFC 1123 subdomain must consist of"),
    (config("a" * 254), 422, "must be no more than 253 characters"),
    (config("b", finalizers=["bad"]), 422, "name is neither a standard finalizer name nor is it fully qualified"),
    (config("b", labels={"a": "x" * 64}), 422, "must be no more than 63"),
    (config("b", annotations={"a": "x" * 300_000}), 422, "metadata.annotations: Too long"),
    (config("b", ownerReferences=[{"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "u"}]), 422, "disallowed"),
    ([], 400, "no object"),
]


@pytest.mark.parametrize(("body", "code", "words"), REFUSED_CREATES)
async def test_invalid_create_is_rejected_and_stores_nothing(api: Api, body: Any, code: int, words: str) -> None:
    before = api.plane.store.revision
    answer = await api.post(CONFIGS, body)
    assert (answer.code, words in answer.message) == (code, True), answer.body
    assert api.plane.store.revision == before


async def test_built_in_object_may_omit_kind_and_api_version(api: Api) -> None:
    config_map = await api.made(CONFIGS, {"metadata": {"name": "a"}})
    assert (config_map["kind"], config_map["apiVersion"]) == ("ConfigMap", "v1")


async def test_custom_object_without_kind_is_rejected(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    assert (await api.post(WIDGETS, {"metadata": {"name": "w"}, "spec": {}})).code == 400


async def test_server_sets_uid_and_creation_timestamp_on_create(api: Api) -> None:
    sent = config("a", uid="mine", creationTimestamp="2001-01-01T00:00:00Z", selfLink="/x", generation=7)
    sent["metadata"]["deletionTimestamp"] = "2001-01-01T00:00:00Z"
    about = (await api.made(CONFIGS, sent))["metadata"]
    assert about["uid"] != "mine" and not about["creationTimestamp"].startswith("2001")
    assert "selfLink" not in about and "deletionTimestamp" not in about
    assert about["generation"] == 7  # k8s: kept on kinds that do not count generations


async def test_generate_name_retries_on_conflict(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["x-1", "x-1", "x-2"])
    monkeypatch.setattr(metadata, "generate_name", lambda prefix: next(names))
    config_maps = [await api.made(CONFIGS, {"metadata": {"generateName": "x-"}}) for _ in range(2)]
    assert [manifest["metadata"]["name"] for manifest in config_maps] == ["x-1", "x-2"]


async def test_long_generate_name_prefix_is_truncated(api: Api) -> None:
    config_map = await api.made(CONFIGS, {"metadata": {"generateName": "p" * 80}})
    name = config_map["metadata"]["name"]
    assert len(name) == 63 and name.startswith("p" * 58)
    assert set(name[58:]) <= set("bcdfghjklmnpqrstvwxz2456789")


async def test_create_in_missing_or_terminating_namespace_is_rejected(api: Api) -> None:
    missing = await api.post("/api/v1/namespaces/nope/configmaps", config("a"))
    assert (missing.code, missing.message) == (404, 'namespaces "nope" not found')
    held = named("v1", "Namespace", "held")
    await api.made("/api/v1/namespaces", held)
    await api.made("/api/v1/namespaces/held/configmaps", config("a", finalizers=["a.b/c"]))
    await api.delete("/api/v1/namespaces/held")
    going = await api.post("/api/v1/namespaces/held/configmaps", config("b"))
    assert going.code == 403 and going.json["details"]["causes"][0]["reason"] == "NamespaceTerminating"


async def test_annotation_named_deletion_timestamp_does_not_block_creates(api: Api) -> None:
    about = {"name": "odd", "annotations": {"deletionTimestamp": "never"}}
    await api.made("/api/v1/namespaces", {"metadata": about})
    assert (await api.post("/api/v1/namespaces/odd/configmaps", config("a"))).code == 201


SCOPES = [
    ("POST", "/api/v1/configmaps", 405),
    ("POST", "/api/v1/namespaces/default/nodes", 404),
    ("GET", "/api/v1/configmaps/a", 404),
    ("GET", "/api/v1/namespaces/default/nodes", 404),
    ("GET", "/api/v1/namespaces/default/nodes/x", 404),
    ("PUT", "/api/v1/configmaps/a", 404),
    ("DELETE", "/api/v1/namespaces/default/nodes/x", 404),
    ("POST", f"{CONFIGS}/a", 405),
    ("PUT", CONFIGS, 405),
    ("PATCH", CONFIGS, 405),
    ("GET", f"{CONFIGS}/a/status", 404),
    ("GET", f"{CONFIGS}/..", 404),
    ("GET", f"{CONFIGS}/a%00b", 404),
    ("GET", "/api/v1/namespaces/default/bogus", 404),
]


@pytest.mark.parametrize(("method", "path", "code"), SCOPES)
async def test_requests_outside_a_kinds_scope_are_rejected(api: Api, method: str, path: str, code: int) -> None:
    await api.made(CONFIGS, config("a"))
    assert (await api.ask(method, path, config("a"), "application/json")).code == code


async def test_cluster_scoped_custom_kind_returns_404_below_a_namespace(api: Api) -> None:
    await api.made(DEFINITIONS, definition(scope="Cluster"))
    await api.made("/apis/argosy.dev/v1/widgets", widget("w"))
    for path in (WIDGETS, f"{WIDGETS}/w"):
        assert (await api.get(path)).code == 404


# -- update -----------------------------------------------------------------------------------------------


REFUSED_UPDATES = [
    ("PUT", {"data": {"x": "2"}}, 400, NO_NAME),
    ("PUT", config("b"), 400, "the name of the object (b) does not match the name on the URL (a)"),
    ("PUT", config("a", namespace="zz"), 400, "the namespace of the provided object does not match"),
    ("PUT", config("a", resourceVersion="abc"), 500, 'strconv.ParseUint: parsing "abc": invalid syntax'),
    ("PUT", config("a", resourceVersion="1"), 409, "the object has been modified"),
    ("PUT", config("a", uid="zzz"), 409, "Precondition failed: UID in precondition: zzz, UID in object meta: "),
    ("PATCH", {"metadata": {"uid": "zzz"}}, 422, 'metadata.uid: Invalid value: "zzz": field is immutable'),
    ("PATCH", {"metadata": {"resourceVersion": "1"}}, 409, "the object has been modified"),
    ("PATCH", {"metadata": {"resourceVersion": "abc"}}, 500, 'strconv.ParseUint: parsing "abc": invalid syntax'),
    ("PATCH", {"metadata": {"name": "other"}}, 400, "does not match the name on the URL (a)"),
    ("PATCH", {"metadata": {"namespace": "other"}}, 400, "does not match the namespace sent on the request"),
    ("PATCH", {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}, 422, "metadata.deletionTimestamp: Invalid"),
    ("PATCH", {"metadata": {"deletionGracePeriodSeconds": 5}}, 422, "metadata.deletionGracePeriodSeconds: Invalid"),
    ("PATCH", {"metadata": None}, 400, NO_NAME),
    ("PATCH", {"kind": "Secret"}, 422, "unknown conversion"),
]


@pytest.mark.parametrize(("method", "body", "code", "words"), REFUSED_UPDATES)
async def test_invalid_update_is_rejected_and_changes_nothing(
    api: Api, method: str, body: Any, code: int, words: str
) -> None:
    config_map = await api.made(CONFIGS, config("a", {"x": "1"}))
    answer = await api.ask(method, f"{CONFIGS}/a", body, MERGE if method == "PATCH" else "application/json")
    assert (answer.code, words in answer.message) == (code, True), answer.body
    assert (await api.get(f"{CONFIGS}/a")).json == config_map


KEPT = [
    ({"creationTimestamp": "2001-01-01T00:00:00Z"}, "creationTimestamp"),
    ({"generation": 9}, "generation"),
    ({"selfLink": "/x"}, "selfLink"),
]


@pytest.mark.parametrize(("change", "field"), KEPT)
async def test_patch_does_not_change_server_set_metadata(api: Api, change: dict[str, Any], field: str) -> None:
    config_map = await api.made(CONFIGS, config("a"))
    answer = await api.patch(f"{CONFIGS}/a", {"metadata": change})
    assert answer.code == 200 and answer.json["metadata"].get(field) == config_map["metadata"].get(field)


@pytest.mark.parametrize("resource_version", ["", "0"])
async def test_config_map_put_does_not_require_a_resource_version(api: Api, resource_version: str) -> None:
    await api.made(CONFIGS, config("a", {"x": "1"}))
    answer = await api.put(f"{CONFIGS}/a", config("a", {"x": "2"}, resourceVersion=resource_version))
    assert (answer.code, answer.json["data"]) == (200, {"x": "2"})


UNSAID = [
    ("PUT", named("coordination.k8s.io/v1", "Lease", "l"), "application/json"),
    ("PUT", {"metadata": {"name": "l", "resourceVersion": "0"}}, "application/json"),
    ("PATCH", {"metadata": {"resourceVersion": None}}, MERGE),
]


@pytest.mark.parametrize(("method", "body", "media"), UNSAID)
async def test_lease_update_requires_a_resource_version(api: Api, method: str, body: Any, media: str) -> None:
    await api.made(LEASES, named("coordination.k8s.io/v1", "Lease", "l", spec={"holderIdentity": "a"}))
    answer = await api.ask(method, f"{LEASES}/l", body, media)
    assert answer.code == 422 and answer.message.startswith(NO_VERSION)


async def test_patch_without_resource_version_is_accepted(api: Api) -> None:
    await api.made(LEASES, named("coordination.k8s.io/v1", "Lease", "l", spec={"holderIdentity": "a"}))
    assert (await api.patch(f"{LEASES}/l", {"spec": {"holderIdentity": "b"}})).code == 200
    await api.made(DEFINITIONS, definition())
    await api.made(WIDGETS, widget("w"))
    assert (await api.patch(f"{WIDGETS}/w", {"spec": {"size": 3}})).code == 200


NO_CHANGES = [
    ("PUT", config("a", {"x": "1"}, labels={"l": "1"}), "application/json"),
    ("PATCH", {"data": {"x": "1"}}, MERGE),
    ("PATCH", {"metadata": {"labels": {"l": "1", "absent": None}}}, MERGE),
    ("PATCH", [{"op": "test", "path": "/data/x", "value": "1"}], JSON_PATCH),
]


@pytest.mark.parametrize(("method", "body", "media"), NO_CHANGES)
async def test_no_op_update_does_not_write_to_the_store(api: Api, method: str, body: Any, media: str) -> None:
    config_map = await api.made(CONFIGS, config("a", {"x": "1"}, labels={"l": "1"}))
    before = api.plane.store.revision
    answer = await api.ask(method, f"{CONFIGS}/a", body, media, user_agent="someone-else/1")
    assert (answer.code, answer.json) == (200, config_map)
    assert api.plane.store.revision == before


DRY = [
    ("POST", CONFIGS, config("new"), "application/json", 201),
    ("PUT", f"{CONFIGS}/a", config("a", {"x": "2"}), "application/json", 200),
    ("PATCH", f"{CONFIGS}/a", {"data": {"x": "2"}}, MERGE, 200),
    ("PATCH", f"{CONFIGS}/a", [{"op": "remove", "path": "/data/x"}], JSON_PATCH, 200),
    ("DELETE", f"{CONFIGS}/a", None, "application/json", 200),
    ("DELETE", CONFIGS, None, "application/json", 200),
]


@pytest.mark.parametrize(("method", "path", "body", "media", "code"), DRY)
async def test_dry_run_returns_the_result_and_stores_nothing(
    api: Api, method: str, path: str, body: Any, media: str, code: int
) -> None:
    config_map = await api.made(CONFIGS, config("a", {"x": "1"}))
    before = api.plane.store.revision
    answer = await api.ask(method, f"{path}?dryRun=All", body, media)
    assert answer.code == code
    assert api.plane.store.revision == before and (await api.get(f"{CONFIGS}/a")).json == config_map
    if method == "POST":
        assert answer.json["metadata"]["uid"] and "resourceVersion" not in answer.json["metadata"]
    assert (await api.ask(method, f"{path}?dryRun=Some", body, media)).code == 422


VALIDATION = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"s"},"data":{"a":"1","a":"2"},"zz":1}'


MODES = [("Ignore", 201, 0), ("Warn", 201, 1), ("", 201, 1), ("Strict", 400, 0)]


@pytest.mark.parametrize(("mode", "code", "warned"), MODES)
async def test_unknown_fields_follow_the_field_validation_mode(api: Api, mode: str, code: int, warned: int) -> None:
    answer = await api.ask("POST", f"{CONFIGS}?fieldValidation={mode}", VALIDATION, "application/json")
    assert (answer.code, "warning" in answer.headers) == (code, bool(warned))
    if code == 201:
        assert answer.json["data"] == {"a": "2"} and "zz" not in answer.json


# -- generation, status ---------------------------------------------------------------------------------------------


async def test_generation_increments_only_on_spec_changes(api: Api) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    generations = [(await api.made(path, deployment("d")))["metadata"]["generation"]]
    for part, change in (
        ("", {"metadata": {"labels": {"a": "b"}}}),
        ("", {"spec": {"replicas": 3}}),
        ("", {"status": {"replicas": 9}}),
        ("/status", {"status": {"replicas": 9}}),
        ("", {"spec": {"replicas": 3}}),
    ):
        answer = await api.patch(f"{path}/d{part}", change)
        generations.append(answer.json["metadata"]["generation"])
    assert generations == [1, 1, 2, 2, 2, 2]


async def test_status_subresource_of_custom_object_changes_only_status(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    created = await api.made(WIDGETS, {**widget("w", size=1), "status": {"lost": True}})
    assert "status" not in created
    change = {"spec": {"size": 9}, "metadata": {"labels": {"a": "b"}}, "status": {"size": 5}}
    changed = (await api.patch(f"{WIDGETS}/w/status", change, user_agent="reporter/1")).json
    assert changed["spec"] == created["spec"] and "labels" not in changed["metadata"]
    assert changed["status"] == {"size": 5} and changed["metadata"]["generation"] == 1
    parts = {(entry["manager"], entry.get("subresource", "")) for entry in changed["metadata"]["managedFields"]}
    assert ("reporter", "status") in parts
    patched = (await api.patch(f"{WIDGETS}/w", {"status": {"size": 6}, "spec": {"size": 2}})).json
    assert patched["status"] == {"size": 5} and patched["spec"]["size"] == 2 and patched["metadata"]["generation"] == 2


async def test_generation_counts_status_changes_without_a_status_subresource(api: Api) -> None:
    await api.made(DEFINITIONS, definition(version()))
    await api.made(WIDGETS, widget("w", size=1))
    assert (await api.patch(f"{WIDGETS}/w", {"status": {"a": 1}})).json["metadata"]["generation"] == 2
    assert (await api.patch(f"{WIDGETS}/w", {"metadata": {"labels": {"a": "b"}}})).json["metadata"]["generation"] == 2
    assert (await api.patch(f"{WIDGETS}/w/status", {})).code == 404
