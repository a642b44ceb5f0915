"""Responses of a malicious API server are validated and bounded, and become readable errors."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import pytest

from argosy.errors import ArgosyError, ClusterError, Gone, TransientError
from argosy.gitops.clusters.cluster_secret import build_connection, read_max_memory
from argosy.kube.client import response_validator
from argosy.kube.client.cluster_client import KubeCluster, connect
from argosy.kube.client.connection_settings import Connection
from argosy.kube.controller.cache import InformerCache
from argosy.kube.controller.clock import SystemClock
from argosy.kube.controller.informer import Informer
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP
from support.deadlines import HANG_SECONDS, wait_until_async
from support.fuzzer import forget_peak_memory, peak_memory
from support.lying_cluster import KINDS, Lie, LyingCluster, Request, chunked, discovery_document, endless, http_answer
from support.tiers import IN_TEST_ALL

pytestmark = pytest.mark.anyio
KEY = ResourceKey("", "ConfigMap", "ml", "settings")
GOOD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "ml", "uid": "u"}}
MEGABYTES = 200  # of memory that an attack may use at any moment, with the limits of these tests

Call = Callable[[KubeCluster], Awaitable[Any]]


@pytest.fixture(autouse=True)
def small_limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower limits, so that a thousand attacks take seconds; one test uses the real limits."""
    if "as they are" not in request.node.name.replace("_", " "):
        monkeypatch.setattr(
            "argosy.kube.client.transport.MAX_RESPONSE_BYTES", response_validator.MAX_RESPONSE_BYTES // 8
        )
        memory = response_validator.MAX_RESPONSE_MEMORY_BYTES // 16
        monkeypatch.setattr("argosy.kube.client.response_validator.MAX_RESPONSE_MEMORY_BYTES", memory)


@contextlib.asynccontextmanager
async def against(lie: Lie, **connection: Any) -> AsyncIterator[tuple[KubeCluster, LyingCluster]]:
    async with (
        LyingCluster(lie).serving() as liar,
        await connect(Connection(liar.address, token="the-token", **connection)) as cluster,
    ):
        yield cluster, liar


async def watched(cluster: KubeCluster) -> list[Any]:
    return [event async for event in cluster.watch(CONFIG_MAP, since="1", namespace="ml")]


CALLS: dict[str, Call] = {
    "get": lambda cluster: cluster.get(KEY),
    "list": lambda cluster: cluster.list(CONFIG_MAP, namespace="ml"),
    "list of names": lambda cluster: cluster.list(CONFIG_MAP, metadata_only=True),
    "watch": watched,
    "apply": lambda cluster: cluster.apply(GOOD, manager="argosy"),
    "dry run": lambda cluster: cluster.apply(GOOD, manager="argosy", dry_run=True),
    "create": lambda cluster: cluster.create(GOOD),
    "replace": lambda cluster: cluster.replace(GOOD),
    "patch": lambda cluster: cluster.patch(KEY, {"data": {"a": "b"}}),
    "delete": lambda cluster: cluster.delete(KEY),
    "version": lambda cluster: cluster.version(),
}


def changed(**metadata: Any) -> dict[str, Any]:
    return {**GOOD, "metadata": {**GOOD["metadata"], **metadata}}  # type: ignore[dict-item]


