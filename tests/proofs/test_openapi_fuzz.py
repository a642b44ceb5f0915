"""Drive a running server with schemathesis from its OpenAPI document: no 5xx, and responses conform to the document.

Names in the document are narrowed to those that exist, so that requests get past the middleware; schemathesis generates
everything else, valid and invalid. `make test` runs one GET and one POST operation per resource.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import requests
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import one_of

from argosy.errors import Conflict
from argosy.web import error_details
from argosy.web.api.openapi import build_openapi_document
from argosy.web.middleware import response_serialization
from support.api_with_engine import CONTROL, ApiScene, a_folder, real_scene
from support.deadlines import HANG_SECONDS
from support.engine import config_map
from support.route_table import ROUTE_TABLE

pytestmark = pytest.mark.tier("test", "prove")
REQUESTS = 40  # per operation
HERE, REPOSITORY = "https://kubernetes.default.svc", "file:///nowhere/at-all"
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    "response_headers_conformance",
)  # fmt: skip
# Existing values, by parameter name or by the resource that the parameter belongs to.
THERE: dict[str, list[str]] = {
    "ns": [CONTROL], "project": ["default", "team"], "id": [HERE], "repo": [REPOSITORY],
    "kind": ["ConfigMap", "Pod", "Deployment", "Secret"], "resourceName": ["settings", "one", "web", "hidden"],
    "namespace": ["ml", ""], "group": ["", "apps"], "podName": ["one", "nobody"], "appNamespace": [CONTROL, ""],
    "refresh": ["normal", "hard", "soft"], "object": ["configmap/settings", "pod/one"], "revision": ["main", "0" * 40],
    "selector": ["a=b", "a in (b,c)", "==="], "fields": ["items.metadata.name", "-items.status", "spec"],
    "container": ["main", ""], "cascade": ["false", "true"], "limit": ["1", "0", "x"],
    "applications": ["models", "other", "nothing"], "projects": ["default", "team", "nothing"], "account": ["admin"],
}  # fmt: skip
LEFT_OUT = ("/stream/", "/api/webhook")  # streams end when the client disconnects; webhooks have their own proof


def narrowed() -> dict[str, Any]:
    """Build the document without security schemes: the test sends the credentials itself."""
    document = copy.deepcopy(build_openapi_document(ROUTE_TABLE, "argosy", "1.2.3"))
    del document["security"], document["components"]["securitySchemes"]
    for path in list(document["paths"]):
        if any(part in path for part in LEFT_OUT):
            del document["paths"][path]
            continue
        for operation in document["paths"][path].values():
            parameters = [parameter for parameter in operation["parameters"] if parameter["name"] != "follow"]
            operation["parameters"] = [_narrow(parameter, path) for parameter in parameters]
            operation.pop("security", None)
    return document


def _narrow(parameter: dict[str, Any], path: str) -> dict[str, Any]:
    name = parameter["name"]
    if name == "name" and parameter["in"] == "path":
        name = next((part for part in path.split("/") if part in THERE), "")
    there = [value for value in THERE.get(name, ()) if value or parameter["in"] == "query"]
    if not there or parameter["schema"].get("type") == "array":
        return parameter
    return {**parameter, "schema": {"type": "string", "enum": there}}


class InThread:
    """A server with an engine on its own event loop; the test thread waits for each response."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._ready, self._over = folder, threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self.api: ApiScene | None = None
        self.loop: asyncio.AbstractEventLoop | None = None

    async def _run(self) -> None:
        async with real_scene(self._folder) as api:
            files: dict[str, Any] = {**a_folder(), "other/one.yaml": config_map("other", b="c")}
            api.room.repository.push(files)
            await self.deliver(api)
            await api.room.until_synced()
            self.api, self.loop = api, asyncio.get_running_loop()
            self._ready.set()
            await asyncio.to_thread(self._over.wait)

    @staticmethod
    async def deliver(api: ApiScene) -> None:
        """Create the objects again that requests may have deleted."""
        for manifest in (a_repository(), a_project()):
            with contextlib.suppress(Conflict):
                await api.room.cluster.create(manifest)
        for name, path in (("models", "app"), ("other", "other")):
            with contextlib.suppress(Conflict):
                await api.room.deliver(name, path, syncPolicy={"automated": {"selfHeal": True}})
        await api.seen("models", lambda app: True)

    def restore(self) -> None:
        assert self.api and self.loop
        asyncio.run_coroutine_threadsafe(self.deliver(self.api), self.loop).result(HANG_SECONDS)

    def token(self) -> str:
        """Return a new token for each operation: some operations end the session they are called with."""
        assert self.api and self.loop
        return asyncio.run_coroutine_threadsafe(self.api.token(), self.loop).result(HANG_SECONDS)

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(HANG_SECONDS), "the server did not start"

    def stop(self) -> None:
        self._over.set()
        self._thread.join(HANG_SECONDS)


