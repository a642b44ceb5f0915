from __future__ import annotations

from typing import Any

import orjson
import pytest

from argosy.errors import UserError
from argosy.web.grpc.call_status import CallError
from argosy.web.grpc.rest_requests import MAX_PARAMETER_BYTES, MAX_PARAMETERS, RestRequest, build_rest_request
from argosy.web.grpc.service_table import find_method
from argosy.web.route import RouteTree
from support.page_site import a_site
from support.route_table import build_routes


def build(path: str, message: dict[str, Any]) -> RestRequest:
    method = find_method(path)
    assert method is not None
    return build_rest_request(method, message)


def refuse(path: str, message: dict[str, Any]) -> tuple[int, str]:
    with pytest.raises(CallError) as raised:
        build(path, message)
    return raised.value.status.code, raised.value.status.message


def test_a_query_has_the_fields_that_the_path_does_not_have() -> None:
    message = {"name": "a", "projects": ["x", "y"], "refresh": "hard", "appNamespace": ""}
    request = build("/application.ApplicationService/Get", message)
    assert (request.http_method, request.raw_path, request.body) == ("GET", "/api/v1/applications/a", b"")
    assert [*request.parameters] == [("projects", "x"), ("projects", "y"), ("refresh", "hard")]


def test_false_is_not_the_same_as_absent() -> None:
    request = build("/application.ApplicationService/Delete", {"name": "a", "cascade": False})
    assert (request.http_method, request.parameters) == ("DELETE", (("cascade", "false"),))


def test_a_body_may_be_one_field_the_others_are_parameters() -> None:
    message = {"application": {"metadata": {"name": "a"}}, "upsert": True}
    request = build("/application.ApplicationService/Create", message)
    assert (request.raw_path, request.parameters) == ("/api/v1/applications", (("upsert", "true"),))
    assert orjson.loads(request.body) == {"metadata": {"name": "a"}}


def test_a_path_parameter_may_be_a_nested_field() -> None:
    message = {"application": {"metadata": {"name": "a"}}, "validate": False}
    request = build("/application.ApplicationService/Update", message)
    assert (request.raw_path, request.parameters) == ("/api/v1/applications/a", (("validate", "false"),))


def test_a_body_may_be_the_whole_message() -> None:
    message = {"name": "a", "revisions": ["main"], "prune": True}
    request = build("/application.ApplicationService/Sync", message)
    assert (request.raw_path, request.parameters) == ("/api/v1/applications/a/sync", ())
    assert orjson.loads(request.body) == message


def test_a_body_may_be_a_text() -> None:
    message = {"name": "a", "kind": "Pod", "patch": '{"a": 1}', "patchType": "merge"}
    request = build("/application.ApplicationService/PatchResource", message)
    assert orjson.loads(request.body) == '{"a": 1}'
    assert [*request.parameters] == [("kind", "Pod"), ("patchType", "merge")]


def test_logs_without_a_pod_use_the_second_route() -> None:
    path = "/application.ApplicationService/PodLogs"
    assert build(path, {"name": "a", "podName": "p"}).raw_path == "/api/v1/applications/a/pods/p/logs"
    assert build(path, {"name": "a", "podName": ""}).raw_path == "/api/v1/applications/a/logs"


@pytest.mark.parametrize(("message", "path", "id_type"), [
    ({"id": {"type": "name", "value": "a b"}}, "/api/v1/clusters/a%20b", "name"),
    ({"id": {"type": "name", "value": "a%20b+c"}}, "/api/v1/clusters/a%20b%20c", "name"),
    ({"id": {"type": "name_escaped", "value": "a%252Fb"}}, "/api/v1/clusters/a%252Fb", "name_escaped"),
    ({"server": "https://h:1"}, "/api/v1/clusters/https%3A%2F%2Fh%3A1", "server"),
    ({"name": "in-cluster"}, "/api/v1/clusters/in-cluster", "name"),
])  # fmt: skip
def test_a_cluster_is_named_by_id_server_or_name(message: dict[str, Any], path: str, id_type: str) -> None:
    request = build("/cluster.ClusterService/Get", message)
    assert request.raw_path == path
    assert ("id.type", id_type) in request.parameters


