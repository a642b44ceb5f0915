"""A sandbox with the simulated Argo CD operator, and helpers for tests of commands that use it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.clusters import Finished, Sandbox, argosy, kubectl
from support.deadlines import HANG_SECONDS, wait_until

GITOPS = "openshift-gitops"
HEALTH = "resource.customizations.health."
MODEL_KEY = f"{HEALTH}serving.kserve.io_InferenceService"
PVC = {"group": "", "kind": "PersistentVolumeClaim", "check": "-- of another team\nreturn {status = 'Healthy'}\n"}
REFRESH = "argocd.argoproj.io/refresh"
MERGE = "application/merge-patch+json"
RESOURCE = f"/apis/argoproj.io/v1beta1/namespaces/{GITOPS}/argocds/{GITOPS}"
APPLICATIONS = f"/apis/argoproj.io/v1alpha1/namespaces/{GITOPS}/applications"


def settings_of(namespace: str = GITOPS) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/argocd-cm"


def get(started: Sandbox, path: str) -> Any:
    answer = started.request("GET", path)
    assert answer.code == 200, answer.body
    return answer.json()


def version(started: Sandbox, path: str) -> str:
    return str(get(started, path)["metadata"]["resourceVersion"])


def data(started: Sandbox, namespace: str = GITOPS) -> dict[str, str]:
    return get(started, settings_of(namespace)).get("data") or {}


def entries(started: Sandbox) -> list[dict[str, str]]:
    return get(started, RESOURCE)["spec"].get("resourceHealthChecks") or []


def patch(started: Sandbox, path: str, content: Any) -> None:
    answer = started.request("PATCH", path, content, MERGE)
    assert answer.code == 200, answer.body


def create(started: Sandbox, path: str, manifest: Any) -> None:
    answer = started.request("POST", path, manifest)
    assert answer.code in (201, 409), answer.body


def health(started: Sandbox, *words: object, input: str | None = None, timeout: float = HANG_SECONDS) -> Finished:
    """Run `argosy health …` against this sandbox."""
    where = ("--data-dir", started.folder) if words[0] in ("apply", "verify") else ()
    return argosy("health", *words, *where, home=started.folder.parent, input=input, timeout=timeout)


def without_checks(started: Sandbox) -> None:
    """Restore the initial state: no entry in the resource, no application."""
    patch(started, RESOURCE, {"spec": {"resourceHealthChecks": None, "extraConfig": None}})
    wait_until(lambda: not any(key.startswith(HEALTH) for key in data(started)))
    started.request("DELETE", APPLICATIONS)


def ready(started: Sandbox) -> None:
    done = kubectl(
        started.kubeconfig, "-n", GITOPS, "wait", f"argocd/{GITOPS}", "--for=jsonpath={.status.phase}=Available"
    )
    assert done.code == 0, done.err


def application(name: str, sync: str, health: str, *resources: tuple[str, str]) -> dict[str, Any]:
    namespace = name.replace("-production", "-prod")
    listed = [{"group": group, "kind": kind, "name": "x", "namespace": namespace, "version": "v1"}
              for group, kind in resources]  # fmt: skip
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": GITOPS},
        "spec": {
            "project": "default",
            "destination": {"namespace": namespace, "server": "https://kubernetes.default.svc"},
            "source": {"repoURL": "https://git.example.com/llmops.git", "path": "x", "targetRevision": "main"},
        },
        "status": {"sync": {"status": sync}, "health": {"status": health}, "resources": listed},
    }


def with_environments(started: Sandbox, dev: str = "Healthy") -> None:
    """Three applications; the model of the first is ready, the last was never synced."""
    model = ("serving.kserve.io", "InferenceService")
    for name, sync, state in (
        ("llmops-dev", "Synced", dev),
        ("llmops-staging", "Synced", dev),
        ("llmops-production", "OutOfSync", "Missing"),
    ):
        create(started, APPLICATIONS, application(name, sync, state, model))


def with_model(started: Sandbox, namespace: str = "llmops-dev", name: str = "dev-qwen25-05b-instruct") -> str:
    """Create a model that serves; return its URL."""
    url = f"https://{name}-{namespace}.apps.argosy.invalid"
    create(started, "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    models = f"/apis/serving.kserve.io/v1beta1/namespaces/{namespace}/inferenceservices"
    manifest = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"predictor": {"model": {"modelFormat": {"name": "vLLM"}}}},
    }
    create(started, models, manifest)
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Stopped", "status": "False"}]
    patch(started, f"{models}/{name}/status", {"status": {"url": url, "conditions": conditions}})
    return url


@contextlib.contextmanager
def argo_cd_playing(started: Sandbox) -> Iterator[None]:
    """Handle every refresh like Argo CD: assess the application again, and remove the annotation."""
    ended = threading.Event()

    def play() -> None:
        while not ended.wait(0.05):
            for application in get(started, APPLICATIONS)["items"]:
                if (application["metadata"].get("annotations") or {}).get(REFRESH) == "hard":
                    state = application["status"]["health"]["status"]
                    judged = {"health": {"status": "Healthy" if state == "Progressing" else state}}
                    name = application["metadata"]["name"]
                    change = {"metadata": {"annotations": {REFRESH: None}}, "status": judged}
                    started.request("PATCH", f"{APPLICATIONS}/{name}", change, MERGE)

    thread = threading.Thread(target=play, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def as_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def in_order(text: str, *lines: str) -> None:
    """Check that the text contains all lines, complete and in this order."""
    remaining = iter(as_lines(text))
    for line in lines:
        assert any(candidate == line for candidate in remaining), f"{line!r} is not there, or not in order:\n{text}"


def kubeconfig_to_nowhere(folder: Path) -> Path:
    file = folder / "nowhere.kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "nowhere", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "t"}}
    file.write_text(
        json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "nowhere", "clusters": [cluster],
                    "contexts": [context], "users": [user]})
    )  # fmt: skip
    return file
