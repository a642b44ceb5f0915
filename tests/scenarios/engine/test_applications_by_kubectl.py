"""Manage Applications with nothing but kubectl, against a sandbox and `argosy controller`."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.objects import dump_yaml
from support.clusters import ARGOSY, Sandbox, kubectl
from support.deadlines import HANG_SECONDS, wait_until
from support.demo import own
from support.engine import Repository, config_map
from support.failure_report import record_log

NAMESPACE = "openshift-gitops"
pytestmark = pytest.mark.usefixtures("needs_kubectl")


@contextlib.contextmanager
def controlling(running: Sandbox, home: Path) -> Iterator[None]:
    command = [str(ARGOSY), "controller", "--kubeconfig", str(running.kubeconfig), "-n", NAMESPACE, "--no-leader-elect"]
    with record_log(home / "controller.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--mirrors", "mirrors"],
            cwd=home,
            stdout=log,
            stderr=log,
            env=own(home),
            stdin=subprocess.DEVNULL,
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(HANG_SECONDS)


@pytest.mark.tier("all")
def test_kubectl_lists_refreshes_and_syncs_applications(running: Sandbox, home: Path) -> None:
    def run(*arguments: str, input: str | None = None) -> str:
        done = kubectl(running.kubeconfig, *arguments, input=input)
        assert done.code == 0, done.err
        return done.out

    def until(holds: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        end = time.monotonic() + HANG_SECONDS
        while time.monotonic() < end:
            app: dict[str, Any] = json.loads(run("get", "application", "models", "-n", NAMESPACE, "-o", "json"))
            if "status" in app and holds(app):
                return app
        raise AssertionError((home / "controller.log").read_text())

    repository = Repository(home / "repository")
    repository.push({"app/settings.yaml": config_map(a="one")})
    run("create", "namespace", "ml")
    with controlling(running, home):  # creates the CRDs and the control namespace
        wait_until(lambda: kubectl(running.kubeconfig, "get", "namespace", NAMESPACE).code == 0)
        run("create", "configmap", "argosy-cm", "-n", NAMESPACE, f"--from-literal=source.local.roots={home}")
        app = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": "models", "namespace": NAMESPACE},
            "spec": {
                "project": "default",
                "source": {"repoURL": repository.url, "path": "app", "targetRevision": "main"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
            },
        }
        run("apply", "-f", "-", input=dump_yaml(app))
        until(lambda app: app["status"]["sync"]["status"] == "OutOfSync")
        run("annotate", "application", "models", "-n", NAMESPACE, "argocd.argoproj.io/refresh=hard")
        until(lambda app: "argocd.argoproj.io/refresh" not in app["metadata"].get("annotations", {}))
        patch = '{"operation":{"sync":{}}}'
        run("patch", "application", "models", "-n", NAMESPACE, "--type", "merge", "-p", patch)
        until(lambda app: "operation" not in app and app["status"]["sync"]["status"] == "Synced")
        table = run("get", "applications", "-n", NAMESPACE)
        heads, row = table.splitlines()
        assert heads.split("   ")[0] == "NAME"
        assert "SYNC STATUS" in heads and "HEALTH STATUS" in heads
        assert row.split() == ["models", "Synced", "Healthy"]
        assert run("get", "apps", "-n", NAMESPACE) == run("get", "app", "-n", NAMESPACE) == table
        assert json.loads(run("get", "configmap", "settings", "-n", "ml", "-o", "json"))["data"] == {"a": "one"}
