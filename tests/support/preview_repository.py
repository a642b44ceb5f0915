"""A Git repository in which tests run `argosy preview`.

In: a folder. Out: a Repo with files, commits and command results. Never: uses the network.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from argosy.main import main


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def impact(self) -> str:
        return next(line for line in self.out.splitlines() if line.startswith("Impact: ")).removeprefix("Impact: ")


class Repo:
    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self._capsys = root, capsys
        root.mkdir(parents=True, exist_ok=True)

    def git(self, *words: str) -> str:
        git_flags = ["-c", "user.name=ann", "-c", "user.email=ann@example.com", "-c", "protocol.file.allow=always"]
        done = subprocess.run(["git", *git_flags, *words], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.root / name).read_text()
        assert old in text, f"{name} has no {old}"
        (self.root / name).write_text(text.replace(old, new))

    def begin(self, files: Mapping[str, str | bytes]) -> None:
        self.git("init", "-q", "-b", "main")
        self.write(files)
        self.commit("Begin")

    def commit(self, subject: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def preview(self, *words: str) -> Said:
        self._capsys.readouterr()
        try:
            code = main(["preview", *words])
        except SystemExit as ended:
            code = int(ended.code or 0)
        captured = self._capsys.readouterr()
        return Said(code, captured.out, captured.err)

    def data(self, *words: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.preview(*words, "-o", "json").out)
        return answer


def application(name: str, path: str, *, ref: str = "main", more: str = "", url: str = "") -> str:
    return f"""\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: {url or "https://git.example.com/acme/models.git"}, path: {path}, targetRevision: {ref}}}
  destination: {{server: https://kubernetes.default.svc, namespace: {name}}}
{more}"""


def deployment(
    name: str = "front", image: str = "v1", *, replicas: int = 2, label: str = "front", more: str = ""
) -> str:
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {label}}}}}
{more}  template:
    metadata: {{labels: {{app: {label}}}}}
    spec:
      containers:
        - name: server
          image: registry.example/front:{image}
          envFrom: [{{configMapRef: {{name: settings}}}}]
          resources: {{requests: {{cpu: 500m, memory: 1Gi}}, limits: {{nvidia.com/gpu: "1"}}}}
"""


def config(value: str = "1", name: str = "settings") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: '{value}'}}\n"


def two_environments() -> dict[str, str | bytes]:
    """Return the files of a repository with two environments on one base."""
    overlay = "namespace: {0}\nnamePrefix: {0}-\nresources: [../../base]\n"
    return {
        "apps/dev.yaml": application("fraud-dev", "overlays/dev", more="  syncPolicy: {automated: {prune: true}}\n"),
        "apps/prod.yaml": application("fraud-prod", "overlays/prod"),
        "base/kustomization.yaml": "resources: [deployment.yaml, config.yaml, claim.yaml]\n",
        "base/deployment.yaml": deployment(),
        "base/config.yaml": config(),
        "base/claim.yaml": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: cache}\nspec:\n"
        "  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n",
        "overlays/dev/kustomization.yaml": overlay.format("dev"),
        "overlays/prod/kustomization.yaml": overlay.format("prod"),
    }
