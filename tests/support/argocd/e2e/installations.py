"""What the end-to-end tests are run against: Argo CD, or argosy's server and controller in its place.

In: a sandbox with Argo CD's custom resources. Out: components and the port of the API server. Never: leaves a process
behind.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from support.argocd.pair import build_default_project
from support.argocd.programs import ArgoCD, Installation, is_port_served
from support.clusters import ARGOSY, Sandbox, environment, kubectl
from support.control_plane import die_with_parent, free_ports
from support.deadlines import wait_until
from support.paths import VENV

NAMESPACE: Final = "argocd-e2e"
APPLICATION_NAMESPACES: Final = ("argocd-e2e-external", "argocd-e2e-external-2")
METRICS_PORTS: Final = {  # the tests name them
    "application-controller-metrics": 8082,
    "server-metrics": 8083,
    "notifications-metrics": 9001,
}
# The components that a test may ask for, by their names in Argo CD's Procfile.
COMPONENTS: Final = {
    "controller": "application-controller",
    "api-server": "server",
    "repo-server": "repo-server",
    "applicationset-controller": "applicationset-controller",
    "notification": "notifications",
    "commit-server": "commit-server",
    "redis": "redis",
}


def prepare_cluster(server: Sandbox, installation: Installation, folder: Path) -> None:
    """Create the namespaces, custom resources and settings that Argo CD's end-to-end tests expect."""
    for name in (NAMESPACE, *APPLICATION_NAMESPACES):
        _run_kubectl(server, "create", "namespace", name)
    _run_kubectl(server, "config", "set-context", "--current", f"--namespace={NAMESPACE}")
    build = subprocess.run(
        [installation.folder / "kustomize", "build", installation.source / "test/manifests/base"],
        capture_output=True, text=True, check=True, env={"HOME": str(folder), "PATH": os.environ["PATH"]},
    )  # fmt: skip
    _run_kubectl(server, "apply", "--server-side", "--force-conflicts", "-f", "-", input=build.stdout)
    namespaces = ",".join(APPLICATION_NAMESPACES)
    parameters = {"application.namespaces": namespaces, "applicationsetcontroller.namespaces": namespaces}
    for name, data in {"argocd-cmd-params-cm": parameters}.items():
        _merge_config_map(server, name, data)


def _merge_config_map(server: Sandbox, name: str, data: Mapping[str, str]) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{name}"
    answer = server.request("PATCH", path, {"data": dict(data)}, "application/merge-patch+json")
    assert answer.code == 200, answer.body


def _run_kubectl(server: Sandbox, *words: str, input: str | None = None) -> None:
    done = kubectl(server.kubeconfig, *words, input=input)
    assert done.code == 0, f"kubectl {' '.join(words)}: {done.err}"


@dataclass
class ArgoCDComponents:
    """Argo CD's programs."""

    programs: ArgoCD

    def list_running(self) -> Mapping[str, bool]:
        processes = self.programs.processes
        return {name: processes[program].poll() is None for name, program in COMPONENTS.items()}

    def start(self, name: str, variables: Mapping[str, str]) -> None:
        self.programs.start_component(COMPONENTS[name], variables)

    def stop(self, name: str) -> None:
        self.programs.stop_component(COMPONENTS[name])


@contextlib.contextmanager
def run_argocd_components(
    installation: Installation, server: Sandbox, folder: Path, data: Path
) -> Iterator[tuple[ArgoCDComponents, int]]:
    """Run all components of Argo CD with the settings of its own end-to-end tests."""
    folder.mkdir()
    for name in ("gpg/keys", "gpg/source", "plugin", "ssh", "tls"):
        (data / "app/config" / name).mkdir(parents=True, mode=0o700)
    programs = ArgoCD(installation, server.kubeconfig, folder, NAMESPACE, _list_settings(installation, data))
    [commit_server] = free_ports(1)
    programs.ports = {"commit-server": commit_server, **METRICS_PORTS}
    programs.settings = {
        **programs.settings,
        "ARGOCD_APPLICATION_CONTROLLER_COMMIT_SERVER": f"127.0.0.1:{commit_server}",
    }
    started = [name for name in COMPONENTS.values() if name not in ("redis", "server")]
    try:
        programs.start(started)
        port = programs.start_server("--enable-proxy-extension")
        yield ArgoCDComponents(programs), port
    finally:
        programs.stop()


