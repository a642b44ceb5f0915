"""The served OpenAPI document, driven by schemathesis against a running server: no 5xx, answers as it promises.

Names in the document are narrowed to those that exist, so that requests get past the doors; what is sent otherwise is
schemathesis' own, right and wrong. `make prove` sends the full number of requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import one_of

from argosy.model.errors import Conflict
from argosy.server.api.openapi import document
from argosy.server.table import TABLE
from support.api_with_engine import CONTROL, ApiScene, a_folder, real_scene
from support.engine import config_map
from support.proof_scale import scale

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis: pip install argosy[dev]")
checks = pytest.importorskip("schemathesis.checks")
pytestmark = pytest.mark.tier("test", "prove")
REQUESTS = max(2, int(40 * scale()))  # to each operation
SEED = int(os.environ.get("ARGOSY_PROOF_SEED", "10"))
PATIENCE = 60.0
HERE, REPOSITORY = "https://kubernetes.default.svc", "file:///nowhere/at-all"
ANSWERED: Counter[int] = Counter()  # by status
checks.load_all_checks()
CHECKS = [
    checks.CHECKS.get_one(name)
    for name in (
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_schema_conformance",
        "response_headers_conformance",
    )
]
# What is there, by the name of a parameter, or by the resource that it is a parameter of.
THERE: dict[str, list[str]] = {
    "ns": [CONTROL], "project": ["default", "team"], "id": [HERE], "repo": [REPOSITORY],
    "kind": ["ConfigMap", "Pod", "Deployment", "Secret"], "resourceName": ["settings", "one", "web", "hidden"],
    "namespace": ["ml", ""], "group": ["", "apps"], "podName": ["one", "nobody"], "appNamespace": [CONTROL, ""],
    "refresh": ["normal", "hard", "soft"], "object": ["configmap/settings", "pod/one"], "revision": ["main", "0" * 40],
    "selector": ["a=b", "a in (b,c)", "==="], "fields": ["items.metadata.name", "-items.status", "spec"],
    "container": ["main", ""], "cascade": ["false", "true"], "limit": ["1", "0", "x"],
    "applications": ["models", "other", "nothing"], "projects": ["default", "team", "nothing"], "account": ["admin"],
}  # fmt: skip
LEFT_OUT = ("/stream/", "/api/webhook")  # streams end when the reader goes; webhooks have a proof of their own


def narrowed() -> dict[str, Any]:
    """Who asks is shown by the test, so the document need not say how."""
    made = copy.deepcopy(document(TABLE, "argosy", "1.2.3"))
    del made["security"], made["components"]["securitySchemes"]
    for path in list(made["paths"]):
        if any(each in path for each in LEFT_OUT):
            del made["paths"][path]
            continue
        for operation in made["paths"][path].values():
            kept = [each for each in operation["parameters"] if each["name"] != "follow"]
            operation["parameters"] = [_narrow(each, path) for each in kept]
            operation.pop("security", None)
    return made


def _narrow(parameter: dict[str, Any], path: str) -> dict[str, Any]:
    name = parameter["name"]
    if name == "name" and parameter["in"] == "path":
        name = next((part for part in path.split("/") if part in THERE), "")
    there = [each for each in THERE.get(name, ()) if each or parameter["in"] == "query"]
    if not there or parameter["schema"].get("type") == "array":
        return parameter
    return {**parameter, "schema": {"type": "string", "enum": there}}


class InThread:
    """A server with an engine on a loop of its own: who drives it waits for each answer."""

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
        """What requests may have deleted."""
        for manifest in (a_repository(), a_project()):
            with contextlib.suppress(Conflict):
                await api.room.cluster.create(manifest)
        for name, path in (("models", "app"), ("other", "other")):
            with contextlib.suppress(Conflict):
                await api.room.deliver(name, path, syncPolicy={"automated": {"selfHeal": True}})
        await api.seen("models", lambda app: True)

    def restore(self) -> None:
        assert self.api and self.loop
        asyncio.run_coroutine_threadsafe(self.deliver(self.api), self.loop).result(PATIENCE)

    def token(self) -> str:
        """A new one for each operation: some end the session that they are asked by."""
        assert self.api and self.loop
        return asyncio.run_coroutine_threadsafe(self.api.token(), self.loop).result(PATIENCE)

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(PATIENCE), "the server did not start"

    def stop(self) -> None:
        self._over.set()
        self._thread.join(PATIENCE)


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
    found = InThread(tmp_path_factory.mktemp("openapi"))
    found.start()
    yield found
    found.stop()


def operations() -> Iterator[Any]:
    for found in schemathesis.openapi.from_dict(narrowed()).get_all_operations():
        yield found.ok()


@pytest.mark.parametrize("operation", list(operations()), ids=lambda each: each.label)
def test_every_operation_answers_as_the_document_says(server: InThread, operation: Any) -> None:
    assert server.api is not None
    address = f"http://127.0.0.1:{server.api.client.port}"
    server.restore()
    session, shown = requests.Session(), {"Authorization": f"Bearer {server.token()}"}

    @seed(SEED)
    @settings(
        max_examples=REQUESTS, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=cases(operation))
    def send(case: Any) -> None:
        answer = case.call(address, session=session, headers=shown, timeout=PATIENCE)
        ANSWERED[answer.status_code] += 1
        case.validate_response(answer, checks=CHECKS)

    send()


def cases(operation: Any) -> Any:
    """As the document wants it; and of what takes anything, every third one as it does not."""
    right = operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE)
    if not list(operation.iter_parameters()) and not operation.body:
        return right
    wrong = operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)
    return one_of(right, right, wrong)


def test_requests_got_past_the_doors() -> None:
    if not ANSWERED:
        pytest.skip("runs after the operations of the same process")
    total = ANSWERED.total()
    print(dict(ANSWERED))
    assert ANSWERED[200] > total / 10 and ANSWERED[400] > total / 10, dict(ANSWERED)
    assert not [code for code in ANSWERED if code >= 500]
