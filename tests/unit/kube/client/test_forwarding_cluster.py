"""Every wrapper of a cluster client forwards every method of `Cluster` with every argument, also as another user."""

from __future__ import annotations

import ast
import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from argosy.features.promote.cluster_thread_bridge import _ThreadBridgedCluster
from argosy.gitops.application_client.lazy_cluster_client import LazyClusterClient, _LazyCluster
from argosy.gitops.cluster_view.cached_reader import CachedCluster
from argosy.gitops.reconciler.read_your_writes import ReadYourWritesClient
from argosy.kube.client import Cluster, ClusterReader, KindInfo, Listing, PatchKind, Propagation, User
from argosy.kube.client.call_metrics import RecordedCall, RecordingCluster
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.forwarding_cluster import Call, ForwardingCluster, ForwardingReader
from argosy.kube.client.namespaced_reader import NamespacedClusterReader
from argosy.kube.controller import InformerCache
from argosy.kube.controller.cluster_liveness import FailFastCluster, LivenessProbe
from argosy.kube.controller.informer_set import _ListLimitedReader
from argosy.kube.controller.write_fence import require_permit
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import DEPLOYMENT

pytestmark = pytest.mark.anyio
SOURCE = Path(__file__).parents[4] / "src" / "argosy"
KEY, POD = ResourceKey(*DEPLOYMENT, "ml", "web"), ResourceKey("", "Pod", "ml", "web-0")
MANIFEST = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "ml"}}
ANN = User("ann", ("devs",))
ITEM = "an item of a stream"
# One value for each parameter of the protocol that differs from its default. A new parameter needs a line here.
ARGUMENTS: dict[str, Any] = {
    "api_version": "apps/v1beta1",
    "container": "main",
    "dry_run": True,
    "fields": "metadata.name=web",
    "follow": True,
    "force": True,
    "grace": 7,
    "key": KEY,
    "kind": DEPLOYMENT,
    "kind_of_patch": PatchKind.JSON,
    "labels": "app=web",
    "manager": "argosy",
    "manifest": MANIFEST,
    "metadata_only": True,
    "namespace": "ml",
    "patch": [{"op": "remove", "path": "/data"}],
    "previous": True,
    "propagation": Propagation.ORPHAN,
    "since": "42",
    "subresource": "status",
    "subresource_of": POD,
    "tail": 5,
    "uid": "u-1",
    "version": "17",
}


