"""Runs `argosy app` commands against a control plane on a socket, with an engine and a Git repository.

In: a folder. Out: a Scene with `argosy(...)`. Never: mocks a cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple
from unittest import mock

from argosy.gitops.application_client import render_pool_prestart
from argosy.gitops.engine.engine import Engine, EngineOptions
from argosy.isolation.trusted_process_pool import ProcessPool
from argosy.kube.objects import dump_yaml
from argosy.kube.schema.bundled_crds import load_definition
from argosy.main import main
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.clusters import TOKEN, Served, served
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, Repository, Room, shared_crew

HANG = f"{HANG_SECONDS:g}"  # for --timeout of commands that are expected to finish
HANDS = ThreadPoolExecutor(8)  # shared by all tests: a worker process ends with the thread that started it


class Lent(ProcessPool):
    """Lends a process pool to one command at a time, because starting a worker takes as long as most tests."""

    free: ClassVar[list[ProcessPool]] = []

    @classmethod
    def take(cls, *, workers: int, modules: Sequence[str]) -> ProcessPool:
        return cls.free.pop() if cls.free else cls(workers=workers, modules=modules)

    async def close(self) -> None:
        self.free.append(self)


class Said(NamedTuple):
    code: int
    out: str
    err: str


_at_work: list[Path] = []  # one kubeconfig per running command


@contextlib.contextmanager
def _kubeconfig_in_environment(file: Path) -> Iterator[None]:
    """Select the cluster by KUBECONFIG, because a flag would appear in every command that is printed."""
    assert all(other == file for other in _at_work), "commands for two clusters cannot run at once in one process"
    assert _at_work or "KUBECONFIG" not in os.environ
    _at_work.append(file)
    os.environ["KUBECONFIG"] = str(file)
    try:
        yield
    finally:
        _at_work.pop()
        if not _at_work:
            del os.environ["KUBECONFIG"]


@dataclass(kw_only=True)
class Scene(Room):
    kubeconfig: Path

    async def argosy(self, *words: str, program: str = "argosy") -> Said:
        """Run a command in a thread of this process; it connects to the control plane's socket."""
        loop = asyncio.get_running_loop()
        with _kubeconfig_in_environment(self.kubeconfig):
            return await loop.run_in_executor(HANDS, self._run, list(words), program)

    def _run(self, words: list[str], program: str) -> Said:
        out, err = io.StringIO(), io.StringIO()
        lent = mock.patch.object(render_pool_prestart, "ProcessPool", Lent.take)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), lent:
            try:
                code = main(words, program=program)
            except SystemExit as ended:
                code = int(ended.code or 0)
        return Said(code, out.getvalue(), err.getvalue())


def write_kubeconfig(file: Path, server: Served) -> None:
    context = {"cluster": "plane", "user": "ann"}
    cluster = {"server": server.endpoint.address, "certificate-authority": str(server.authority)}
    whole = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "plane",
        "contexts": [{"name": "plane", "context": context}],
        "clusters": [{"name": "plane", "cluster": cluster}],
        "users": [{"name": "ann", "user": {"token": TOKEN}}],
    }
    file.write_text(dump_yaml(whole))


@contextlib.asynccontextmanager
async def scene(folder: Path, settings: Mapping[str, str] | None = None) -> AsyncIterator[Scene]:
    async with served(folder / "plane") as plane:
        cluster = EmbeddedCluster(plane.plane)
        for name in ("applications.argoproj.io", "appprojects.argoproj.io"):
            await cluster.create(load_definition(name))
        for namespace in (CONTROL, "ml"):
            await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        ours = {"source.local.roots": str(folder)}
        for name, data in (("argosy-cm", ours), ("argocd-cm", dict(settings or {}))):
            metadata = {"name": name, "namespace": CONTROL}
            await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        write_kubeconfig(folder / "kubeconfig", plane)
        engine = Engine(
            cluster, EngineOptions(folder / "mirrors", wave_delay_seconds=0.0), CONTROL, render_pool=shared_crew()
        )
        work = asyncio.create_task(engine.run())
        try:
            yield Scene(cluster, Repository(folder / "repository"), engine, kubeconfig=folder / "kubeconfig")
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
