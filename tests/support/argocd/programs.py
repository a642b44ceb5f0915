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

TESTED_VERSION: Final = "v3.5.6"  # as in tests/argocd/build.sh
VERSION: Final = f"v{(os.environ.get('ARGOSY_ARGOCD_VERSION') or TESTED_VERSION).removeprefix('v')}"
# Not from HOME, which tests change.
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or f"{pwd.getpwuid(os.getuid()).pw_dir}/.cache", "argosy/argocd")
EXPORTED_CONDITIONS: Final = ("--metrics-application-conditions", "ComparisonError,SyncError")
COMPONENTS: Final = ("repo-server", "application-controller")


@dataclass(frozen=True)
class Installation:
    """The built programs and the source of one version of Argo CD."""

    folder: Path

    @property
    def version(self) -> tuple[int, int]:
        """Major and minor version."""
        major, minor, *_ = self.folder.name.removeprefix("v").split(".")
        return int(major), int(minor)

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
    return CACHE / version


def find_missing_program(version: str = VERSION, also: Sequence[str] = ()) -> str:
    """Return a message that names a program that `make argocd` has not built or installed; empty if all are there."""
    folder = find_folder(version)
    command = "make argocd" if version == TESTED_VERSION else f"make argocd ARGOSY_ARGOCD_VERSION={version}"
    for program in ("argocd", "kustomize", "argocd-server", *also):
        if not (folder / program).exists():
            return f"Argo CD {version}: {program} is not in {folder} ({command})"
    if shutil.which("redis-server") is None:
        return "Argo CD needs redis-server (make argocd, or apt-get install redis-server)"
    return ""


def find_installation(version: str = VERSION) -> Installation:
    """Return what `make argocd` built; skip the test if a program is missing."""
    if message := find_missing_program(version):
        pytest.skip(message)
    return Installation(find_folder(version))


def _listen_on(port: int) -> list[str]:
    return ["--port", str(port), "--address", "127.0.0.1"]


@dataclass
class ArgoCD:
    """A running Argo CD."""

    installation: Installation
    kubeconfig: Path
    folder: Path
    namespace: str
    settings: Mapping[str, str] = field(default_factory=dict)  # environment variables of all components
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

    def start(self, components: Sequence[str] = COMPONENTS) -> None:
        """Start redis, the repo-server and the other components, and wait until each serves its port."""
        names = ("redis", "repo-server", *(f"{name}-metrics" for name in components))
        self.ports = {**dict(zip(names, free_ports(len(names)), strict=True)), **self.ports}
        port = str(self.ports["redis"])
        in_memory = ["--save", "", "--appendonly", "no"]
        self.start_program("redis", ["redis-server", "--port", port, "--bind", "127.0.0.1", *in_memory])
        self._wait_for_port("redis", self.ports["redis"])
        for component in components:
            self.start_component(component, flags=["--disable-auth"] if component == "server" else [])
        for component in components:
            self._wait_for_port(component, self.ports[f"{component}-metrics"])

    def start_server(self, *flags: str) -> int:
        """Start the API server with logins, and return its port."""
        self._choose_port("server-metrics")
        self.start_component("server", flags=flags)
        self._wait_for_port("server", self.ports["server"])
        return self.ports["server"]

    def start_with_metrics(self, component: str) -> None:
        """Start one more component, and wait until it serves its metrics."""
        port = self._choose_port(f"{component}-metrics")
        self.start_component(component)
        self._wait_for_port(component, port)

    def start_component(
        self, component: str, settings: Mapping[str, str] | None = None, flags: Sequence[str] = ()
    ) -> None:
        """Start a component with the ports of its first start, if there was one."""
        program = self.installation.folder / f"argocd-{component}"
        command = [program, *self._list_flags(component), *flags]
        self.start_program(component, command, {**self.settings, **(settings or {})})

    def stop_component(self, component: str) -> None:
        self.processes[component].kill()
        self.processes[component].wait()

    def _list_flags(self, component: str) -> list[str]:
        redis = ["--redis", f"127.0.0.1:{self.ports['redis']}"]
        repo_server = f"127.0.0.1:{self.ports['repo-server']}"
        namespace = ["--namespace", self.namespace, "--kubeconfig", str(self.kubeconfig)]
        cluster = ["--repo-server-plaintext", *namespace]
        metrics_port = str(self.ports[f"{component}-metrics"])
        metrics = ["--metrics-port", metrics_port]
        match component:
            case "repo-server":
                port = _listen_on(self._choose_port(component))
                # Before Argo CD 3.5 there is no such flag; since then it must be empty without TLS.
                authority = ["--client-ca-path", ""] if self.installation.version >= (3, 5) else []
                return [*redis, *metrics, *port, "--disable-tls", *authority]
            case "applicationset-controller":
                flags = ["--metrics-addr", f"127.0.0.1:{metrics_port}", "--argocd-repo-server", repo_server]
                for purpose in ("probe", "webhook"):
                    flags += [f"--{purpose}-addr", f"127.0.0.1:{self._choose_port(f'{component}-{purpose}')}"]
                return [*flags, *cluster]
            case "commit-server":
                return [*metrics, *_listen_on(self._choose_port(component))]
            case "notifications":
                return [*metrics, "--argocd-repo-server", repo_server, "--argocd-repo-server-plaintext", *namespace]
            case "server":
                port = [*_listen_on(self._choose_port(component)), "--insecure"]
                return [*redis, *metrics, "--repo-server", repo_server, *cluster, *port]
        return [*redis, *metrics, *EXPORTED_CONDITIONS, "--repo-server", repo_server, *cluster]

    def _choose_port(self, name: str) -> int:
        if name not in self.ports:
            [self.ports[name]] = free_ports(1)
        return self.ports[name]

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()

    def read_log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def read_metrics(self, component: str) -> str:
        return read_metrics(self.ports[f"{component}-metrics"])

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
            return is_port_served(port)

        wait_until(is_served, f"{name} serves port {port}")


def is_port_served(port: int) -> bool:
    with contextlib.closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def read_metrics(port: int) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/metrics") as answer:
        return str(answer.read().decode())


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
    argocd = ArgoCD(installation, kubeconfig, folder, namespace, settings or {})
    try:
        argocd.start(components)
        yield argocd
    finally:
        argocd.stop()