def _list_settings(installation: Installation, data: Path) -> dict[str, str]:
    config = data / "app/config"
    namespaces = ",".join(APPLICATION_NAMESPACES)
    scm_providers = ",".join(f"http://127.0.0.1:{port}" for port in range(8341, 8345))
    return {
        "ARGOCD_SSH_DATA_PATH": str(config / "ssh"),
        "ARGOCD_TLS_DATA_PATH": str(config / "tls"),
        "ARGOCD_GPG_DATA_PATH": str(config / "gpg/source"),
        "ARGOCD_GNUPGHOME": str(config / "gpg/keys"),
        "ARGOCD_GPG_ENABLED": "true",
        "ARGOCD_PLUGINCONFIGFILEPATH": str(config / "plugin"),
        "ARGOCD_PLUGINSOCKFILEPATH": str(config / "plugin"),
        "GIT_CONFIG_GLOBAL": str(installation.source / "test/e2e/fixture/gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "ARGOCD_ZJWT_FEATURE_FLAG": "always",
        "ARGOCD_APPLICATION_NAMESPACES": namespaces,
        "ARGOCD_APPLICATIONSET_CONTROLLER_NAMESPACES": namespaces,
        "ARGOCD_APPLICATIONSET_CONTROLLER_TOKENREF_STRICT_MODE": "true",
        "ARGOCD_APPLICATIONSET_CONTROLLER_ALLOWED_SCM_PROVIDERS": scm_providers,
        "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_PROGRESSIVE_SYNCS": "true",
        "ARGOCD_HYDRATOR_ENABLED": "true",
        "ARGOCD_CLUSTER_CACHE_EVENTS_PROCESSING_INTERVAL": "1ms",
    }


@dataclass
class ArgosyComponents:
    """argosy's controller and server. It has no other processes, so all other components count as running."""

    server: Sandbox
    installation: Installation
    folder: Path
    ports: Mapping[str, int]
    plugin_sockets: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def list_running(self) -> Mapping[str, bool]:
        return {name: name not in self.ports or self.processes[name].poll() is None for name in COMPONENTS}

    def start(self, name: str, variables: Mapping[str, str]) -> None:
        if name not in self.ports:
            return
        cluster = ["--kubeconfig", str(self.server.kubeconfig), "-n", NAMESPACE, "--port", str(self.ports[name])]
        commands = {
            "controller": ["controller", *cluster, "--no-leader-elect", "--mirrors", str(self.folder / "mirrors")],
            "api-server": ["serve", *cluster, "--no-browser"],
        }
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(ARGOSY), *commands[name]],
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=self.folder,
                env={**self._environment(), **variables},
                preexec_fn=die_with_parent,  # noqa: PLW1509 - it takes no lock that another thread could hold
            )  # fmt: skip
        wait_until(lambda: is_port_served(self.ports[name]), f"{name} serves port {self.ports[name]}")

    def stop(self, name: str) -> None:
        if name in self.processes:
            self.processes[name].kill()
            self.processes[name].wait()

    def _environment(self) -> dict[str, str]:
        programs = [self.installation.folder, VENV / "helm", VENV / "bin"]
        return {
            **environment(self.folder),
            "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
            "GIT_CONFIG_GLOBAL": str(self.installation.source / "test/e2e/fixture/gitconfig"),
            "NO_PROXY": "*",
            "ARGOCD_PLUGINSOCKFILEPATH": str(self.plugin_sockets),
        }


@contextlib.contextmanager
def run_argosy_components(
    installation: Installation, server: Sandbox, folder: Path, data: Path
) -> Iterator[tuple[ArgosyComponents, int]]:
    """Run argosy's controller and server in Argo CD's place."""
    folder.mkdir()
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argosy-cm", "namespace": NAMESPACE},
        # The charts of the suite are at an http address, which Argo CD always allows.
        "data": {"source.local.roots": str(data), "source.protocols": "https, ssh, http"},
    }
    _run_kubectl(server, "create", "-f", "-", input=yaml.safe_dump_all([settings, build_default_project(NAMESPACE)]))
    names = ("controller", "api-server")
    ports = dict(zip(names, free_ports(2), strict=True))
    components = ArgosyComponents(server, installation, folder, ports, data / "app/config/plugin")
    try:
        for name in names:
            components.start(name, {})
        yield components, components.ports["api-server"]
    finally:
        for name in names:
            components.stop(name)
