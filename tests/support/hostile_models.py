"""Models, notebooks, environments and remote hosts with HTML and script injections in every text field.

In: a cluster with a model and a notebook of a team, a folder. Out: hostile statuses, a clone with environments, and an
HTTP server that acts as a model, a Git server and a cluster. Never: a payload that does more than set a marker.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from argosy.kube.client import Cluster
from argosy.kube.resource_key import ResourceKey
from support import promotion_repository
from support.hostile_installation import WHEN, hostile
from support.tenants import MODEL, NOTEBOOK, declared

PLACE = ("team-a", "thing-a")
OTHER = ("team-b", "thing-b")
NO_KINDS: dict[str, Any] = {"kind": "APIVersions", "versions": [], "groups": [], "items": [], "resources": []}


class _Host(BaseHTTPRequestHandler):
    """Responds with payloads as a model server, as a Git server that returns an error, and as a cluster."""

    def do_GET(self) -> None:
        if self.path.startswith("/good/"):
            document = {"gitVersion": hostile("cluster-version")} if self.path.endswith("/version") else NO_KINDS
            self._answer(200, json.dumps(document), "application/json")
        elif "info/refs" in self.path:  # git: an ERR packet
            lines = "# service=git-upload-pack\n", f"ERR {hostile('git-message')}\n"
            service, refused = (f"{len(line) + 4:04x}{line}" for line in lines)
            self._answer(200, f"{service}0000{refused}", "application/x-git-upload-pack-advertisement")
        else:
            status = {"kind": "Status", "status": "Failure", "message": hostile("cluster-message"), "code": 403}
            self._answer(403, json.dumps(status), "application/json")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        code, document = (400, {"error": hostile("model-refusal")}) if b"refuse" in body else (200, None)
        self._answer(code, json.dumps(document or {"predictions": [hostile("model-answer")]}), "application/json")

    def _answer(self, code: int, text: str, media: str) -> None:
        data = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words: Any) -> None: ...


@contextlib.contextmanager
def host() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Host)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def connections(url: str) -> list[dict[str, Any]]:
    return [
        declared("repository", "repo-told", url=f"{url}/told.git", type="git"),
        declared("cluster", "cl-told", server=url, name="told", config="{}"),
        declared("cluster", "cl-good", server=f"{url}/good", name="good", config="{}"),
    ]


def environments(folder: Path) -> Path:
    """Create a clone whose approver group has a hostile name; spaces are replaced because names cannot contain them."""
    promotion_repository.begin(folder)
    delivery = folder / "argosy.yaml"
    text = delivery.read_text().replace("[ann@example.com]", json.dumps([hostile("approver").replace(" ", "/")]))
    delivery.write_text(text)
    promotion_repository.Shelf(folder).commit("Let others approve")
    return folder


def _job() -> tuple[dict[str, Any], dict[str, Any]]:
    notebook: dict[str, Any] = {"git": {"url": "https://x", "ref": hostile("notebook-ref")}}
    notebook["path"] = hostile("notebook-path") + ".ipynb"
    spec = {"notebook": notebook, "parameters": {hostile("job-parameter"): hostile("job-parameter-value")}}
    files = [{"path": hostile("artefact"), "digest": hostile("digest")}]
    first = {"number": 1, "generation": 1, "phase": "Failed", "message": hostile("attempt-message")}
    attempt = {"number": 2, "generation": 1, "phase": "Failed", "gitCommit": hostile("job-commit"), "startTime": WHEN}
    attempt |= {"completionTime": WHEN, "artefacts": files}
    cell = {"cellIndex": 0, "status": "Failure", "executionTime": "1s", "output": hostile("cell-output")}
    diff = {"cellIndex": 0, "diffType": "output_mismatch", "severity": "major"}
    diff |= {"expected": hostile("golden-expected"), "actual": hostile("golden-actual")}
    counts = {"totalCells": 1, "matchedCells": 0, "mismatchedCells": 1}
    note = {"cell": 0, "severity": "warning", "category": hostile("note-category")}
    note |= {"message": hostile("note-message"), "suggestion": hostile("note-advice")}
    act = {"generation": 1, "attempt": 2, "action": "restart", "kind": "InferenceService", "name": "thing-a"}
    act |= {"status": "Failed", "message": hostile("trigger-message"), "namespace": "team-a", "time": WHEN}
    return spec, {
        "phase": "Failed", "message": hostile("job-message"), "startTime": WHEN, "completionTime": WHEN,
        "attempts": [first, attempt], "results": [{**cell, "errorMessage": hostile("cell-error")}], "triggers": [act],
        "comparisonResult": {"strategy": "exact", "result": "failed", **counts, "diffs": [diff]},
        "educationalFeedback": [note],
    }  # fmt: skip


def _model(url: str) -> tuple[dict[str, Any], dict[str, Any]]:
    failure = {"reason": "ModelLoadFailed", "message": hostile("model-failure")}
    spec = {"predictor": {"model": {"storageUri": hostile("storage")}}}
    return spec, {
        "url": url, "servingRuntimeName": hostile("runtime"),
        "modelStatus": {"lastFailureInfo": failure, "states": {"targetModelState": "FailedToLoad"}},
    }  # fmt: skip


def _unreachable() -> dict[str, Any]:
    no, loaded = {"status": "False"}, {"activeModelState": "Loaded", "targetModelState": "Loaded"}
    conditions = [{"type": "Ready", **no}, {"type": "IngressReady", **no, "message": hostile("model-condition")}]
    return {"conditions": conditions, "servingRuntimeName": "x", "modelStatus": {"states": loaded}}


def _pod() -> dict[str, Any]:
    labels = {"serving.kserve.io/inferenceservice": "thing-a"}
    metadata = {"name": "thing-a-predictor-1", "namespace": "team-a", "labels": labels}
    spec = {"containers": [{"name": "kserve-container", "image": "x"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def be_hostile(cluster: Cluster, url: str) -> None:
    for (version, kind), (spec, status) in ((NOTEBOOK, _job()), (MODEL, _model(url))):
        key = ResourceKey(version.partition("/")[0], kind, *PLACE)
        await cluster.patch(key, {"spec": spec})
        await cluster.patch(key, {"status": status}, subresource="status")
    key = ResourceKey(MODEL[0].partition("/")[0], MODEL[1], *OTHER)
    await cluster.patch(key, {"status": _unreachable()}, subresource="status")
    pod = await cluster.create(_pod())
    waiting = {"waiting": {"reason": "ErrImagePull", "message": hostile("pod-message")}}
    container = {"name": "kserve-container", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    status = {"phase": "Pending", "containerStatuses": [{**container, "state": waiting}]}
    key = ResourceKey("", "Pod", "team-a", str(pod["metadata"]["name"]))
    await cluster.patch(key, {"status": status}, subresource="status")
