"""Every contract test runs in flavours.

embedded: in this process · wire: KubeCluster → TLS on loopback → the embedded server · real: KubeCluster → a real
kube-apiserver, where one was built and is asked for (make realcluster) or ARGOSY_TEST_KUBECONFIG names one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from argosy.apiserver.embedded import EmbeddedCluster
from argosy.apiserver.plane import Plane
from argosy.apiserver.server import serve
from argosy.apiserver.tls import certificates
from argosy.cluster import Cluster, Propagation
from argosy.cluster.connection import Connection
from argosy.cluster.kube import connect
from argosy.cluster.kubeconfig import load_kubeconfig
from argosy.model.names import ResourceKey
from support import control_plane
from support.real_server import REAL

HERE = Path(__file__).parent
TOKEN = "admin-of-a-test"
FLAVOURS = ("embedded", "wire", REAL)


@dataclass(frozen=True)
class RealServer:
    kubeconfig: Path
    compact: Callable[[], None] | None


class _Started:
    """A server from the first contract test that asks for it to the last of all: idle, it costs time as well."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._server: RealServer | None = None

    def get(self) -> RealServer:
        if self._server is None:
            server = self._stack.enter_context(control_plane.real_cluster())
            self._server = RealServer(server.kubeconfig, server.compact)
        return self._server

    def end(self) -> None:
        self._server = None
        self._stack.close()


STARTED = _Started()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    try:
        return (yield)
    finally:
        if nextitem is None or not nextitem.path.is_relative_to(HERE):
            STARTED.end()


@pytest.fixture
def real_server() -> RealServer:
    """One for all tests; each works in a namespace of its own."""
    if given := os.environ.get("ARGOSY_TEST_KUBECONFIG"):
        return RealServer(Path(given), None)
    if control_plane.programs() is None:
        pytest.skip(f"real: no control plane in {control_plane.CACHE} (make realcluster), no ARGOSY_TEST_KUBECONFIG")
    return STARTED.get()


@pytest.fixture
def own_server(real_server: RealServer) -> RealServer:
    """For tests that define kinds for all, and take them away again: in somebody's cluster that deletes theirs."""
    if real_server.compact is None:
        pytest.skip("real: it defines kinds and deletes them, which is only for a server of our own (make realcluster)")
    return real_server


@dataclass(frozen=True)
class Flavour:
    name: str
    cluster: Cluster
    compact: Callable[[], Any] | None  # forget the history so far; None: cannot be done from here


@pytest.fixture(params=FLAVOURS)
async def flavour(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Flavour]:
    if request.param == "real":
        server: RealServer = request.getfixturevalue("real_server")
        async with await connect(load_kubeconfig([server.kubeconfig])) as cluster:
            yield Flavour("real", cluster, server.compact)
        return
    async with embedded_flavour(request.param, tmp_path) as flavour:
        yield flavour


@contextlib.asynccontextmanager
async def embedded_flavour(name: str, folder: Path) -> AsyncIterator[Flavour]:
    """With RBAC, as on a real server."""
    async with Plane.open(rbac=True, admin_token=TOKEN) as plane:

        async def compact() -> None:
            await plane.store.compact(plane.store.revision)

        if name == "embedded":
            yield Flavour(name, EmbeddedCluster(plane), compact)
            return
        found = certificates(folder)
        async with serve(plane, found) as url:
            connection = Connection(server=url, ca_file=str(found.authority), token=TOKEN)
            async with await connect(connection) as cluster:
                yield Flavour(name, cluster, compact)


@pytest.fixture
def cluster(flavour: Flavour) -> Cluster:
    return flavour.cluster


@pytest.fixture
def own_cluster(request: pytest.FixtureRequest, flavour: Flavour) -> Cluster:
    """As `own_server` is, in all flavours."""
    if flavour.name == "real":
        request.getfixturevalue("own_server")
    return flavour.cluster


@pytest.fixture
async def namespace(cluster: Cluster) -> AsyncIterator[str]:
    made = await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "contract-"}})
    name = made["metadata"]["name"]
    yield name
    await cluster.delete(ResourceKey("", "Namespace", "", name), propagation=Propagation.BACKGROUND)
