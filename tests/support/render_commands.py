"""Runs `argosy render` in a home folder with Git repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import yaml

from support.deadlines import HANG_SECONDS
from support.forked_commands import Done, run

ADDRESS = "https://git.example/acme/models.git"
APPLICATION = f"""\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: fraud-dev, namespace: argocd}}
spec:
  project: default
  destination: {{server: https://kubernetes.default.svc, namespace: fraud}}
  source:
    repoURL: {ADDRESS}
    path: overlays/dev
    targetRevision: main
    kustomize: {{images: ["model:v7"]}}
"""


class Desk:
    """A home folder with Git repositories, in which tests run commands."""

    def __init__(self, home: Path) -> None:
        self.home = home
        inherited = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        self.environment = {**inherited, "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(self, folder: Path, *words: str) -> str:
        options = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main"]
        done = subprocess.run(
            ["git", *options, *words], cwd=folder, env=self.environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def repository(self, name: str, files: dict[str, str]) -> Path:
        folder = self.home / name
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        self.git(folder, "init", "-q")
        self.git(folder, "add", "-A")
        self.git(folder, "commit", "-q", "-m", "begin")
        return folder

    def render(self, folder: Path, *words: object, stdin: str = "") -> Done:
        return run(["render", *words], env=self.environment, cwd=folder, input=stdin, timeout=HANG_SECONDS)


def names(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in yaml.safe_load_all(done.stdout)]
