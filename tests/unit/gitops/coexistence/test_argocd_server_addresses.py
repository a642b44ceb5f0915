"""Tests which addresses belong to this installation's Argo CD server."""

from __future__ import annotations

import pytest

from argosy.gitops.coexistence.argocd_server_addresses import is_same_address, list_server_addresses
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

URLS = "- https://second.example\n- https://third.example:8443\n"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("argocd.example", "https://argocd.example", True),
        ("ARGOCD.example:443", "https://argocd.example/", True),
        ("argocd.example:8443", "https://argocd.example", False),
        ("argocd.example", "http://argocd.example", False),
        ("argocd.example:80", "http://argocd.example", True),
        ("localhost:8484", "http://127.0.0.1:8484", True),
        ("[::1]:8484", "http://localhost:8484", True),
        ("other.example", "argocd.example", False),
        ("argocd.example.evil", "argocd.example", False),
        ("argocd.example:nonsense", "argocd.example", False),
        ("", "", False),
    ],
)
def test_addresses_are_equal_if_host_and_port_match(one: str, other: str, expected: bool) -> None:
    assert is_same_address(one, other) is expected


@pytest.mark.anyio
async def test_addresses_come_from_argocd_cm_and_control_namespace_ingresses() -> None:
    async with EmbeddedCluster.open() as cluster:
        for namespace in ("argocd", "shop"):
            await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        assert await list_server_addresses(cluster, "argocd") == []
        metadata = {"name": "argocd-cm", "namespace": "argocd"}
        data = {"url": "https://argocd.example", "additionalUrls": URLS}
        await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        for namespace in ("argocd", "shop"):
            await cluster.create(
                {
                    "apiVersion": "networking.k8s.io/v1",
                    "kind": "Ingress",
                    "metadata": {"name": "web", "namespace": namespace},
                    "spec": {"rules": [{"host": f"web.{namespace}.example"}]},
                }
            )
        addresses = await list_server_addresses(cluster, "argocd")
    assert addresses == [
        "https://argocd.example",
        "https://second.example",
        "https://third.example:8443",
        "web.argocd.example",
        "http://web.argocd.example",
    ]


@pytest.mark.anyio
async def test_malformed_additional_urls_add_no_address() -> None:
    async with EmbeddedCluster.open() as cluster:
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}})
        metadata, data = {"name": "argocd-cm", "namespace": "argocd"}, {"additionalUrls": "{- not a list"}
        await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        assert await list_server_addresses(cluster, "argocd") == []
