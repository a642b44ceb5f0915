"""Runs the real Argo CD: the programs that `make argocd` builds, against the cluster of a kubeconfig.

In: a kubeconfig, a namespace, a folder for its files. Out: running programs with their ports and logs. Never: builds or
downloads a program; leaves a process behind.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from support.control_plane import die_with_parent, free_ports
from support.deadlines import wait_until
from support.failure_report import record_log
from support.paths import VENV

VERSION: Final = "v3.5.6"
# Not from HOME, which tests change.
_CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or f"{pwd.getpwuid(os.getuid()).pw_dir}/.cache", "argosy/argocd")
COMPONENTS: Final = ("repo-server", "application-controller")


@dataclass(frozen=True)
class Installation:
    """The built programs and the source of one version of Argo CD."""

    folder: Path

    @property
    def source(self) -> Path:
        return self.folder / "source"

    @property
    def testdata(self) -> Path:
        return self.source / "test/e2e/testdata"

    @property
    def manifests(self) -> Path:
        return self.source / "manifests"


def find_folder(version: str = VERSION) -> Path:
    """Return the folder of the version in the cache, which exists if it was built."""
    return _CACHE / version


def find_installation(version: str = VERSION) -> Installation:
    """Return what `make argocd` built; skip the test if a program is missing."""
    folder = find_folder(version)
    for program in ("argocd", "kustomize", "argocd-server"):
        if not (folder / program).exists():
            pytest.skip(f"Argo CD {version}: {program} is not in {folder} (make argocd)")
    if shutil.which("redis-server") is None:
        pytest.skip("Argo CD needs redis-server (make argocd, or apt-get install redis-server)")
    return Installation(folder)


@dataclass
class ArgoCD:
    """A running Argo CD."""

    installation: Installation
    kubeconfig: Path
    folder: Path
    namespace: str
    ports: dict[str, int] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start_program(
        self, name: str, command: Sequence[str | Path], settings: Mapping[str, str] | None = None
    ) -> None:
        with open(record_log(self.folder / f"{name}.log"), "ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(word) for word in command],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                env={**self._environment(), **(settings or {})},
                preexec_fn=die_with_parent,  # noqa: PLW1509 - it takes no lock that another thread could hold
            )

    def start(self, components: Sequence[str] = COMPONENTS, settings: Mapping[str, str] | None = None) -> None:
        """Start redis, the repo-server and the other components, and wait until each serves its port."""
        names = ("redis", *components, *(f"{name}-metrics" for name in components))
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        redis = f"127.0.0.1:{self.ports['redis']}"
        repo_server = f"127.0.0.1:{self.ports['repo-server']}"
        self.start_program(
            "redis",
            [
                "redis-server",
                "--port",
                str(self.ports["redis"]),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
            ],
        )
        self._wait_for_port("redis", self.ports["redis"])
        arguments = {
            "repo-server": ["--redis", redis, "--port", str(self.ports["repo-server"]), "--address", "127.0.0.1",
                            "--disable-tls", "--client-ca-path", ""],
            "application-controller": ["--redis", redis, "--repo-server", repo_server, "--repo-server-plaintext",
                                       "--namespace", self.namespace, "--kubeconfig", str(self.kubeconfig)],
            "applicationset-controller": ["--argocd-repo-server", repo_server, "--repo-server-plaintext",
                                          "--namespace", self.namespace, "--kubeconfig", str(self.kubeconfig)],
            "server": ["--redis", redis, "--repo-server", repo_server, "--repo-server-plaintext", "--insecure",
                       "--disable-auth", "--namespace", self.namespace, "--kubeconfig", str(self.kubeconfig)],
        }  # fmt: skip
        for component in components:
            metrics = str(self.ports[f"{component}-metrics"])
            flag = ["--metrics-addr", f"127.0.0.1:{metrics}"] if component == "applicationset-controller" else [
                "--metrics-port", metrics]  # fmt: skip
            if component == "server":
                flag += ["--port", str(self.ports["server"]), "--address", "127.0.0.1"]
            program = self.installation.folder / f"argocd-{component}"
            self.start_program(component, [program, *arguments[component], *flag], settings)
        for component in components:
            self._wait_for_port(component, self.ports[f"{component}-metrics"])

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()

    def read_log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def read_metrics(self, component: str) -> str:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self.ports[f'{component}-metrics']}/metrics") as answer:
            return str(answer.read().decode())

    def _environment(self) -> dict[str, str]:
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        programs = [self.installation.folder, self.installation.source / "hack", VENV / "helm", VENV / "bin"]
        return {
            "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
            "HOME": str(self.folder),
            "TMPDIR": str(temporary),
            "KUBECONFIG": str(self.kubeconfig),
            "ARGOCD_FAKE_IN_CLUSTER": "true",
            "ARGOCD_GPG_ENABLED": "false",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "NO_PROXY": "*",
        }

    def _wait_for_port(self, name: str, port: int) -> None:
        def is_served() -> bool:
            process = self.processes[name]
            assert process.poll() is None, f"{name} ended with {process.returncode}:\n{self.read_log(name)[-2000:]}"
            with contextlib.closing(socket.socket()) as client:
                return client.connect_ex(("127.0.0.1", port)) == 0

        wait_until(is_served, f"{name} serves port {port}")


@contextlib.contextmanager
def run_argocd(
    installation: Installation,
    kubeconfig: Path,
    folder: Path,
    namespace: str = "argocd",
    components: Sequence[str] = COMPONENTS,
    settings: Mapping[str, str] | None = None,
) -> Iterator[ArgoCD]:
    folder.mkdir(parents=True, exist_ok=True)
    argocd = ArgoCD(installation, kubeconfig, folder, namespace)
    try:
        argocd.start(components, settings)
        yield argocd
    finally:
        argocd.stop()
