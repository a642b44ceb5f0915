"""Application summary: container images and external URLs of the live objects."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.status.summary import build_summary, is_safe_url, list_external_urls, list_pod_images
from argosy.kube.resource_key import ResourceKey

LINK = "link.argocd.argoproj.io/docs"


def manifest(api_version: str, kind: str, annotations: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "annotations": annotations}, **fields}


def ingress(*rules: dict[str, Any], annotations: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    spec = {"rules": list(rules), "tls": fields.pop("tls", None)}
    return manifest("networking.k8s.io/v1", "Ingress", annotations, spec=spec, **fields)


def rule(*paths: str, host: str = "") -> dict[str, Any]:
    return {"host": host, "http": {"paths": [{"path": path} for path in paths]}}


BALANCED = {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}


@pytest.mark.parametrize(
    ("live", "urls"),
    [
        (ingress(rule("/", host="a.example")), ["http://a.example/"]),
        (ingress(rule("/*", "/b", host="a.example")), ["http://a.example/", "http://a.example/b"]),
        (ingress(rule("/", host="a.example"), tls=[{"hosts": ["a.example"]}]), ["https://a.example/"]),
        (ingress(rule("/", host="a.example"), tls=[{"hosts": ["b.example"]}]), ["http://a.example/"]),
        (ingress(rule("/", host="a.example"), tls=[{"secretName": "s"}]), ["https://a.example/"]),
        (ingress(rule("/"), status=BALANCED), ["http://10.0.0.1/"]),
        (ingress(rule("/")), []),
        (ingress(rule("/", host='a"onclick="b')), []),
        (
            ingress(rule("/", host="a.example"), annotations={"argocd.argoproj.io/ignore-default-links": "true"}),
            [],
        ),
        (manifest("route.openshift.io/v1", "Route", spec={"host": "r.example", "tls": {}}), ["http://r.example"]),
        (
            manifest("route.openshift.io/v1", "Route", spec={"host": "r.example", "path": "/v1", "tls": {"a": 1}}),
            ["https://r.example/v1"],
        ),
        (manifest("route.openshift.io/v1", "Route", spec={}), []),
        (manifest("v1", "Service", {LINK: "https://docs.example"}), ["https://docs.example"]),
        (manifest("v1", "Service", {LINK: "Docs|https://docs.example"}), ["Docs|https://docs.example"]),
        (manifest("v1", "Service", {LINK: "Docs|javascript:alert(1)"}), []),
        (manifest("v1", "Service", spec={"type": "LoadBalancer"}, status=BALANCED), []),
    ],
)
def test_external_urls_come_from_ingresses_routes_and_links(live: dict[str, Any], urls: list[str]) -> None:
    assert list_external_urls(live) == urls


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "data:text/html,x", "//a.example", "a.example", "https://", "ftp://a.example", "",
     "https://a.example/ b", "https://a.example/\n", 'https://a.example/"x', "http://[", "java\tscript:x"],
)  # fmt: skip
def test_unsafe_urls_are_not_links(url: str) -> None:
    assert not is_safe_url(url)


def test_images_are_read_from_pods_and_not_from_pod_templates() -> None:
    spec = {"initContainers": [{"image": "b"}], "containers": [{"image": "a"}, {"image": "b"}, {}]}
    assert list_pod_images(manifest("v1", "Pod", spec=spec)) == ["b", "a"]
    assert list_pod_images(manifest("apps/v1", "Deployment", spec={"template": {"spec": spec}})) == []


@pytest.mark.parametrize(("group", "is_app_of_apps"), [("argoproj.io/v1alpha1", True), ("app.k8s.io/v1beta1", False)])
def test_summary_tells_whether_an_application_is_in_the_tree(group: str, is_app_of_apps: bool) -> None:
    child = {"apiVersion": group, "kind": "Application", "metadata": {"name": "child"}}
    assert build_summary([child], {}).get("isAppOfApps", False) is is_app_of_apps


@pytest.mark.parametrize(("group", "is_app_of_apps"), [("argoproj.io", True), ("app.k8s.io", False)])
def test_missing_application_in_the_desired_state_makes_an_app_of_apps(group: str, is_app_of_apps: bool) -> None:
    keys = [ResourceKey("", "ConfigMap", "ml", "a"), ResourceKey(group, "Application", "argocd", "child")]
    assert build_summary([], {}, keys).get("isAppOfApps", False) is is_app_of_apps


def test_summary_is_sorted_and_without_duplicates() -> None:
    pods = [manifest("v1", "Pod", spec={"containers": [{"image": name}]}) for name in ("z", "a", "z")]
    summary = build_summary(
        [*pods, manifest("v1", "Service", {LINK: "https://b.example"})], {LINK: "https://a.example"}
    )
    assert summary == {"images": ["a", "z"], "externalURLs": ["https://a.example", "https://b.example"]}
    assert build_summary([], {}) == {}


@pytest.mark.parametrize("broken", [{}, {"apiVersion": "v1", "kind": "Pod"}, {"metadata": 1, "spec": []}])
def test_malformed_manifest_has_no_urls_and_no_images(broken: dict[str, Any]) -> None:
    assert (list_external_urls(broken), list_pod_images(broken)) == ([], [])
