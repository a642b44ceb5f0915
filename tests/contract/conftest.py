"""Every contract test runs in flavours.

embedded: in this process · wire: KubeCluster → TLS on loopback → the embedded server · real: KubeCluster → a real
kube-apiserver, if one is built and requested (make realcluster) or ARGOSY_TEST_KUBECONFIG names one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.client import Cluster, Propagation
from argosy.kube.client.cluster_client import connect
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.kubeconfig import load_kubeconfig
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.https_server import serve_https
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.apiserver.tls import ensure_certificates
from support import control_plane
from support.folder_resource import FolderResource
from support.real_server import REAL

HERE = Path(__file__).parent
TOKEN = "admin-of-a-test"
FLAVOURS = ("embedded", "wire", REAL)


@dataclass(frozen=True)
class RealServer:
    kubeconfig: Path
    compact: Callable[[], None] | None


@contextlib.contextmanager
def start_real_server() -> Iterator[RealServer]:
    with control_plane.real_cluster() as server:
        yield RealServer(server.kubeconfig, server.compact)


SERVER = FolderResource(HERE, start_real_server)  # while idle, it slows down other tests


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(SERVER)


@pytest.fixture
def real_server() -> RealServer:
    """One server for all tests; each test uses its own namespace."""
    if kubeconfig := os.environ.get("ARGOSY_TEST_KUBECONFIG"):
        return RealServer(Path(kubeconfig), None)
    if control_plane.programs() is None:
        pytest.skip(f"real: no control plane in {control_plane.CACHE} (make realcluster), no ARGOSY_TEST_KUBECONFIG")
    return SERVER.get()


@pytest.fixture
def own_server(real_server: RealServer) -> RealServer:
    """For tests that create CRDs and delete them: in a user's cluster, that would delete the user's CRDs."""
    if real_server.compact is None:
        pytest.skip("real: it defines kinds and deletes them, which is only for a server of our own (make realcluster)")
    return real_server


@dataclass(frozen=True)
class Flavour:
    name: str
    cluster: Cluster
    compact: Callable[[], Any] | None  # drops the history so far; None: not possible from here


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One event loop for all tests of a file, because they share the server of `wire`."""
    return "asyncio"


@pytest.fixture(params=FLAVOURS)
def flavour(request: pytest.FixtureRequest) -> Flavour:
    chosen_flavour: Flavour = request.getfixturevalue(f"{request.param}_flavour")
    return chosen_flavour


@pytest.fixture
async def embedded_flavour() -> AsyncIterator[Flavour]:
    async with open_plane() as plane:
        yield Flavour("embedded", EmbeddedCluster(plane), compact_of(plane))


@pytest.fixture(scope="module")
async def wire_flavour(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Flavour]:
    """One server for all tests of a file, like a real server; each test uses its own namespace."""
    certificates = ensure_certificates(tmp_path_factory.mktemp("wire"))
    async with open_plane() as plane, serve_https(plane, certificates) as url:
        connection = Connection(server=url, ca_file=str(certificates.authority), token=TOKEN)
        async with await connect(connection) as cluster:
            yield Flavour("wire", cluster, compact_of(plane))


@pytest.fixture
async def real_flavour(real_server: RealServer) -> AsyncIterator[Flavour]:
    async with await connect(load_kubeconfig([real_server.kubeconfig])) as cluster:
        yield Flavour("real", cluster, real_server.compact)


def open_plane() -> contextlib.AbstractAsyncContextManager[ControlPlane]:
    """With RBAC, as on a real server."""
    return ControlPlane.open(rbac=True, admin_token=TOKEN)


def compact_of(plane: ControlPlane) -> Callable[[], Awaitable[None]]:
    async def compact() -> None:
        await plane.store.compact(plane.store.revision)

    return compact


@pytest.fixture
def cluster(flavour: Flavour) -> Cluster:
    return flavour.cluster


@pytest.fixture
def own_cluster(request: pytest.FixtureRequest, flavour: Flavour) -> Cluster:
    """The cluster of the flavour, with the condition of `own_server` if it is real."""
    if flavour.name == "real":
        request.getfixturevalue("own_server")
    return flavour.cluster


@pytest.fixture
async def namespace(cluster: Cluster) -> AsyncIterator[str]:
    created_namespace = await cluster.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "contract-"}}
    )
    name = created_namespace["metadata"]["name"]
    yield name
    await cluster.delete(ResourceKey("", "Namespace", "", name), propagation=Propagation.BACKGROUND)
