"""Invalid patches, subresource bodies, delete options and CRDs get a Status with the right code and change nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.clusters import Sandbox, configmap
from support.http_attacks import APPLY, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, copies

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
BASE = f"{CONFIGMAPS}/base"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
WEB = {
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}


@pytest.fixture(scope="module")
def furnished(shared: Sandbox) -> Sandbox:
    assert shared.request("POST", CONFIGMAPS, configmap("base", {"a": "1"})).code == 201
    assert shared.request("POST", DEPLOYMENTS, WEB).code == 201
    return shared


@pytest.fixture(autouse=True)
def goes_on(furnished: Sandbox) -> Iterator[None]:
    already = len(furnished.log())
    yield
    assert furnished.request("GET", BASE).json()["data"] == {"a": "1"}
    assert furnished.log()[already:] == ""


def send(server: Sandbox, path: str, body: bytes, media: str, *codes: int, method: str = "PATCH") -> dict[str, Any]:
    answer = server.request(method, path, body, media)
    status: dict[str, Any] = answer.json()
    assert answer.code in codes, status
    assert (status["kind"], status["code"]) == ("Status", answer.code)
    return status


JSON_PATCHES = [
    ('[{"op":"x"}]', 422), ('[{"op":"add","path":5,"value":1}]', 400), ("[1]", 400), ('[{}]', 422),
    ('[{"op":"remove","path":""}]', 422), ('[{"op":"replace","path":"","value":5}]', 422),
    ('[{"op":"add","path":"/data/-/x","value":1}]', 422), ('[{"op":"test","path":"/data/zz","value":1}]', 422),
    ('[{"op":"move","from":"/data","path":"/data/a"}]', 422),
    ('[{"op":"add","path":"no-slash","value":1}]', 422),
    ('[{"op":"add","path":"/metadata/finalizers/99999999999999999999","value":"x"}]', 422),
    ('[{"op":"add","path":"' + "/a" * 100_000 + '","value":1}]', 422),
    ('[{"op":"add","path":"/data/b","value":5}]', 400),
]  # fmt: skip


@pytest.mark.parametrize(("patch", "code"), JSON_PATCHES, ids=lambda value: str(value)[:40])
def test_invalid_json_patch_is_refused(furnished: Sandbox, patch: str, code: int) -> None:
    send(furnished, BASE, patch.encode(), JSON_PATCH, code, 400, 422)


def test_json_patch_of_more_than_10_000_operations_returns_413(furnished: Sandbox) -> None:
    step = {"op": "test", "path": "/kind", "value": "ConfigMap"}
    assert send(furnished, BASE, json.dumps([step] * 10_001).encode(), JSON_PATCH, 413)["code"] == 413


def test_json_patch_that_doubles_a_value_40_times_is_refused(furnished: Sandbox) -> None:
    before = furnished.memory()
    send(furnished, BASE, copies(40), JSON_PATCH, 422)
    assert furnished.memory() - before < 256 << 20, "forty times are a petabyte"


NO_OBJECTS = ["[]", "5", '"x"', '{"metadata":5}', '{"data":[]}', '{"data":5}', '{"metadata":{"managedFields":5}}']


@pytest.mark.parametrize("patch", NO_OBJECTS)
@pytest.mark.parametrize("media", [MERGE_PATCH, STRATEGIC_PATCH, APPLY])
def test_patch_that_yields_no_valid_configmap_is_refused(furnished: Sandbox, patch: str, media: str) -> None:
    query = "?fieldManager=m" if media == APPLY else ""
    send(furnished, BASE + query, patch.encode(), media, 400, 422, 500 if media == APPLY else 400)


@pytest.mark.parametrize("media", [MERGE_PATCH, STRATEGIC_PATCH])
@pytest.mark.parametrize(
    ("patch", "codes"),
    [('{"metadata":{"name":"other"}}', (400, 422)), ('{"metadata":{"resourceVersion":"x"}}', (409, 422, 500)),
     ('{"metadata":{"uid":"x"}}', (409, 422)), ('{"apiVersion":"v2"}', (400, 422)), ('{"kind":"Secret"}', (400, 422)),
     ('{"metadata":{"namespace":"other"}}', (400, 422))],
)  # fmt: skip
def test_patch_cannot_change_the_identity_of_an_object(
    furnished: Sandbox, patch: str, codes: tuple[int, ...], media: str
) -> None:
    send(furnished, BASE, patch.encode(), media, *codes)


CONTAINERS: list[Any] = [
    [5], [None], {"a": 1}, [{"image": "no name"}], [{"name": {"a": 1}}], [{"name": "c", "$patch": "nonsense"}],
    [{"$patch": "delete"}], [[]], "text",
]  # fmt: skip


@pytest.mark.parametrize("containers", CONTAINERS, ids=str)
def test_strategic_patch_with_invalid_containers_is_refused(furnished: Sandbox, containers: Any) -> None:
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    send(furnished, f"{DEPLOYMENTS}/web", json.dumps(patch).encode(), STRATEGIC_PATCH, 400, 422, 500)


DIRECTIVES: list[dict[str, Any]] = [
    {"$patch": "nonsense"}, {"$patch": 5}, {"spec": {"$patch": "delete"}}, {"metadata": {"$retainKeys": 5}},
    {"spec": {"template": {"spec": {"$setElementOrder/containers": 5}}}},
    {"spec": {"template": {"spec": {"$deleteFromPrimitiveList/containers": ["x"]}}}},
    {"metadata": {"$deleteFromPrimitiveList/finalizers": 5}}, {"$setElementOrder/": []}, {"$retainKeys": ["a", 5]},
]  # fmt: skip


@pytest.mark.parametrize("patch", DIRECTIVES, ids=str)
def test_invalid_strategic_patch_directive_causes_no_internal_error(furnished: Sandbox, patch: dict[str, Any]) -> None:
    answer = furnished.request("PATCH", f"{DEPLOYMENTS}/web?dryRun=All", patch, STRATEGIC_PATCH)
    assert answer.code in (200, 400, 422, 500), answer.body
    assert b"internal error" not in answer.body
    assert answer.json()["kind"] in ("Deployment", "Status")


SIDE_BODIES = [
    ("POST", "/api/v1/namespaces/default/pods/p/binding", {"target": 5}),
    ("POST", "/api/v1/namespaces/default/pods/p/binding", []),
    ("POST", "/api/v1/namespaces/default/bindings", {"metadata": 5}),
    ("POST", "/api/v1/namespaces/default/pods/p/eviction", {"deleteOptions": {"gracePeriodSeconds": "x"}}),
    ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": 5}),
    ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {"expirationSeconds": "x"}}),
    ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {"audiences": 5}}),
    ("PUT", f"{DEPLOYMENTS}/web/scale", {"spec": 5}),
    ("PUT", f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": "x"}}),
    ("PUT", f"{DEPLOYMENTS}/web/scale", {"metadata": 5}),
    ("PUT", "/api/v1/namespaces/default/finalize", {"spec": {"finalizers": 5}}),
    ("PUT", "/api/v1/namespaces/default/finalize", []),
    ("DELETE", f"{CONFIGMAPS}/base", {"gracePeriodSeconds": "x"}),
    ("DELETE", f"{CONFIGMAPS}/base", {"preconditions": 5}),
    ("DELETE", f"{CONFIGMAPS}/base", {"dryRun": {}}),
    ("DELETE", f"{CONFIGMAPS}/base", [1]),
    ("DELETE", f"{CONFIGMAPS}/base", {"propagationPolicy": "Nonsense"}),
    ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": 5}),
    ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"groups": 5}}),
    ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": 5}}),
]


@pytest.mark.parametrize(("method", "path", "body"), SIDE_BODIES, ids=lambda value: str(value)[:60])
def test_malformed_subresource_delete_and_review_bodies_are_refused(
    furnished: Sandbox, method: str, path: str, body: Any
) -> None:
    send(furnished, path, json.dumps(body).encode(), JSON, 400, 422, method=method)


@pytest.mark.parametrize("patch", [{"spec": 5}, {"spec": {"replicas": "x"}}, {"metadata": 5}])
@pytest.mark.parametrize("media", [MERGE_PATCH, STRATEGIC_PATCH])
def test_malformed_scale_patch_is_refused(furnished: Sandbox, patch: Any, media: str) -> None:
    send(furnished, f"{DEPLOYMENTS}/web/scale", json.dumps(patch).encode(), media, 400, 422)


SCHEMAS: list[Any] = [
    5, {"type": "object", "properties": 5}, {"type": "object", "properties": {"a": None}}, {"$ref": "#"},
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}},
    {"type": "object", "x-kubernetes-validations": [{"rule": "self.("}]}, {"type": "object", "enum": {}},
    {"type": "object", "x-kubernetes-validations": 5}, {"type": "nonsense"}, {},
    {"type": "object", "properties": {"a": {"type": "string", "default": 5}}},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_crd_with_an_invalid_schema_is_refused(furnished: Sandbox, schema: Any) -> None:
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    names = {"kind": "X", "plural": "xs"}
    spec = {"group": "e.com", "scope": "Namespaced", "names": names, "versions": versions}
    body = {"metadata": {"name": "xs.e.com"}, "spec": spec}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    send(furnished, path, json.dumps(body).encode(), JSON, 400, 422, method="POST")
