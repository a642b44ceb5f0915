"""A repository with 1,000 applications: how many a commit renders, and how long it takes to find out which.

Each application is an overlay on a base of its own; ten of them share another base. Exits with 1 if a commit renders
more than it must, or if asking for all takes longer than the limit. After a new start, when every folder is read from
Git again, there is no limit.

Run: python bench/repository_of_apps.py [how many applications]
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from argosy.gitops.application import Application, read_application
from argosy.gitops.application.step_results import Checkout, RenderResult
from argosy.gitops.render import BuildSettings, are_inputs_unchanged, build_environment, render
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories

LIMIT = 0.5  # seconds, for all applications together
SHARED = 10  # applications on one shared base
SETTINGS = BuildSettings()
NEW_START = "after a new start"

DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
      - {{name: server, image: "registry.example/{name}:1", ports: [{{containerPort: 8080}}]}}
"""
PATCH = """apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec: {{replicas: {replicas}}}
"""
OVERLAY = "resources: [../../base]\nnamePrefix: production-\npatches: [{path: patch.yaml}]\n"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: shared}}\ndata: {{generation: '{generation}'}}\n"


def files_of(count: int) -> dict[str, str]:
    """Four files an application, two for each shared base."""
    files = {}
    for number in range(count):
        name, group = f"app-{number:04}", f"shared/group-{number // SHARED:03}"
        files[f"{group}/kustomization.yaml"] = "resources: [config.yaml]\n"
        files[f"{group}/config.yaml"] = CONFIG.format(generation=1)
        base, overlay = f"apps/{name}/base", f"apps/{name}/overlays/production"
        files[f"{base}/kustomization.yaml"] = f"resources: [deployment.yaml, ../../../{group}]\n"
        files[f"{base}/deployment.yaml"] = DEPLOYMENT.format(name=name)
        files[f"{overlay}/kustomization.yaml"] = OVERLAY
        files[f"{overlay}/patch.yaml"] = PATCH.format(name=name, replicas=2)
    return files


def applications(count: int, url: str) -> list[Application]:
    return [
        read_application(
            {
                "metadata": {"name": f"app-{number:04}", "namespace": "argocd"},
                "spec": {
                    "destination": {"namespace": "default", "server": "https://kubernetes.default.svc"},
                    "source": {
                        "repoURL": url,
                        "path": f"apps/app-{number:04}/overlays/production",
                        "targetRevision": "main",
                    },
                },
            }
        )
        for number in range(count)
    ]


class Served:
    """A bare repository, written to without a work tree."""

    def __init__(self, path: Path) -> None:
        self.path = path
        subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(path)], check=True)

    def commit(self, files: Mapping[str, str], *, is_first: bool = False) -> None:
        lines = ["commit refs/heads/main", "committer bench <bench@example.com> 0 +0000", "data 1", "c"]
        lines += [] if is_first else ["from refs/heads/main^0"]
        for path, text in files.items():
            lines += [f"M 100644 inline {path}", f"data {len(text.encode())}", text]
        command = ["git", f"--git-dir={self.path}", "fast-import", "--quiet"]
        env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
        subprocess.run(command, input="\n".join([*lines, ""]).encode(), env=env, check=True)


class Desk:
    """What a controller does at every refresh: ask what is current, render what is not."""

    def __init__(self, apps: list[Application]) -> None:
        self.apps = apps
        self.rendered: dict[str, RenderResult] = {}

    def stale(self, checkout: Checkout) -> list[Application]:
        return [app for app in self.apps if not self._is_current(app, checkout)]

    def render(self, apps: list[Application], checkout: Checkout) -> None:
        for app in apps:
            self.rendered[app.name] = render(checkout, app, app.sources[0], SETTINGS)

    def _is_current(self, app: Application, checkout: Checkout) -> bool:
        last_render = self.rendered.get(app.name)
        environment = build_environment(app, app.sources[0], checkout.revision, SETTINGS)
        return last_render is not None and are_inputs_unchanged(last_render.inputs, {"": checkout.tree}, environment)


async def measure(folder: Path, count: int) -> list[tuple[str, int, int, float, float]]:
    """Rows: what happened, how many must be rendered, how many were found, seconds to find out, seconds to render."""
    served = Served(folder / "served.git")
    files = files_of(count)
    served.commit(files, is_first=True)
    repositories = Repositories(folder / "mirrors", SourceSettings(local_roots=(folder,)))
    desk = Desk(applications(count, str(served.path)))
    one = {"apps/app-0007/overlays/production/patch.yaml": PATCH.format(name="app-0007", replicas=3)}
    shared = {"shared/group-002/config.yaml": CONFIG.format(generation=2)}
    changes: list[tuple[str, dict[str, str], int]] = [
        ("the first time", {}, count),
        ("a commit that touches one", one, 1),
        ("one that touches a base of 10", shared, SHARED),
        ("one that touches none", {"README.md": "about\n"}, 0),
    ]
    rows = []
    try:
        for description, change, expected in changes:
            if change:
                served.commit(change)
            checkout = await repositories.checkout(str(served.path), "main")
            started = time.perf_counter()
            stale = desk.stale(checkout)
            checked_at = time.perf_counter()
            desk.render(stale, checkout)
            rows.append((description, expected, len(stale), checked_at - started, time.perf_counter() - checked_at))
        repositories.close()  # as after a start: the inputs are known, and no folder of the mirror is
        repositories = Repositories(folder / "mirrors", SourceSettings(local_roots=(folder,)))
        checkout = await repositories.checkout(str(served.path), "main")
        started = time.perf_counter()
        stale = desk.stale(checkout)
        rows.append((NEW_START, 0, len(stale), time.perf_counter() - started, 0.0))
    finally:
        repositories.close()
    return rows


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(measure(Path(folder), count))
    print(f"{count} applications in one repository")
    print(f"{'':34}{'must render':>12}{'render':>8}{'to find out, s':>16}{'to render, s':>14}")
    for description, expected, stale_count, asking, rendering in rows:
        print(f"{description:34}{expected:12}{stale_count:8}{asking:16.3f}{rendering:14.3f}")
    limited = [asking for description, _, _, asking, _ in rows if description != NEW_START]
    return int(any(stale_count != expected for _, expected, stale_count, _, _ in rows) or max(limited) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
