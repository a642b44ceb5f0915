from __future__ import annotations

import pytest

from argosy.web.grpc.service_table import find_method, list_methods, list_services, load_table
from argosy.web.route import RouteTree
from support.page_site import a_site
from support.route_table import build_routes

SERVICES = {
    "account.AccountService", "application.ApplicationService", "applicationset.ApplicationSetService",
    "certificate.CertificateService", "cluster.ClusterService", "cluster.SettingsService", "gpgkey.GPGKeyService",
    "notification.NotificationService", "project.ProjectService", "repocreds.RepoCredsService",
    "repository.RepositoryService", "session.SessionService", "version.VersionService",
}  # fmt: skip


def test_all_services_of_the_argocd_api_are_in_the_table() -> None:
    assert list_services() == SERVICES
    assert load_table()["version"] == "v3.5.6"


def test_a_method_has_the_route_of_its_annotation() -> None:
    method = find_method("/application.ApplicationService/Create")
    assert method is not None
    assert [(binding.http_method, binding.path, binding.body) for binding in method.bindings] == [
        ("POST", "/api/v1/applications", "application")
    ]
    assert method.request.name == "application.ApplicationCreateRequest"
    assert method.response.name == "v1alpha1.Application"
    assert not method.is_client_stream and not method.is_server_stream


def test_streams_are_marked() -> None:
    streams = {path for path, method in list_methods().items() if method.is_server_stream}
    assert streams == {
        "/application.ApplicationService/Watch",
        "/application.ApplicationService/WatchResourceTree",
        "/application.ApplicationService/PodLogs",
        "/applicationset.ApplicationSetService/Watch",
    }
    assert [path for path, method in list_methods().items() if method.is_client_stream] == [
        "/application.ApplicationService/GetManifestsWithFiles"
    ]


@pytest.mark.parametrize("path", sorted(list_methods()))
def test_every_method_has_a_route_on_this_server(path: str) -> None:
    tree = RouteTree(build_routes(a_site()))
    method = list_methods()[path]
    for binding in method.bindings:
        match = tree.find(binding.http_method, binding.build_path(dict.fromkeys(binding.parameter_names, "x")))
        assert match is not None and match.route is not None, binding


def test_the_routes_of_a_method_differ_in_their_parameters_only() -> None:
    tree = RouteTree(build_routes(a_site()))
    for method in list_methods().values():
        paths = [
            (item.http_method, item.build_path(dict.fromkeys(item.parameter_names, "x"))) for item in method.bindings
        ]
        routes = [match.route for path in paths if (match := tree.find(*path)) and match.route]
        assert len({(type(route.access), route.is_mutating) for route in routes}) == 1, method.path


def test_an_unknown_method_is_not_found() -> None:
    assert find_method("/application.ApplicationService/Explode") is None
