"""Logs, metrics and health endpoints of a sharding controller that runs as its own process."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support import prometheus_text
from support.deadlines import HANG_SECONDS
from support.engine import config_map
from support.sharded_controllers import APPS, CONTROL, SharedWork, shared_work

FLAGS = ("--shards", "auto", "--log-format", "json", "--stuck-after", "2")


class Operated:
    """One controller with its HTTP port and its log."""

    def __init__(self, work: SharedWork, port: int) -> None:
        self.work, self._port = work, port

    def ask(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=HANG_SECONDS) as got:
                return got.status, got.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metrics(self) -> list[prometheus_text.Series]:
        code, text = self.ask("/metrics")
        assert code == 200
        return prometheus_text.read(text)

    def lines(self) -> list[dict[str, Any]]:
        whole = self.work.controllers[0].log().rpartition("\n")[0]  # the last line may be incomplete
        return [json.loads(line) for line in whole.splitlines()]

    def until(self, holds: Callable[[], Any]) -> Any:
        end = time.monotonic() + HANG_SECONDS
        while not (value := holds()):
            assert time.monotonic() < end, f"{self.ask('/healthz')}\n{self.work.controllers[0].log()[-2000:]}"
            time.sleep(0.1)
        return value

    def until_ill(self, reason: str) -> str:
        """Wait until /healthz fails with this reason, and return its text."""

        def said() -> str:
            code, text = self.ask("/healthz")
            return text if code == 503 and reason in text else ""

        return str(self.until(said))

    def until_well(self) -> None:
        self.until(lambda: self.ask("/healthz") == (200, "ok\n"))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    port, folder = free_port(), tmp_path_factory.mktemp("operated")
    with shared_work(folder, 3, controllers=1, flags=(*FLAGS, "--port", str(port))) as work:
        yield Operated(work, port)


def test_application_log_lines_have_application_and_revision_fields(operated: Operated) -> None:
    lines = operated.lines()
    (member,) = (lease["spec"]["holderIdentity"] for lease in operated.work.members())
    assert any(line.get("member") == member for line in lines)
    assert all(line["level"] in ("info", "warning") and line["msg"] for line in lines)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", line["time"]) for line in lines)
    head = operated.work.repository.head
    for app in operated.work.apps:
        own = [line for line in lines if line.get("application") == f"{CONTROL}/{app}"]
        done = [line for line in own if "OperationCompleted" in line["msg"]]
        rendered = [line for line in own if line["msg"].startswith("manifests generated")]
        assert done and rendered
        for log_line in (*done, *rendered):
            assert (log_line["project"], log_line["revision"], log_line["member"]) == ("default", head, member)
        assert not [line for line in lines if f"/{app}:" in line["msg"] and line not in own]


def test_metrics_match_what_the_controller_did(operated: Operated) -> None:
    work, one = operated.work, prometheus_text.one
    metrics = operated.metrics()
    here = "https://kubernetes.default.svc"
    assert one(metrics, "argosy_shard_applications") == one(metrics, "argosy_applications") == len(work.apps)
    assert len(prometheus_text.some(metrics, "argocd_app_info")) == len(work.apps)
    for app in work.apps:
        assert one(metrics, "argocd_app_info", name=app, sync_status="Synced", dest_server=here, namespace=CONTROL) == 1
        assert (
            one(metrics, "argocd_app_sync_total", name=app, phase="Succeeded", dry_run="false", project="default") == 1
        )
        assert one(metrics, "argocd_app_orphaned_resources_count", name=app, namespace=CONTROL, project="default") == 0
    assert one(metrics, "argocd_app_reconcile_count", namespace=CONTROL, dest_server=here) >= len(work.apps)
    creations = prometheus_text.some(metrics, "argocd_app_k8s_request_total", verb="create", name=work.apps[0])
    assert creations and {sample.labels["project"] for sample in creations} == {"default"}
    patches = prometheus_text.some(metrics, "argocd_app_k8s_request_total", verb="patch", resource_kind="Application")
    assert sum(sample.value for sample in patches) >= len(work.apps)
    assert {sample.labels["server"] for sample in patches} == {here}
    assert one(metrics, "argocd_git_request_total", repo=str(work.repository.path), request_type="fetch") >= 1
    labels = {"repo": str(work.repository.path), "request_type": "ls-remote"}
    assert one(metrics, "argocd_git_request_duration_seconds_count", **labels) >= 1
    assert one(metrics, "argocd_cluster_connection_status", server=here) == 1
    assert one(metrics, "argocd_cluster_api_resource_objects", server=here) > len(work.apps)
    assert 0 <= one(metrics, "argocd_cluster_cache_age_seconds", server=here) < 180
    assert one(metrics, "argocd_cluster_events_total", server=here) > len(work.apps)
    assert one(metrics, "workqueue_depth", name="app_reconciliation_queue") == 0
    assert one(metrics, "argosy_workers") == 2 * 6 and one(metrics, "argosy_members") == 1
    (member,) = prometheus_text.some(metrics, "argosy_member")
    assert member.value == 1 and member.labels["member"] == work.members()[0]["spec"]["holderIdentity"]
    assert operated.ask("/healthz") == operated.ask("/readyz") == (200, "ok\n")


def test_paused_application_created_later_is_counted(operated: Operated) -> None:
    """No controller reconciles or claims a paused Application, but it belongs to a shard all the same."""
    work, one = operated.work, prometheus_text.one
    template = work.listed()[0]
    metadata = {"name": "paused", "annotations": {"argocd.argoproj.io/skip-reconcile": "true"}}
    app = {
        "apiVersion": template["apiVersion"],
        "kind": template["kind"],
        "metadata": metadata,
        "spec": template["spec"],
    }
    assert work.running.request("POST", APPS, app).code == 201
    operated.until(lambda: one(operated.metrics(), "argosy_applications") > len(work.apps))
    metrics = operated.metrics()
    assert one(metrics, "argosy_shard_applications") == one(metrics, "argosy_applications")
    assert one(metrics, "argocd_app_info", name="paused") == 1
    assert work.running.request("DELETE", f"{APPS}/paused").code == 200
    operated.until(lambda: one(operated.metrics(), "argosy_applications") == len(work.apps))


def test_log_and_metrics_contain_no_repository_password(operated: Operated) -> None:
    """Passwords of a repository Secret and of a repository URL; both name a host that does not answer."""
    work, canaries = operated.work, ("cnry-5f0c-in-a-secret", "cnry-91ab-in-an-address")
    host = f"127.0.0.1:{free_port()}"
    labels = {"argocd.argoproj.io/secret-type": "repository"}
    metadata = {"name": "private", "namespace": CONTROL, "labels": labels}
    data = {"url": f"https://{host}/one.git", "username": "bot", "password": canaries[0]}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}
    assert work.running.request("POST", f"/api/v1/namespaces/{CONTROL}/secrets", secret).code == 201
    for name, url in (("one", data["url"]), ("two", f"https://bot:{canaries[1]}@{host}/two.git")):
        spec = {
            "project": "default", "source": {"repoURL": url, "path": name},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
        }  # fmt: skip
        app = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "spec": spec}
        assert work.running.request("POST", APPS, {**app, "metadata": {"name": name}}).code == 201
    for name in ("one", "two"):
        operated.until(lambda of=f"{CONTROL}/{name}": of in [line.get("application") for line in operated.lines()])
        assert work.running.request("DELETE", f"{APPS}/{name}").code == 200
    output = work.controllers[0].log() + operated.ask("/metrics")[1]
    assert host in output and not [canary for canary in canaries if canary in output]


@contextmanager
def asleep(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.tier("all")
def test_healthz_fails_while_the_api_server_hangs(operated: Operated) -> None:
    operated.until_well()
    with asleep(operated.work.running.process.pid):
        message = operated.until_ill("its Lease as")
        assert "without renewal" in message
        assert prometheus_text.one(operated.metrics(), "argosy_member") == 0
        assert operated.ask("/readyz") == operated.ask("/livez") == (200, "ok\n")
    operated.until_well()


@pytest.mark.tier("all")
def test_healthz_names_the_stuck_application_until_it_continues(operated: Operated) -> None:
    """The render process is stopped, so the worker that waits for it is stuck."""
    operated.until_well()
    app, work = operated.work.apps[0], operated.work
    with asleep(renderer_of(work.controllers[0].process.pid)):
        work.repository.push({f"{app}/settings.yaml": config_map(app, value="held up")})
        message = operated.until_ill("has been reconciling for")
        assert f"Application {CONTROL}/{app} has been reconciling for" in message
        assert operated.ask("/livez")[0] == 503
        assert prometheus_text.one(operated.metrics(), "workqueue_longest_running_processor_seconds") > 2
    operated.until_well()


@pytest.mark.tier("all")
def test_controller_started_without_api_server_becomes_ready_later(operated: Operated) -> None:
    work, port = operated.work, free_port()
    work.proxy.is_away = True
    try:
        one = work.start(*FLAGS, "--port", str(port))
        late = Operated(work, port)
        late.until(lambda: one.log().count("API server is not reachable") > 1)
        assert late.ask("/livez") == (200, "ok\n") and late.ask("/readyz")[0] == 503
    finally:
        work.proxy.is_away = False
    late.until(lambda: late.ask("/readyz") == (200, "ok\n"))
    one.end(signal.SIGTERM)
    assert one.process.wait(HANG_SECONDS) == 0
    operated.until(lambda: work.are_shared(1))
    operated.until_well()


def renderer_of(pid: int) -> int:
    """Return the pid of the render process: the child process that is not git."""
    for process_folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process_folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (process_folder / "cmdline").read_bytes().decode()
        except (OSError, ValueError):
            continue
        if parent == pid and "git" not in Path(command.split("\0")[0]).name:
            return int(process_folder.name)
    raise AssertionError("nothing renders")
