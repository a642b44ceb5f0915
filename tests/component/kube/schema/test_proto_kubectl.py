"""Protobuf bodies that a real kubectl sends are decoded correctly."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest

from argosy.kube.schema import protobuf_envelope
from argosy.kube.schema.builtin_go_struct_fields import find_builtin_type
from argosy.kube.schema.builtin_type_json_codec import decode
from support.deadlines import HANG_SECONDS
from support.tiers import in_test_all

KUBECTL = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")


class Recorder(BaseHTTPRequestHandler):
    """Answers every POST with the received object, as JSON."""

    bodies: list[tuple[str, bytes]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.bodies.append((self.headers["Content-Type"], body))
        answer = orjson.dumps(protobuf_envelope.decode(body).value)
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def recorder() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    Recorder.bodies = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", Recorder.bodies
    server.shutdown()
    server.server_close()


CREATED = {
    "deployment web --image=nginx --replicas=0 --port=80": {
        "metadata": {"name": "web"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}},
    },
    "secret generic s --from-literal=a=b": {"data": {"a": "Yg=="}},
    "cronjob cj --image=busybox --schedule=@hourly -- sh -c true": {"spec": {"schedule": "@hourly"}},
    "service clusterip svc --tcp=80:http": {"metadata": {"labels": {"app": "svc"}}},
    "ingress i --rule=example.test/*=svc:80": {"metadata": {"name": "i"}},
    "quota q --hard=cpu=1500m,pods=2": {"spec": {"hard": {"cpu": "1500m", "pods": "2"}}},
    "poddisruptionbudget p --selector=a=b --min-available=50%": {"spec": {"minAvailable": "50%"}},
    "priorityclass pc --value=-10 --global-default=false": {"value": -10},
}


def contains(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(contains(whole.get(key), value) for key, value in part.items())
    return bool(whole == part)


def create(command: str, url: str, home: Path, *flags: str) -> str:
    words = [str(KUBECTL), "create", *flags, *command.split(" -- ")[0].split()]
    words += [f"--server={url}", "-n", "default", f"--cache-dir={home}"]
    words += ["--", *command.split(" -- ")[1].split()] if " -- " in command else []
    environment = {"HOME": str(home), "KUBECONFIG": str(home / "none")}
    done = subprocess.run(words, check=False, capture_output=True, text=True, env=environment, timeout=HANG_SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", [*[*CREATED][:3], *map(in_test_all, [*CREATED][3:])])
def test_kubectl_create_body_decodes_to_what_kubectl_prints(
    command: str, recorder: tuple[str, list[tuple[str, bytes]]], tmp_path: Path
) -> None:
    url, bodies = recorder
    create(command, url, tmp_path)
    content_type, body = bodies[-1]
    assert content_type == protobuf_envelope.CONTENT_TYPE
    read = protobuf_envelope.decode(body)
    assert protobuf_envelope.encode(read.value) == body
    assert contains(read.value, CREATED[command]), read.value
    printed = orjson.loads(create(command, url, tmp_path, "--dry-run=client", "-o", "json"))
    group, _, version = read.api_version.rpartition("/")
    type_ = find_builtin_type(group, version, read.kind)
    assert type_ is not None
    # Only the sent object has the namespace.
    for manifest in (read.value, printed):
        manifest["metadata"].pop("namespace", None)
    assert read.value == decode(type_, printed, kind=read.kind, api_version=read.api_version).manifest