def a_repository() -> dict[str, Any]:
    labels = {"argocd.argoproj.io/secret-type": "repository"}
    metadata = {"name": "repo", "namespace": CONTROL, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"url": REPOSITORY}}


def a_project() -> dict[str, Any]:
    spec = {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}
    metadata = {"name": "team", "namespace": CONTROL}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": spec}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    server_thread = InThread(tmp_path_factory.mktemp("openapi"))
    server_thread.start()
    yield server_thread
    server_thread.stop()


@pytest.fixture(scope="module")
def operations() -> dict[str, Any]:
    """Return operations by method and path. schemathesis takes seconds to import, so no other run imports it."""
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis: pip install argosy[dev]")
    results = schemathesis.openapi.from_dict(narrowed()).get_all_operations()
    return {operation.label: operation for operation in (result.ok() for result in results)}


def labels() -> Iterator[Any]:
    """Yield all operations; only the first GET and the first POST of each resource run in `make test`."""
    first = set()
    for path, methods in narrowed()["paths"].items():
        resource = path.rpartition("/v1/")[2].partition("/")[0] or path
        for method in map(str.upper, methods):
            is_first = method in ("GET", "POST") and (resource, method) not in first
            first.add((resource, method))
            label = f"{method} {path}"
            yield label if is_first else pytest.param(label, marks=pytest.mark.tier("all", "prove"))


@pytest.mark.parametrize("label", list(labels()))
def test_every_operation_conforms_to_the_openapi_document(
    server: InThread, operations: dict[str, Any], label: str, size: Callable[..., int], rng: random.Random
) -> None:
    answered = drive(server, operations[label], size(REQUESTS, test=2), rng)
    assert not [code for code in answered if code >= 500]


def test_requests_get_past_the_middleware(
    server: InThread, operations: dict[str, Any], size: Callable[..., int], rng: random.Random
) -> None:
    """Otherwise the conformance test would prove nothing."""
    answered: Counter[int] = Counter()
    for label in ("GET /api/v1/applications/{name}", "GET /api/v1/projects", "POST /api/v1/applications"):
        answered += drive(server, operations[label], max(6, size(REQUESTS)), rng)
    total = answered.total()
    assert answered[200] > total / 10 and answered[400] > total / 10, dict(answered)


def blame_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer 500 to invalid requests."""
    told_of = error_details.describe_error
    monkeypatch.setattr(error_details, "describe_error", lambda error: replace(told_of(error), code=500))


def call_it_another_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_serialization, "JSON", "text/json")


def wrap_every_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_serialization, "serialize_masked", lambda document, names: orjson.dumps([document]))


@pytest.mark.parametrize(
    ("seed_bug", "label", "finding"),
    [
        (blame_itself, "POST /api/v1/applications", "Server error"),
        (call_it_another_type, "GET /api/v1/projects", "Undocumented Content-Type"),
        (wrap_every_answer, "GET /api/v1/projects", "Response violates schema"),
    ],
)
def test_proof_detects_seeded_server_bugs(
    server: InThread, operations: dict[str, Any], rng: random.Random, monkeypatch: pytest.MonkeyPatch,
    seed_bug: Callable[..., None], label: str, finding: str,
) -> None:  # fmt: skip
    seed_bug(monkeypatch)
    with pytest.raises(BaseExceptionGroup, match=finding):
        drive(server, operations[label], 20, rng)


def drive(server: InThread, operation: Any, count: int, rng: random.Random) -> Counter[int]:
    """Send that many requests, check that each response conforms, and count the status codes."""
    from schemathesis.checks import CHECKS as known
    from schemathesis.checks import load_all_checks

    load_all_checks()
    checks = [known.get_one(name) for name in CHECKS]
    assert server.api is not None
    address = f"http://127.0.0.1:{server.api.client.port}"
    server.restore()
    session, headers = requests.Session(), {"Authorization": f"Bearer {server.token()}"}
    answered: Counter[int] = Counter()

    @seed(rng.getrandbits(64))
    @settings(
        max_examples=count, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=cases(operation))
    def send(case: Any) -> None:
        answer = case.call(address, session=session, headers=headers, timeout=HANG_SECONDS)
        answered[answer.status_code] += 1
        case.validate_response(answer, checks=checks)

    send()
    return answered


def cases(operation: Any) -> Any:
    """Generate valid requests; for operations with parameters or a body, every third one is invalid."""
    from schemathesis import GenerationMode

    right = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    if not list(operation.iter_parameters()) and not operation.body:
        return right
    wrong = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    return one_of(right, right, wrong)
