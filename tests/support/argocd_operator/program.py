"""Runs the real argocd-operator, which `make argocd-operator` builds, against the cluster of a kubeconfig.

In: a kubeconfig, a folder for its log. Out: a running operator. Never: builds or downloads a program; leaves a process
behind.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.argocd.programs import CACHE, is_port_served
from support.control_plane import die_with_parent, free_ports
from support.deadlines import wait_until
from support.failure_report import record_log

VERSION: Final = "v0.17.0"
CLUSTER_NAMESPACE: Final = "cluster-wide"  # an ArgoCD in it may deliver to all namespaces


@dataclass(frozen=True)
class OperatorInstallation:
    """The built operator and its source."""

    folder: Path

    @property
    def program(self) -> Path:
        return self.folder / "argocd-operator"

    @property
    def definitions(self) -> Path:
        """The folder with its CRDs."""
        return self.folder / "source/config/crd/bases"

    @property
    def redis_settings(self) -> Path:
        return self.folder / "source/build/redis"


def find_operator(version: str = VERSION) -> OperatorInstallation | None:
    """Return what `make argocd-operator` built, if it did."""
    installation = OperatorInstallation(CACHE.parent / "argocd-operator" / version)
    return installation if installation.program.exists() else None


@contextlib.contextmanager
def run_operator(operator: OperatorInstallation, kubeconfig: Path, folder: Path) -> Iterator[Path]:
    """Run the operator until the end of the block, and yield its log."""
    folder.mkdir(parents=True, exist_ok=True)
    metrics, probe = free_ports(2)
    flags = ["--metrics-bind-address", f"127.0.0.1:{metrics}", "--health-probe-bind-address", f"127.0.0.1:{probe}"]
    log_file = record_log(folder / "argocd-operator.log")
    with open(log_file, "ab") as log:
        process = subprocess.Popen(
            [str(operator.program), *flags],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "KUBECONFIG": str(kubeconfig),
                "WATCH_NAMESPACE": "",
                "ARGOCD_CLUSTER_CONFIG_NAMESPACES": CLUSTER_NAMESPACE,
                "REDIS_CONFIG_PATH": str(operator.redis_settings),
                "NO_PROXY": "*",
            },
            preexec_fn=die_with_parent,  # noqa: PLW1509 - it takes no lock that another thread could hold
        )

    def is_served() -> bool:
        message = f"the operator ended with {process.returncode}:\n{log_file.read_text(errors='replace')[-2000:]}"
        assert process.poll() is None, message
        return is_port_served(probe)

    try:
        wait_until(is_served, "the operator serves its probe")
        yield log_file
    finally:
        process.kill()
        process.wait()
