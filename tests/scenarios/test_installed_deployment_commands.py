"""The commands of the Deployments of `argosy install`, run as processes: with tokens of their service accounts, under
an unknown user id, with only HOME writable, against a sandbox that enforces RBAC.
"""

from __future__ import annotations

import base64
import contextlib
import json
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.features.install.manifests import build_manifests
from argosy.features.install.options import InstallOptions
from support import restricted_user
from support.clusters import ARGOSY, KUBECTL, Sandbox, argosy, environment, kubectl, sandbox
from support.deadlines import HANG_SECONDS
from support.engine import Repository
from support.failure_report import record_log

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argosy/applications"
pytestmark = [pytest.mark.tier("all"), pytest.mark.skipif(not KUBECTL.exists(), reason="no kubectl here")]


def until(holds: Callable[[], Any], why: Callable[[], str] = lambda: "") -> Any:
    end = time.monotonic() + HANG_SECONDS
    while not (value := holds()):
        assert time.monotonic() < end, f"it never came true {why()}"
        time.sleep(0.1)
    return value


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def configmap(name: str, **annotations: str) -> dict[str, Any]:
    named = {f"argocd.argoproj.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
    metadata = {"name": name, "annotations": named}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}


def account(box: Sandbox, name: str, folder: Path) -> Path:
    """Write a kubeconfig with a token of this service account and no administrator credentials."""
    done = kubectl(box.kubeconfig, "create", "token", name, "-n", "argosy")
    assert done.code == 0, done.err
    whole = yaml.safe_load(box.kubeconfig.read_text())
    for user in whole["users"]:
        user["user"] = {"token": done.out.strip()}
    file = folder / f"{name}.kubeconfig"
    file.write_text(json.dumps(whole))
    return file


@contextlib.contextmanager
def running(box: Sandbox, name: str, folder: Path, *more: str) -> Iterator[Path]:
    """Run the command of a Deployment; yield the file with its log."""
    pods = {
        manifest["metadata"]["name"]: manifest["spec"]["template"]["spec"]
        for manifest in build_manifests(InstallOptions())
        if manifest["kind"] == "Deployment"
    }
    _, *words = pods[name]["containers"][0]["command"]
    home = folder / f"home-of-{name}"
    home.mkdir()
    kubeconfig = account(box, name, folder)
    log = record_log(folder / f"{name}.log")
    before = restricted_user.words()
    program = [*before, *([str(home)] if before else []), str(ARGOSY), *words, "--kubeconfig", str(kubeconfig), *more]
    with log.open("w") as out:
        process = subprocess.Popen(
            program, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=environment(home), cwd=home
        )
    try:
        yield log
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_SECONDS) == 0, log.read_text()[-2000:]
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def send_request(url: str, document: Any = None, token: str = "", method: str = "") -> Any:
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE  # its certificate is self-signed
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    body = None if document is None else json.dumps(document).encode()
    request = urllib.request.Request(url, body, headers, method=method or None)
    with urllib.request.urlopen(request, timeout=HANG_SECONDS, context=tls if url.startswith("https") else None) as got:
        text = got.read().decode()
    return json.loads(text) if text.startswith(("{", "[")) else text


def is_up(url: str) -> bool:
    try:
        return bool(send_request(url))
    except (OSError, urllib.error.URLError):
        return False


def test_controller_and_server_work_with_their_accounts_as_any_user_id(tmp_path: Path) -> None:
    folder = tmp_path
    repository = Repository(folder / "repository")
    hook = configmap("before", hook="PreSync", hook_delete_policy="HookSucceeded")
    repository.push({"web/a.yaml": configmap("a"), "web/b.yaml": configmap("b"), "web/hook.yaml": hook})
    with sandbox(folder / "box", "--rbac", "--ephemeral") as box:
        done = argosy("install", "--apply", "-y", "--kubeconfig", box.kubeconfig, home=folder)
        assert done.code == 0, done.err
        roots = {"metadata": {"name": "argosy-cm"}, "data": {"source.local.roots": str(folder)}}
        box.request("POST", "/api/v1/namespaces/argosy/configmaps", roots)
        ports = [free_port() for _ in range(3)]
        page = f"https://127.0.0.1:{ports[1]}"
        serves = ("--port", str(ports[1]), "--metrics-port", str(ports[2]))
        with (
            running(box, "argosy-controller", folder, "--port", str(ports[0])) as log,
            running(box, "argosy-server", folder, *serves) as server_log,
        ):
            for port in (ports[0], ports[2]):
                for path in ("healthz", "readyz"):
                    until(lambda at=f"http://127.0.0.1:{port}/{path}": is_up(at), log.read_text)
            _delivers(box, repository, log)
            _serves(box, page, server_log)
            _is_found_by_commands(box, folder)
            logs = log.read_text() + server_log.read_text()
            assert "Traceback" not in logs and "forbidden" not in logs.lower(), logs
            _goes_with_all_that_it_delivered(box, folder)


