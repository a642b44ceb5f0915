"""A site with models, notebooks and environments for browser tests; the test writes the live objects.

In: a folder. Out: a World in a background thread. Never: mocks a cluster; the cluster is embedded and has no engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from argosy.features.serve.http_server import open_listener, serve_application
from argosy.features.serve.routes import build_route_table
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.cluster_view.cluster_view import open_cluster_view
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.kube.objects import Manifest, key_of
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.web.live_updates.hub import LivePageHub
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from argosy.web.serve_options import ServeOptions
from argosy.web.server_audit_counters_and_limits import ServerState
from argosy.web.site_services import Site
from support import model_manifests, promotion_repository
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, shared_crew
from support.full_site import World
from support.full_site import _loop as sites_loop
from support.hostile_texts import PAYLOADS
from support.page_site import KnownPeople, anything

KINDS = (
    "applications.argoproj.io", "appprojects.argoproj.io", "inferenceservices.serving.kserve.io",
    "notebookvalidationjobs.mlops.mlops.dev",
)  # fmt: skip
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="  # one red dot
)
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": "# Frauds"},
        {"cell_type": "code", "execution_count": 1, "source": "print(7)",
         "outputs": [{"output_type": "stream", "name": "stdout", "text": "seven\n"},
                     {"output_type": "display_data", "data": {"image/png": PIXEL, "text/plain": "<Figure>"}}]},
        {"cell_type": "code", "execution_count": 2, "source": "frame",
         "outputs": [{"output_type": "execute_result", "data": {"text/html": "<table id=t><tr><td>8</td></tr></table>",
                                                               "text/plain": "   0\n0  8"}}]},
    ]
}  # fmt: skip


class _Model(BaseHTTPRequestHandler):
    """Acts as a model server."""

    def do_GET(self) -> None:
        self._answer({"name": "fraud", "ready": True}, 200 if "/v1/" in self.path else 404)

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer({"predictions": [sum(instance) for instance in request["instances"]]})

    def _answer(self, document: Any, code: int = 200) -> None:
        data = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words: Any) -> None: ...


class MachinesWorld(World):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.cluster: EmbeddedCluster
        self.model = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
        threading.Thread(target=self.model.serve_forever, args=(0.01,), daemon=True).start()
        readers = {"rita": lambda _, action, __: action == "get", "bob": _of_others, "dora": _all_but_frauds}
        self.people = KnownPeople({"ann": anything, "ann@example.com": anything, **readers})

    async def _live(self, furnish: Any) -> None:
        """Serve the site without an engine: `_fill` and the tests write all objects."""
        with pytest.MonkeyPatch.context() as patch:
            promotion_repository.alone(patch)
            promotion_repository.begin(self.folder / "web")
        async with contextlib.AsyncExitStack() as stack:
            self.cluster = await stack.enter_async_context(EmbeddedCluster.open())
            await self._fill()
            desk = ApplicationService(self.cluster, "a test", CONTROL, CONTROL)
            repositories = Repositories(self.folder / "mirrors", SourceSettings())
            stack.callback(repositories.close)
            lookout = await stack.enter_async_context(open_cluster_view(desk, repositories, shared_crew()))
            options = ServeOptions(
                version="1.2.3",
                is_simulated=True,
                repository=self.folder / "web",
                notebook_runs_folder=self.folder / "data",
            )
            state = ServerState()
            table = build_route_table(state)
            hub = LivePageHub(lookout, table.live_pages)
            stack.push_async_callback(hub.close)
            self.site = Site(desk, lookout, self.people, hub, options, state)
            entry = WebApplication(self.site, table.routes)
            self.port = await stack.enter_async_context(
                serve_application(entry, [open_listener("127.0.0.1", 0)], on_closing=entry.close)
            )
            self._ready.set_result(None)
            await self._end.wait()
        self.model.shutdown()
        self.model.server_close()

    def run(self, work: Any) -> Any:
        """Run a coroutine in the event loop of the site."""
        return asyncio.run_coroutine_threadsafe(work, sites_loop()).result(HANG_SECONDS)

    async def put(self, manifest: Manifest) -> Manifest:
        """Create an object if it does not exist, then write its status."""
        key, subresource = key_of(manifest), "" if manifest["kind"] == "Application" else "status"
        plain = {name: value for name, value in manifest.items() if not subresource or name != "status"}
        if await self.cluster.get(key) is None:
            await self.cluster.create(plain)
        return await self.cluster.patch(key, {"status": manifest["status"]}, subresource=subresource)

    async def _fill(self) -> None:
        for name in KINDS:
            await self.cluster.create(load_definition(name))
        for name in (CONTROL, "ml"):
            await self.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name, data in (("argocd-cm", {"accounts.tool": "apiKey"}), ("argosy-cm", {}), ("argocd-rbac-cm", {})):
            metadata = {"name": name, "namespace": CONTROL}
            await self.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        service, job = self.service(), model_manifests.job()
        del job["metadata"]["uid"]
        rows = [_resource(service), _resource(job)]
        await self.put(_application("frauds", rows))
        for name in ("dev", "staging", "production"):
            await self.put(_application(f"web-{name}", [], path=name))
        for manifest in (service, model_manifests.pod(), job):
            await self.put(_whole(manifest))
        live = await self.cluster.get(key_of(job))
        assert live is not None
        run_folder = self.folder / "data" / "runs" / "ml" / "train" / f"{live['metadata']['uid'][:8]}-1-2"
        run_folder.mkdir(parents=True)
        (run_folder / "output.ipynb").write_text(json.dumps(NOTEBOOK))
        labels = {"app": "fraud"}
        container = {"name": "kserve-container", "image": "example.com/model:1"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        metadata = {"name": "fraud-predictor", "namespace": "ml"}
        await self.cluster.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
        await self._be_hostile()

    def service(self, **status: Any) -> Manifest:
        manifest = model_manifests.service(**status)
        manifest["status"]["url"] = f"http://127.0.0.1:{self.model.server_address[1]}"
        return manifest

    async def _be_hostile(self) -> None:
        """Add a job, its output notebook and a model with injection payloads in all texts."""
        job = model_manifests.job(message=PAYLOADS[0], results=_results(), educationalFeedback=_notes())
        job["metadata"] = {"name": "hostile", "namespace": "ml", "generation": 1}
        job["spec"]["parameters"] = {"p": PAYLOADS[1]}
        live = await self.put(job)
        run_folder = self.folder / "data" / "runs" / "ml" / "hostile" / f"{live['metadata']['uid'][:8]}-1-2"
        run_folder.mkdir(parents=True)
        (run_folder / "output.ipynb").write_text(json.dumps({"cells": [_attack(payload) for payload in PAYLOADS]}))
        bad = self.service(url=PAYLOADS[2], servingRuntimeName=PAYLOADS[3])
        bad["metadata"] = {"name": "hostile", "namespace": "ml"}
        bad["spec"]["predictor"]["model"]["storageUri"] = PAYLOADS[4]
        bad["status"]["url"] = "javascript:alert(1)"
        bad["status"]["conditions"] = [
            {"type": "Ready", "status": "False", "message": payload} for payload in PAYLOADS[:1]
        ]
        await self.put(bad)


def _of_others(resource: str, action: str, thing: str) -> bool:
    """Permissions of a user who can access only the project `other`."""
    return thing.startswith("other/")


def _all_but_frauds(resource: str, action: str, thing: str) -> bool:
    """Permissions of a user who can access everything except the Application default/frauds."""
    return thing != "default/frauds"


def _results() -> list[dict[str, Any]]:
    return [
        {
            "cellIndex": number,
            "status": "Failure" if number % 2 else "Success",
            "executionTime": "0.1s",
            "output": payload,
            "errorMessage": payload if number % 2 else "",
        }
        for number, payload in enumerate(PAYLOADS)
    ]


def _notes() -> list[dict[str, Any]]:
    return [{"cell": number, "severity": "warning", "category": "x", "message": payload, "suggestion": payload}
            for number, payload in enumerate(PAYLOADS[:50])]  # fmt: skip


def _attack(text: str) -> dict[str, Any]:
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": text},
        {"output_type": "display_data", "data": {"text/html": text, "text/plain": text}},
        {"output_type": "display_data", "data": {"image/png": text, "text/plain": text}},
        {"output_type": "display_data", "data": {"image/svg+xml": text, "application/javascript": text}},
        {"output_type": "error", "ename": text, "evalue": text, "traceback": [text]},
    ]
    return {"cell_type": "code", "execution_count": 1, "source": text, "outputs": outputs}


def _application(name: str, resources: list[dict[str, Any]], path: str = "p") -> Manifest:
    source = {"repoURL": "https://example.com/web.git", "path": path, "targetRevision": "main"}
    history = {"id": 0, "revision": "a" * 40, "deployedAt": "2026-11-15T10:00:00Z", "source": source}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": CONTROL},
        "spec": {"project": "default", "source": source, "destination": {"name": "in-cluster", "namespace": "ml"}},
        "status": {
            "resources": resources, "sync": {"status": "Synced"}, "health": {"status": "Healthy"}, "history": [history]
        },
    }  # fmt: skip


def _resource(manifest: Manifest) -> dict[str, Any]:
    group, _, version = manifest["apiVersion"].partition("/")
    metadata = manifest["metadata"]
    return {"group": group, "version": version, "kind": manifest["kind"], "namespace": metadata["namespace"],
            "name": metadata["name"], "status": "Synced"}  # fmt: skip


def _whole(manifest: Manifest) -> Manifest:
    """Add the fields that the cluster requires."""
    completed = copy.deepcopy(manifest)
    if completed["kind"] == "Pod":
        completed["spec"] = {"containers": [{"name": "kserve-container", "image": "example.com/model:1"}]}
        for container in (*completed["status"]["containerStatuses"], *completed["status"]["initContainerStatuses"]):
            container |= {
                "image": "example.com/model:1",
                "imageID": "",
                "restartCount": 0,
                "ready": container.get("ready", True),
            }
    if completed["kind"] == "NotebookValidationJob":
        annotations = {"argocd.argoproj.io/tracking-id": "frauds:mlops.mlops.dev/NotebookValidationJob:ml/train"}
        completed["metadata"]["annotations"] = annotations
    return completed


async def _nothing(_: Any) -> None: ...


@contextlib.contextmanager
def machines_world(folder: Path) -> Iterator[MachinesWorld]:
    site_world = MachinesWorld(folder)
    site_world.start(_nothing)
    try:
        yield site_world
    finally:
        site_world.stop()
