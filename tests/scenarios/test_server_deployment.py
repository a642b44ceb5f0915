"""The manifests of deploy/page: the command line is valid, and the RBAC rules suffice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import Forbidden
from argosy.features.serve.web_server_run import WebServerOptions, serve_web
from argosy.kube.client import User
from argosy.kube.objects import read_manifests
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.main import build_parser
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.clusters import served
from support.engine import CONTROL, furnish, shared_crew

pytestmark = pytest.mark.anyio
FOLDER = Path(__file__).parents[2] / "deploy" / "page"
ACCOUNT = User(f"system:serviceaccount:{CONTROL}:argosy-page", ("system:serviceaccounts", "system:authenticated"))


def manifests() -> list[dict[str, Any]]:
    files = [FOLDER / name for name in ("roles.yaml", "deployment.yaml", "service.yaml")]
    return [manifest for file in files for manifest in read_manifests(file.read_bytes(), where=file.name)]


def test_deployment_command_is_valid_and_matches_its_ports() -> None:
    (deployment,) = [manifest for manifest in manifests() if manifest["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    chosen = build_parser().parse_args([*container["command"][1:], *container["args"]])
    assert (chosen.listen, chosen.metrics_port, chosen.no_browser) == ("::", 8083, True)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"https": 8484, "metrics": chosen.metrics_port}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    async with served(tmp_path / "plane", rbac=True) as api_server:
        embedded_cluster = EmbeddedCluster(api_server.plane)
        await furnish(embedded_cluster, CONTROL)
        for manifest in manifests():
            await embedded_cluster.create(manifest)
        yield embedded_cluster


async def test_service_account_rights_suffice_to_serve_and_are_not_admin(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    alone = cluster.acting_as(ACCOUNT)
    options = WebServerOptions(port=0, listen="::", folder=tmp_path / "page")
    async with serve_web(alone, "a test", options, namespace=CONTROL, crew=shared_crew()) as page:
        assert page.fingerprint
        assert await alone.get(ResourceKey("", "Secret", CONTROL, "argocd-secret"))
    with pytest.raises(Forbidden):
        await alone.replace(await _role(cluster))


async def _role(cluster: EmbeddedCluster) -> Any:
    cluster_roles = await cluster.list(GroupKind("rbac.authorization.k8s.io", "ClusterRole"))
    return next(
        cluster_role for cluster_role in cluster_roles.items if cluster_role["metadata"]["name"] == "argosy-page-looks"
    )
