"""Calls the API server's ASGI application directly, without a socket, TLS or another process.

In: a control plane. Out: responses with code, headers and body; watches as a list of the events received so far.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.http.asgi import ApiServerApp
from support.deadlines import HANG_SECONDS

TOKEN = "admin-of-a-test"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE_OF = "application/json;as=Table;v=v1;g=meta.k8s.io"
CONFIGS = "/api/v1/namespaces/default/configmaps"
WIDGETS = "/apis/argosy.dev/v1/namespaces/default/widgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Answer(NamedTuple):
    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def message(self) -> str:
        return str(self.json.get("message", ""))


class Api:
    """A client of a control plane; `token` is its identity."""

    def __init__(self, plane: ControlPlane, token: str = TOKEN) -> None:
        self.plane = plane
        self._app = ApiServerApp(plane)
        self._token = token

    def of(self, token: str) -> Api:
        return Api(self.plane, token)

    def _scope(self, method: str, path: str, headers: Mapping[str, str]) -> dict[str, Any]:
        url_path, _, query = path.partition("?")
        pairs = {"authorization": f"Bearer {self._token}", **headers}
        raw = [(name.lower().encode(), value.encode()) for name, value in pairs.items() if value]
        where = {"path": unquote(url_path), "query_string": query.encode()}
        return {"type": "http", "method": method, **where, "headers": raw}

    async def ask(self, method: str, path: str, body: Any = None, media: str = "", **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
        header_map = {name.replace("_", "-"): value for name, value in headers.items()}
        messages: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": data, "more_body": False}

        async def send(message: Any) -> None:
            messages.append(dict(message))

        await self._app(self._scope(method, path, {**header_map, "content-type": media}), receive, send)
        start = messages[0]
        got = b"".join(sent_message.get("body", b"") for sent_message in messages[1:])
        return Answer(start["status"], {n.decode(): v.decode() for n, v in start["headers"]}, got)

    async def get(self, path: str, accept: str = "", **headers: str) -> Answer:
        return await self.ask("GET", path, accept=accept, **headers)

    async def post(self, path: str, body: Any, media: str = "application/json", **headers: str) -> Answer:
        return await self.ask("POST", path, body, media, **headers)

    async def put(self, path: str, body: Any, media: str = "application/json", **headers: str) -> Answer:
        return await self.ask("PUT", path, body, media, **headers)

    async def patch(self, path: str, body: Any, media: str = MERGE, **headers: str) -> Answer:
        return await self.ask("PATCH", path, body, media, **headers)

    async def apply(self, path: str, body: Any, manager: str = "m1", more: str = "", **headers: str) -> Answer:
        return await self.ask("PATCH", f"{path}?fieldManager={manager}{more}", body, APPLY, **headers)

    async def delete(self, path: str, body: Any = None, **headers: str) -> Answer:
        return await self.ask("DELETE", path, body, "application/json", **headers)

    async def made(self, path: str, body: Any) -> Any:
        """Create an object and return it; fails the test on an error."""
        answer = await self.post(path, body)
        assert answer.code == 201, answer.body
        return answer.json

    @asynccontextmanager
    async def watch(self, path: str, accept: str = "") -> AsyncIterator[Watching]:
        """Keep a watch open while the block runs."""
        watching = Watching()
        mark = "&" if "?" in path else "?"
        scope = self._scope("GET", f"{path}{mark}watch=true", {"accept": accept})
        task = asyncio.create_task(self._app(scope, watching.receive, watching.send))
        try:
            await watching.until(lambda: watching.code != 0)
            yield watching
        finally:
            watching.left.set()
            await asyncio.wait_for(task, HANG_SECONDS)


class Watching:
    """The events that a watch has received so far."""

    def __init__(self) -> None:
        self.code = 0
        self.headers: dict[str, str] = {}
        self.data = b""
        self.ended = False
        self.left = asyncio.Event()
        self._news = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.code = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.data += message.get("body", b"")
            self.ended = not message.get("more_body", False)
        self._news.set()

    @property
    def events(self) -> list[Any]:
        return [orjson.loads(line) for line in self.data.splitlines()]

    @property
    def told(self) -> list[tuple[str, str]]:
        """Type and name of every event except bookmarks."""
        return [(e["type"], e["object"]["metadata"]["name"]) for e in self.events if e["type"] != "BOOKMARK"]

    async def until(self, true: Callable[[], bool], seconds: float = HANG_SECONDS) -> None:
        async with asyncio.timeout(seconds):
            while not true():
                await self._news.wait()
                self._news.clear()

    async def count(self, number: int) -> list[Any]:
        await self.until(lambda: len(self.events) >= number)
        return self.events


async def eventually(true: Callable[[], Awaitable[bool]], seconds: float = HANG_SECONDS) -> None:
    async with asyncio.timeout(seconds):
        while not await true():
            await asyncio.sleep(0.005)


def config(name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    manifest: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return {**manifest, "data": dict(data)} if data is not None else manifest


def named(api_version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def deployment(name: str, replicas: int = 1) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return named("apps/v1", "Deployment", name, spec=spec)


def pod(name: str, node: str = "", **metadata: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "nginx"}]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


SPEC = {"type": "object", "properties": {"size": {"type": "integer"}, "mode": {"type": "string", "default": "slow"}}}


def schema(spec: Mapping[str, Any] | None = None) -> dict[str, Any]:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "properties": {"spec": dict(spec or SPEC), "status": free}}


def version(name: str = "v1", *, storage: bool = True, spec: Any = None, **fields: Any) -> dict[str, Any]:
    version_spec = {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema(spec)}}
    return {**version_spec, **fields}


def definition(*versions: Mapping[str, Any], scope: str = "Namespaced", plural: str = "widgets") -> dict[str, Any]:
    """A CRD of widgets.argosy.dev, with status and scale subresources unless versions are given."""
    parts = {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}}
    kind = plural.removesuffix("s").capitalize()
    names = {"plural": plural, "singular": plural.removesuffix("s"), "kind": kind, "listKind": f"{kind}List"}
    spec = {"group": "argosy.dev", "scope": scope, "names": names}
    version_specs = list(versions) or [version(subresources=parts)]
    return named("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.argosy.dev") | {
        "spec": {**spec, "versions": version_specs}
    }


def widget(name: str, version: str = "v1", **spec: Any) -> dict[str, Any]:
    return named(f"argosy.dev/{version}", "Widget", name, spec=spec)


def owned_by(owner: Mapping[str, Any], **flags: bool) -> list[dict[str, Any]]:
    about = owner["metadata"]
    kind = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return [{**kind, "name": about["name"], "uid": about["uid"], **flags}]
