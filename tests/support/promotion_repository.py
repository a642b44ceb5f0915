"""A small repository with three environments, for promotion tests. In: a folder. Out: a Shelf to run commands in.

Never: reads the Git configuration of the user who runs the tests.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from argosy.main import main

BASE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: web, image: "example.com/web:1.0"}
"""
OVERLAY = """\
# %(name)s: what only this environment has
namePrefix: %(name)s-
resources:
  - ../base
replicas:
  - {name: web, count: %(count)s}
"""
DELIVERY = """\
apiVersion: argosy.dev/v1
kind: Delivery
repository: {url: https://example.com/web.git}
environments:
  dev: {application: web-dev, path: dev, sync: auto}
  staging: {application: web-staging, path: staging, after: dev}
  production:
    application: web-production
    path: production
    after: staging
    gates:
      - approval: leads
rbac:
  roles:
    leads: {groups: [ann@example.com], may: [get]}
"""
ALONE = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}


class Said(NamedTuple):
    code: int
    out: str
    err: str


class Shelf:
    """A clone with a work tree, in which tests run `argosy promote`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, message: str) -> str:
        self.git("add", "--all")
        self.git("commit", "-qm", message)
        return self.git("rev-parse", "HEAD")

    def pin(self, environment: str, tag: str) -> str:
        """Commit another image tag to an environment."""
        text = OVERLAY % {"name": environment, "count": 1}
        images = f'images:\n  - {{name: example.com/web, newTag: "{tag}"}}\n'
        self.write(f"{environment}/kustomization.yaml", text + images)
        return self.commit(f"{environment}: {tag}")

    def images(self, environment: str, ref: str = "HEAD") -> str:
        return self.git("show", f"{ref}:{environment}/kustomization.yaml")

    def argosy(self, *words: str, code: int | None = 0) -> Said:
        with chdir(self.folder):
            return typed("promote", *words, "--offline", code=code)


def typed(*words: str, code: int | None = 0) -> Said:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        exit_code = main(list(words))
    result = Said(exit_code, *(stream.buffer.getvalue().decode() for stream in (out, err)))  # type: ignore[attr-defined]
    assert code is None or exit_code == code, result
    return result


@contextlib.contextmanager
def chdir(folder: Path) -> Iterator[None]:
    previous = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(previous)


def make(folder: Path) -> Shelf:
    """Create a repository with one commit; all environments have 1.0."""
    folder.mkdir(parents=True)
    shelf = Shelf(folder)
    shelf.git("init", "-q")
    shelf.git("symbolic-ref", "HEAD", "refs/heads/main")
    for name, value in (("user.name", "Ann"), ("user.email", "ann@example.com"), ("commit.gpgsign", "false")):
        shelf.git("config", name, value)
    shelf.write("base/web.yaml", BASE)
    shelf.write("base/kustomization.yaml", "resources: [web.yaml]\n")
    for count, name in enumerate(("dev", "staging", "production"), 1):
        shelf.write(f"{name}/kustomization.yaml", OVERLAY % {"name": name, "count": count})
    shelf.write("argosy.yaml", DELIVERY)
    shelf.commit("Begin")
    return shelf


def begin(folder: Path) -> Path:
    """Create a repository where dev has 1.1 and the others have 1.0."""
    with pytest.MonkeyPatch.context() as patch:
        alone(patch)
        make(folder).pin("dev", "1.1")
    return folder


def alone(patch: pytest.MonkeyPatch) -> None:
    for name, value in ALONE.items():
        patch.setenv(name, value)


def copy_of(begun: Path, folder: Path, patch: pytest.MonkeyPatch) -> Shelf:
    """Copy the repository for a test that changes it, with its own state and cache folders."""
    alone(patch)
    patch.setenv("XDG_STATE_HOME", str(folder / "state"))
    patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    shutil.copytree(begun, folder / "web")
    return Shelf(folder / "web")