class Recorder:
    """Records every call with its arguments, and the user that it is made as."""

    def __init__(self, calls: list[tuple[str, dict[str, Any], User | None]], user: User | None = None) -> None:
        self.calls, self.user = calls, user
        self.kinds_here = {DEPLOYMENT: KindInfo("v1", "deployments", namespaced=True, verbs=("list", "watch"))}

    def acting_as(self, user: User) -> Recorder:
        return Recorder(self.calls, user)

    def __getattr__(self, name: str) -> Any:
        method = inspect.signature(getattr(Cluster, name))

        def record(arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
            bound = method.bind(self, *arguments, **named)
            bound.apply_defaults()
            self.calls.append((name, {key: bound.arguments[key] for key in list(bound.arguments)[1:]}, self.user))

        async def stream(*arguments: Any, **named: Any) -> AsyncIterator[Any]:
            record(arguments, named)
            yield ITEM

        async def send(*arguments: Any, **named: Any) -> Any:
            record(arguments, named)
            return {"kinds": self.kinds_here, "list": Listing([MANIFEST], "1"), "delete": None}.get(name, MANIFEST)

        return stream if name in ("watch", "logs") else send


def list_methods(protocol: type) -> list[str]:
    return [name for name, _ in inspect.getmembers(protocol, inspect.isfunction) if not name.startswith("_")]


READS = list_methods(ClusterReader)
CALLS = [name for name in list_methods(Cluster) if name != "acting_as"]


def lazy(cluster: Any) -> LazyClusterClient:
    @asynccontextmanager
    async def open_cluster(_: Connection) -> AsyncIterator[Cluster]:
        yield cluster

    return LazyClusterClient(Connection(server="https://remote.example"), open_cluster)


async def answer() -> None:
    pass


def is_fully_cached(kind: GroupKind) -> bool:
    return False


WRAPPERS: dict[type[ForwardingReader], Callable[[Any], Any]] = {
    ForwardingCluster: ForwardingCluster,
    ForwardingReader: ForwardingReader,
    RecordingCluster: lambda cluster: RecordingCluster(cluster, lambda call: None),
    FailFastCluster: lambda cluster: FailFastCluster(cluster, LivenessProbe(answer)),
    ReadYourWritesClient: lambda cluster: ReadYourWritesClient(cluster, lambda key: None),
    CachedCluster: lambda cluster: CachedCluster(cluster, InformerCache(), is_fully_cached),
    LazyClusterClient: lazy,
    _LazyCluster: lambda cluster: lazy(cluster).acting_as(ANN),
    _ThreadBridgedCluster: lambda cluster: _ThreadBridgedCluster(cluster, asyncio.get_running_loop()),
    NamespacedClusterReader: lambda cluster: NamespacedClusterReader(cluster, ["a"], has_cluster_kinds=True),
    _ListLimitedReader: lambda cluster: _ListLimitedReader(cluster, 1),
}
BRIDGED = (_ThreadBridgedCluster,)


def list_wrappers(base: type[ForwardingReader]) -> Iterator[type[ForwardingReader]]:
    yield base
    for wrapper in base.__subclasses__():
        yield from list_wrappers(wrapper)


def test_every_wrapper_of_the_source_tree_is_tested_here() -> None:
    in_source = {wrapper for wrapper in list_wrappers(ForwardingReader) if wrapper.__module__.startswith("argosy.")}
    assert in_source == set(WRAPPERS)


def test_every_class_that_lists_kinds_is_a_client_or_derives_from_the_forwarding_base() -> None:
    """A module that no test of this file imports cannot hide a wrapper of its own."""
    protocols_and_clients = {"ClusterReader", "KubeCluster", "_NamelessUserCluster", "EmbeddedCluster"}
    with_an_interface_of_their_own = {"OptionalReads"}
    own = {wrapper.__name__ for wrapper in WRAPPERS} | protocols_and_clients | with_an_interface_of_their_own
    names = {
        node.name
        for file in SOURCE.rglob("*.py")
        if "async def kinds(" in (text := file.read_text()) or "ForwardingCluster)" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
        and (
            any(isinstance(part, ast.AsyncFunctionDef) and part.name == "kinds" for part in node.body)
            or any(isinstance(base, ast.Name) and base.id.startswith("Forwarding") for base in node.bases)
        )
    }
    assert names <= own, names - own


@pytest.mark.parametrize("name", list_methods(Cluster))
def test_forwarding_base_has_the_signature_of_the_protocol(name: str) -> None:
    protocol, forwarding = (inspect.signature(getattr(owner, name)) for owner in (Cluster, ForwardingCluster))
    assert forwarding.parameters == protocol.parameters


def arguments_of(name: str) -> dict[str, Any]:
    parameters = list(inspect.signature(getattr(Cluster, name)).parameters)[1:]
    return {parameter: ARGUMENTS[parameter] for parameter in parameters}


async def call_with_every_argument(client: Any, name: str, calls: list[Any]) -> tuple[dict[str, Any], User | None]:
    arguments = arguments_of(name)
    method = getattr(client, name)
    if name in ("watch", "logs"):
        assert [item async for item in method(**arguments)] == [ITEM]
    else:
        await method(**arguments)
    ((_, received, user),) = [call for call in calls if call[0] == name]
    return received, user


@contextmanager
def another_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def wrapped(wrapper: type[ForwardingReader], cluster: Any) -> Iterator[Any]:
    if wrapper in BRIDGED:
        with another_loop() as loop:
            yield _ThreadBridgedCluster(cluster, loop)
    else:
        yield WRAPPERS[wrapper](cluster)


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda wrapper: wrapper.__name__)
async def test_every_argument_of_every_method_reaches_the_wrapped_cluster(wrapper: type[ForwardingReader]) -> None:
    for name in CALLS if issubclass(wrapper, ForwardingCluster) else READS:
        calls: list[Any] = []
        with wrapped(wrapper, Recorder(calls)) as client:
            received, _ = await call_with_every_argument(client, name, calls)
        assert received == arguments_of(name), name