def _delivers(box: Sandbox, repository: Repository, log: Path) -> None:
    spec = {
        "project": "default", "source": {"repoURL": repository.url, "path": "web", "targetRevision": "main"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "web"},
        "syncPolicy": {"automated": {"prune": True}, "syncOptions": ["CreateNamespace=true"]},
    }  # fmt: skip
    app = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "web"}, "spec": spec}
    assert box.request("POST", APPS, app).code == 201

    def status() -> dict[str, Any]:
        return dict(box.request("GET", f"{APPS}/web").json().get("status") or {})

    def is_synced() -> bool:
        sync = status().get("sync") or {}
        return sync.get("status") == "Synced" and sync.get("revision") == repository.head

    until(is_synced, lambda: f"{status()}\n{log.read_text()[-2000:]}")
    config_maps = box.request("GET", "/api/v1/namespaces/web/configmaps").json()["items"]
    names = {config_map["metadata"]["name"] for config_map in config_maps}
    assert {"a", "b"} <= names and "before" not in names
    events = box.request("GET", "/api/v1/namespaces/argosy/events").json()["items"]
    assert "OperationCompleted" in {event["reason"] for event in events}
    repository.push({"web/b.yaml": None})
    until(lambda: box.request("GET", "/api/v1/namespaces/web/configmaps/b").code == 404)


def _serves(box: Sandbox, page: str, log: Path) -> None:
    secret = box.request("GET", "/api/v1/namespaces/argosy/secrets/argocd-initial-admin-secret").json()
    password = base64.b64decode(secret["data"]["password"]).decode()
    token = send_request(f"{page}/api/v1/session", {"username": "admin", "password": password})["token"]
    names = [
        application["metadata"]["name"]
        for application in send_request(f"{page}/api/v1/applications", token=token)["items"]
    ]
    assert names == ["web"], log.read_text()
    tree = send_request(f"{page}/api/v1/applications/web/resource-tree", token=token)
    assert "a" in {node["name"] for node in tree["nodes"]}
    before = box.request("GET", f"{APPS}/web").json()["status"]["operationState"]["startedAt"]
    until(lambda: f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}" > before)  # timestamps have a resolution of one second
    send_request(f"{page}/api/v1/applications/web/sync", {"name": "web"}, token)

    def is_done() -> bool:
        state = box.request("GET", f"{APPS}/web").json()["status"]["operationState"]
        return state["startedAt"] != before and state["phase"] == "Succeeded"

    until(is_done)
    assert send_request(f"{page}/api/v1/session", None, token, "DELETE") == {}


def _is_found_by_commands(box: Sandbox, folder: Path) -> None:
    """Commands find the installation without a namespace flag."""
    listed = argosy("app", "list", "--kubeconfig", box.kubeconfig, home=folder)
    assert listed.code == 0 and "web" in listed.out, listed.err
    result = argosy("admin", "initial-password", "--kubeconfig", box.kubeconfig, home=folder)
    assert result.code == 0 and result.out.strip(), result.err


def _goes_with_all_that_it_delivered(box: Sandbox, folder: Path) -> None:
    """The running controller deletes what the Application delivered before its permissions are removed."""
    flags = ("--kubeconfig", box.kubeconfig)
    done = argosy("uninstall", "--applications", "-y", *flags, home=folder, timeout=HANG_SECONDS)
    assert done.code == 0 and "deleted   Application web in argosy" in done.out, done.err
    assert done.out.index("Application web in") < done.out.rindex("Deployment argosy-controller in")
    assert box.request("GET", "/api/v1/namespaces/web/configmaps/a").code == 404
    assert box.request("GET", "/apis/argoproj.io/v1alpha1").code == 404