def everywhere(manifest: Any) -> Lie:
    """The same object in the answer to every call except discovery, in the form of that answer."""

    def lie(request: Request) -> bytes | None:
        if request.route in ("/api", "/apis"):
            return None
        if request.is_watch:
            return chunked(json.dumps({"type": "ADDED", "object": manifest}).encode() + b"\n")
        if request.method == "GET" and request.route.endswith("s") and not request.route.endswith("settings"):
            return http_answer({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": [manifest]})
        return http_answer(manifest)

    return lie


def raw(reply: Callable[[], Any]) -> Lie:
    return lambda request: None if request.route in ("/api", "/apis") else reply()


def packed_pieces() -> list[bytes]:
    """The start of a gzip stream, and a piece that may follow any number of times."""
    packer = zlib.compressobj(wbits=31)
    pieces = [packer.compress(b" " * (4 << 20)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2)]
    return [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces]


BOMB = packed_pieces()


async def gzip_bomb() -> AsyncIterator[bytes]:
    """Endless pieces of 4 KB that unpack to 4 MB each."""
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n" + BOMB[0]
    while True:
        yield BOMB[1]


async def endless_refusal() -> AsyncIterator[bytes]:
    async for piece in endless(b"x" * 2**20):
        yield piece.replace(b"200 OK", b"403 No")


DEEP = b'{"a":' * 900 + b"1" + b"}" * 900
BLOATED = http_answer(b'{"items": [' + b"[]," * (5 << 20) + b"[]]}")
GIBBERISH = {"kind": "Status", "code": "x", "details": [], "message": [1]}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "a"}
LIES: dict[str, Lie] = {
    "a list instead of an object": raw(lambda: http_answer([GOOD])),
    "null": raw(lambda: http_answer(b"null")),
    "a number": raw(lambda: http_answer(b"5")),
    "an empty object": raw(lambda: http_answer({})),
    "an empty body": raw(lambda: http_answer(b"")),
    "not JSON": raw(lambda: http_answer(b"{'a': 1}")),
    "NaN": raw(lambda: http_answer(b'{"metadata": {"generation": NaN}}')),
    "a huge number": raw(lambda: http_answer(b'{"metadata": {"name": ' + b"9" * 100_000 + b"}}")),
    "invalid UTF-8": raw(lambda: http_answer(b'{"kind": "\xff\xfe"}')),
    "deeply nested": raw(lambda: http_answer(DEEP)),
    "deeply nested in an object": everywhere({**GOOD, "data": json.loads(DEEP)}),
    "nested beyond any reader": raw(lambda: http_answer(b"[" * 10_000_000)),
    "an endless body": raw(lambda: endless(b" " * 2**20)),
    "a gzip bomb": raw(gzip_bomb),
    "an endless line": raw(lambda: endless(b"x" * 2**20)),
    "a text that takes 20 times its size": raw(lambda: BLOATED),
    "a redirect": raw(lambda: http_answer(GOOD, 302, Location="http://169.254.169.254/latest/meta-data")),
    "a redirect to a file": raw(lambda: http_answer(GOOD, 307, Location="file:///etc/passwd")),
    "another namespace": everywhere(changed(namespace="kube-system")),
    "no namespace": everywhere(changed(namespace=None)),
    "another name": everywhere({**changed(name="other"), "metadata": {"name": 5, "namespace": "ml"}}),
    "no name": everywhere(changed(name=None)),
    "a name with a line break": everywhere(changed(name="a\r\nlevel=error msg=forged")),
    "a name that steers a terminal": everywhere(changed(name="\x1b[2J\x1b[31mfine\x9b0m")),
    "a name that is a path": everywhere(changed(name="../../secrets/x")),
    "a name of dots": everywhere(changed(name="..")),
    "metadata that is a list": everywhere({**GOOD, "metadata": ["name"]}),
    "labels that are a list": everywhere(changed(labels=["a"])),
    "annotations with numbers": everywhere(changed(annotations={"argocd.argoproj.io/tracking-id": 7})),
    "a uid that is a list": everywhere(changed(uid=["u"])),
    "a version that is an object": everywhere(changed(resourceVersion={"a": 1})),
    "owners without a uid": everywhere(changed(ownerReferences=[OWNER])),
    "an owner that is a text": everywhere(changed(ownerReferences=["a"])),
    "owners that are an object": everywhere(changed(ownerReferences={"a": 1})),
    "finalizers that are numbers": everywhere(changed(finalizers=[1])),
    "a Status of gibberish": raw(lambda: http_answer(GIBBERISH, 409)),
    "a Status of a megabyte": raw(lambda: http_answer({"kind": "Status", "code": 422, "message": "x" * 2**20}, 422)),
    "a Status with escapes": raw(lambda: http_answer({"kind": "Status", "code": 403, "message": "\x1b[31m\rhi"}, 403)),
    "a plain refusal with escapes": raw(lambda: http_answer(b"\x1b[31m\x07no", 503)),
    "an endless refusal": raw(endless_refusal),
    "come back in a year": raw(lambda: http_answer(b"later", 429, Retry_After="31536000")),
    "come back never": raw(lambda: http_answer(b"later", 429, Retry_After="9" * 500)),
    "come back squared": raw(lambda: http_answer(b"later", 503, Retry_After="²")),
    "headers of nonsense": raw(lambda: b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\nContent-Encoding: gzip\r\n\r\n"),
    "no HTTP": raw(lambda: b"SSH-2.0-liar\r\n"),
    "gzip that is none": raw(lambda: http_answer(b"{}", Content_Encoding="gzip")),
    "gzip that is cut": raw(lambda: http_answer(gzip.compress(b"{}" * 99)[:20], Content_Encoding="gzip")),
}


def is_sound(call: str, answer: Any) -> bool:
    """True if an accepted answer has the form that all of argosy relies on."""
    if call == "version":
        return isinstance(answer, str)
    if call in ("delete", "get") and answer is None:
        return True
    if call == "watch":
        return all(is_sound("get", event.manifest) for event in answer)
    if call.startswith("list"):
        named = [item["metadata"]["name"] == "settings" and item["metadata"]["namespace"] for item in answer.items]
        return all(named) if call == "list of names" else set(named) <= {"ml"}
    metadata = answer["metadata"]
    return (answer["kind"], metadata["name"], metadata["namespace"]) == ("ConfigMap", "settings", "ml")


def pairs_in_make_test() -> set[tuple[str, str]]:
    """Each lie as the answer to two calls, and each call with several lies; `make test-all` runs all pairs."""
    turns = itertools.cycle(CALLS)
    return {(name, call) for name in LIES for call in itertools.islice(turns, 2)}


IN_MAKE_TEST = pairs_in_make_test()


@pytest.mark.parametrize(("name", "call"), [
    pytest.param(name, call, marks=() if (name, call) in IN_MAKE_TEST else IN_TEST_ALL)
    for name in LIES for call in CALLS
])  # fmt: skip
async def test_invalid_response_is_a_printable_error_within_memory_limits(name: str, call: str) -> None:
    forget_peak_memory()
    before = peak_memory()
    async with against(LIES[name]) as (cluster, liar):
        try:
            async with asyncio.timeout(HANG_SECONDS):
                result = await CALLS[call](cluster)
        except ArgosyError as error:
            assert isinstance(error, ClusterError | TransientError)
            assert len(str(error)) < 12_000 and str(error).replace("\n", " ").isprintable(), str(error)[:500]
        else:
            assert is_sound(call, result), str(result)[:500]
        assert {request.headers.get("authorization") for request in liar.requests} == {"Bearer the-token"}
    if peak_memory():
        assert peak_memory() - before < MEGABYTES * 1024


@pytest.mark.tier("all")
@pytest.mark.parametrize(
    "name", ["an endless body", "a gzip bomb", "an endless line", "a text that takes 20 times its size"]
)
async def test_memory_stays_bounded_with_the_limits_as_they_are(name: str) -> None:
    forget_peak_memory()
    before = peak_memory()
    async with against(LIES[name]) as (cluster, _):
        for call in ("list", "watch", "apply"):
            with pytest.raises(TransientError, match="larger than 64 MiB"):
                await CALLS[call](cluster)
    assert peak_memory() - before < 400 * 1024


@pytest.mark.parametrize("call", ["dry run", "apply", "create", "replace", "patch", "get"])
@pytest.mark.parametrize("change", [
    {"kind": "Secret"}, {"apiVersion": "apps/v1"}, {"metadata": {"name": "settings", "namespace": "kube-system"}},
    {"metadata": {"name": "admin", "namespace": "ml"}},
])  # fmt: skip
async def test_response_about_another_object_is_refused(call: str, change: dict[str, Any]) -> None:
    async with against(everywhere({**GOOD, **change})) as (cluster, _):
        with pytest.raises(TransientError, match=r"requested|metadata|returned|answer"):
            await CALLS[call](cluster)


async def test_endless_empty_list_pages_are_an_error() -> None:
    pages = iter(range(10**9))

    def lie(request: Request) -> bytes | None:
        if not request.route.endswith("configmaps"):
            return None
        return http_answer({"metadata": {"continue": f"page-{next(pages)}"}, "items": []})

    async with against(lie) as (cluster, liar):
        with pytest.raises(TransientError, match="again and again"):
            await cluster.list(CONFIG_MAP)
        assert len(liar.requests) < 100


def event_line(event_type: str, manifest: dict[str, Any]) -> bytes:
    return json.dumps({"type": event_type, "object": manifest}).encode() + b"\n"


async def stream_lines(lines: Iterable[bytes]) -> AsyncIterator[bytes]:
    """A chunked response of these lines, then its end."""
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    for line in lines:
        yield b"%x\r\n%s\r\n" % (len(line), line)
    yield b"0\r\n\r\n"


def many(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [changed(name=f"a{number}", annotations={"x": "y" * 1000}) for number in range(start, start + count)]


async def test_endless_list_stops_at_the_memory_limit_of_the_cluster() -> None:
    pages = iter(range(10**9))

    def lie(request: Request) -> bytes | None:
        if not request.route.endswith("configmaps"):
            return None
        page = next(pages)
        return http_answer({"metadata": {"continue": f"page-{page}"}, "items": many(100, page * 100)})

    async with against(lie, max_memory_bytes=2**20) as (cluster, liar):
        with pytest.raises(TransientError, match=r"more than .* GiB of memory; exclude kinds"):
            await cluster.list(CONFIG_MAP)
        assert len(liar.requests) < 30


async def test_endless_watch_ends_with_gone_at_the_memory_limit_of_the_cluster() -> None:
    events = (event_line("ADDED", manifest) for start in itertools.count() for manifest in many(1, start))
    lie: Lie = lambda request: stream_lines(events) if request.is_watch else None  # noqa: E731
    async with against(lie, max_memory_bytes=2**20) as (cluster, _):
        with pytest.raises(Gone):
            async with asyncio.timeout(HANG_SECONDS):
                await watched(cluster)
        assert (await cluster.list(CONFIG_MAP, namespace="ml")).items == []  # memory is available again
        with pytest.raises(Gone):
            await watched(cluster)


async def test_many_updates_of_few_objects_leave_memory_for_lists() -> None:
    def lie(request: Request) -> bytes | AsyncIterator[bytes] | None:
        if request.is_watch:
            updates = (event_line("MODIFIED", many(1, number % 100)[0]) for number in range(5000))
            return stream_lines(updates)
        if request.route.endswith("configmaps"):
            return http_answer({"metadata": {"resourceVersion": "5"}, "items": many(100)})
        return None

    async with against(lie, max_memory_bytes=2**20) as (cluster, _):
        await cluster.list(CONFIG_MAP, namespace="ml")
        assert len(await watched(cluster)) == 5000
        assert (await cluster.list(GroupKind("", "Secret"), namespace="ml")).items == []


async def test_too_large_list_pages_are_requested_with_a_smaller_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.kube.client.transport.MAX_RESPONSE_BYTES", 200_000)

    def lie(request: Request) -> bytes | None:
        if not request.route.endswith("configmaps"):
            return None
        items = many(500 if "limit=500" in request.path else 20)
        return http_answer({"metadata": {"resourceVersion": "5"}, "items": items})

    async with against(lie) as (cluster, _):
        assert len((await cluster.list(CONFIG_MAP)).items) == 20


@pytest.mark.parametrize(("group", "plural"), [
    ("", "../../../k8s/clusters/other/api/v1/secrets"), ("", ".."), ("", "configmaps?watch=true"), ("", "a b"),
    ("", "x\r\nHost: other"), ("../../other", "configmaps"), ("a/b", "configmaps"), ("", "a%2fb"), ("", "a#b"),
])  # fmt: skip
async def test_discovery_cannot_inject_paths_into_requests(group: str, plural: str) -> None:
    document = discovery_document(((plural, "Evil", True), *KINDS), group)
    lie: Lie = lambda request: http_answer(document) if request.route in ("/api", "/apis") else None  # noqa: E731
    async with against(lie) as (cluster, liar):
        assert GroupKind(group, "Evil") not in await cluster.kinds()
        with pytest.raises(ClusterError, match="no matches for kind"):
            await cluster.list(GroupKind(group, "Evil"), namespace="ml")
        assert {request.route for request in liar.requests} == {"/api", "/apis"}


@pytest.mark.parametrize("document", [
    {"kind": "APIGroupDiscoveryList", "items": [5]}, {"kind": "APIGroupDiscoveryList", "items": {"a": 1}}, [], None, 5,
    {"kind": "APIGroupDiscoveryList", "items": [{"versions": [{"version": "v1", "resources": [{"resource": 5,
     "responseKind": {"kind": ["x"]}}]}]}]},
    {"kind": "APIVersions", "versions": [{}, None, "../.."]}, {"kind": ["APIVersions"]},
    discovery_document(tuple((f"kinds{number}", f"Kind{number}", True) for number in range(20_000))),
    {"kind": "APIGroupList", "groups": [{"versions": [{"groupVersion": f"g{number}/v1"}]} for number in range(9_000)]},
    {"kind": "APIGroupList", "groups": [{"versions": [{"groupVersion": "../../x"}, {"groupVersion": 5}]}]},
])  # fmt: skip
async def test_invalid_or_huge_discovery_is_an_error_or_no_kinds(document: Any) -> None:
    lie: Lie = lambda request: http_answer(document)  # noqa: E731
    async with against(lie) as (cluster, liar):
        try:
            assert await cluster.kinds() == {}
        except ArgosyError as error:
            assert str(error).isprintable() and len(str(error)) < 500
        assert len(liar.requests) < 50


@pytest.mark.parametrize("line", [
    b"5", b"null", b"[]", b"{}", b'{"type": "ADDED"}', b'{"type": "ADDED", "object": []}', b'{"type": 7, "object": {}}',
    b'{"type": "EXPLODED", "object": {"metadata": {"name": "settings", "namespace": "ml"}}}',
    b'{"type": "BOOKMARK", "object": {}}',
    b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": {}, "x": 1}}}', b'{"type": "ERROR", "object": 5}',
    b'{"type": "ERROR", "object": {"code": "x", "details": 5}}', b'{"type": ["ADDED"], "object": {}}',
])  # fmt: skip
async def test_invalid_watch_event_is_an_error_or_a_bookmark(line: bytes) -> None:
    lie: Lie = lambda request: chunked(line + b"\n") if request.is_watch else None  # noqa: E731
    async with against(lie) as (cluster, _):
        with contextlib.suppress(ClusterError, TransientError):
            events = await watched(cluster)
            assert all(event.type == "BOOKMARK" for event in events)


async def test_names_of_dots_are_never_used_in_a_path() -> None:
    async with against(lambda _: None) as (cluster, liar):
        for key in (KEY._replace(name=".."), KEY._replace(namespace=".."), KEY._replace(name=".")):
            with pytest.raises(ClusterError, match="a name may not be"):
                await cluster.delete(key)
        assert not [request for request in liar.requests if request.method == "DELETE"]


def test_memory_estimate_counts_parsed_size() -> None:
    assert response_validator.estimate_memory(b"[" + b"[]," * 1000 + b"[]]") > 100_000
    assert response_validator.estimate_memory(b'{"a": "' + b"x" * 1000 + b'"}') < 1200


@pytest.mark.parametrize(
    ("quantity", "limit"), [("", 4 << 30), ("8Gi", 8 << 30), ("500M", 500_000_000), ("much", 4 << 30)]
)
def test_max_memory_of_a_cluster_is_read_from_its_settings(quantity: str, limit: int) -> None:
    assert read_max_memory({"cluster.maxMemory": quantity}) == limit
    assert build_connection({"server": "https://far"}, (), limit).max_memory_bytes == limit


async def test_informer_pauses_between_watches_that_end_after_each_event() -> None:
    event = json.dumps({"type": "ADDED", "object": changed(resourceVersion="5")}).encode() + b"\n"
    pauses: list[float] = []

    class CountingClock(SystemClock):
        def call_later(self, seconds: float, callback: Callable[[], None]) -> Any:
            pauses.append(seconds)
            return super().call_later(0, callback)

    lie: Lie = lambda request: chunked(event) if request.is_watch else None  # noqa: E731
    async with against(lie) as (cluster, liar):
        running = asyncio.create_task(Informer(cluster, CONFIG_MAP, InformerCache(), clock=CountingClock()).run())
        await wait_until_async(lambda: sum(request.is_watch for request in liar.requests) >= 5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert len(pauses) >= 4