CLUSTERS = [wrapper for wrapper in WRAPPERS if issubclass(wrapper, ForwardingCluster)]


@pytest.mark.parametrize("wrapper", CLUSTERS, ids=lambda wrapper: wrapper.__name__)
async def test_impersonating_client_stays_wrapped_and_sends_the_user(wrapper: type[ForwardingReader]) -> None:
    for name in CALLS:
        calls: list[Any] = []
        with wrapped(wrapper, Recorder(calls)) as client:
            as_ann = client.acting_as(ANN)
            assert type(as_ann) is (_LazyCluster if wrapper is LazyClusterClient else wrapper)
            received, user = await call_with_every_argument(as_ann, name, calls)
        assert (received, user) == (arguments_of(name), ANN), name


async def test_hooks_see_every_call_before_it_is_sent() -> None:
    calls: list[Any] = []
    seen: list[Call] = []

    class Refusing(ForwardingCluster):
        async def _send(self, call: Call, send: Any) -> Any:
            seen.append(call)
            raise PermissionError

        def _stream(self, call: Call, open_stream: Any) -> Any:
            seen.append(call)
            raise PermissionError

    cluster: Any = Recorder(calls)
    for client in (Refusing(cluster), Refusing(cluster).acting_as(ANN)):
        for name in CALLS:
            with pytest.raises(PermissionError):
                await call_with_every_argument(client, name, calls)
    assert [call.method for call in seen] == CALLS * 2 and not calls
    dry_run = {call.method for call in seen if call.is_dry_run}
    assert dry_run == {"create", "apply", "replace", "patch"}
    assert {call.method for call in seen if call.is_write} == {"delete"}, "the others are dry runs here"
    creation = next(call for call in seen if call.method == "create")
    assert (str(creation), creation.subresource_of) == ("create apps/Deployment/ml/web", POD)


async def test_calls_of_an_impersonating_client_are_recorded() -> None:
    records: list[RecordedCall] = []
    cluster: Any = Recorder([])
    client = RecordingCluster(cluster, records.append)
    impersonating = client.acting_as(ANN)
    await impersonating.get(KEY)
    await impersonating.list(DEPLOYMENT)
    get = RecordedCall("get", "Deployment", 200, namespace=KEY.namespace)
    assert records == [get, RecordedCall("list", "Deployment", 200)]
    assert client.last_read_at == {}, "no cache is filled from the lists of an impersonating client"


class Refusal:
    async def run_write(self, call: Any, description: str) -> Any:
        raise PermissionError(description)


@pytest.mark.parametrize("wrapper", [ReadYourWritesClient, CachedCluster], ids=lambda wrapper: wrapper.__name__)
async def test_write_fence_refuses_every_write_also_as_another_user(wrapper: type[ForwardingReader]) -> None:
    calls: list[Any] = []
    client = WRAPPERS[wrapper](Recorder(calls))
    with require_permit(Refusal()):
        for fenced in (client, client.acting_as(ANN), client.acting_as(ANN).acting_as(User("bob"))):
            for name in ("create", "apply", "replace", "patch", "delete"):
                arguments = {key: value for key, value in arguments_of(name).items() if key != "dry_run"}
                with pytest.raises(PermissionError, match=f"^{name} apps/Deployment/ml/web$"):
                    await getattr(fenced, name)(**arguments)
    assert not calls