def test_a_list_of_clusters_keeps_the_id_that_its_route_reads() -> None:
    message = {"server": "https://h:1", "name": "", "id": {"type": "name_escaped", "value": "a%20b"}}
    assert build("/cluster.ClusterService/List", message).parameters == (
        ("server", "https://h:1"), ("id.type", "name_escaped"), ("id.value", "a%20b"),
    )  # fmt: skip
    assert build("/cluster.ClusterService/List", {"server": "https://h:1"}).parameters == (("server", "https://h:1"),)


def test_an_invalid_escape_is_refused() -> None:
    with pytest.raises(UserError, match="invalid escape"):
        build("/cluster.ClusterService/Get", {"id": {"type": "name", "value": "100%"}})


def test_an_updated_cluster_is_named_by_its_own_server() -> None:
    message = {"cluster": {"server": "https://h", "name": "x"}, "updatedFields": ["name"]}
    request = build("/cluster.ClusterService/Update", message)
    assert request.raw_path == "/api/v1/clusters/https%3A%2F%2Fh"
    assert ("updatedFields", "name") in [*request.parameters]


def test_a_server_side_diff_names_live_objects_without_their_states() -> None:
    live = {"kind": "Pod", "namespace": "ml", "name": "p", "liveState": "x" * 1000}
    message = {"appName": "a", "liveResources": [live], "targetManifests": ['{"kind":"Pod"}', ""]}
    parameters = build("/application.ApplicationService/ServerSideDiff", message).parameters
    name = {"group": "", "kind": "Pod", "namespace": "ml", "name": "p"}
    assert [(key, text) for key, text in parameters if key == "targetManifests"] == [
        ("targetManifests", '{"kind":"Pod"}'), ("targetManifests", ""),
    ]  # fmt: skip
    assert [orjson.loads(text) for key, text in parameters if key == "liveResources"] == [name]


def test_a_missing_path_parameter_is_an_invalid_argument() -> None:
    assert refuse("/application.ApplicationService/Get", {}) == (3, "name is required")
    assert refuse("/cluster.ClusterService/Delete", {}) == (3, "id.value is required")


@pytest.mark.parametrize(
    "name", ["../projects", "a/../../b", "..", "a?x=1", "a#b", "a%2fb", "a\nb", "a\0b", "a b", "ä"]
)
def test_a_parameter_stays_one_segment_of_the_path(name: str) -> None:
    request = build("/application.ApplicationService/Get", {"name": name})
    match = RouteTree(build_routes(a_site())).find("GET", request.raw_path, accepts_any_name=True)
    assert match is not None and match.route is not None
    assert match.route.path == "/api/v1/applications/{name}"
    assert match.values == {"name": name}


def test_a_wildcard_keeps_its_slashes() -> None:
    message = {"resource": "applications", "action": "get", "subresource": "*/*"}
    request = build("/account.AccountService/CanI", message)
    assert request.raw_path == "/api/v1/account/can-i/applications/get/%2A/%2A"


def test_parameters_are_limited_in_size_and_in_number() -> None:
    message = {"repo": "https://h/a.git", "sshPrivateKey": "x" * MAX_PARAMETER_BYTES}
    assert refuse("/repository.RepositoryService/ValidateAccess", message)[0] == 8
    key = build("/repository.RepositoryService/ValidateAccess", {**message, "sshPrivateKey": "k\n" * 2000})
    assert dict(key.parameters)["sshPrivateKey"] == "k\n" * 2000
    assert orjson.loads(key.body) == "https://h/a.git"
    projects = ["p"] * MAX_PARAMETERS
    assert len(build("/application.ApplicationService/List", {"projects": projects}).parameters) == MAX_PARAMETERS
    assert refuse("/application.ApplicationService/List", {"projects": [*projects, "p"]})[0] == 8
