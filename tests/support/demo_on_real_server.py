"""The demo on a real control plane: its own operator, engine, page and repository, but real controllers.

In: a home, a real server. Out: a Demo with the commands of `argosy demo`. Never: simulates what a controller-manager
does: only the simulators of Nodes, Pods, claims, Routes and models run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from argosy.cli.sandbox_data_folder_and_lock import DEMO_NAME, DataFolder, RunningInstance, get_state_folder
from argosy.features.demo.examples import LLMOPS
from argosy.features.demo.in_process_demo_stack import DemoOptions, _build_inner_task
from argosy.features.notebooks.addon import make as make_notebooks
from argosy.features.notifications.addon import make as make_notifications
from argosy.kube.client.cluster_client import connect
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.kubeconfig import load_kubeconfig
from argosy.kube.controller import AddOn
from argosy.kube.controller.addon_loader import run_addons
from argosy.sandbox.simulators import make as make_simulators
from argosy.sandbox.simulators.openshift_gitops import make as make_operator
from argosy.sandbox.simulators.openshift_gitops.operator import ArgoCDOperator
from support import control_plane as realcluster
from support.demo import Demo, own, printed
from support.failure_report import record_log

# Simulators of what neither a controller-manager nor an API server does, and of KServe.
BESIDE = "Node+Pod+PersistentVolumeClaim+Route+InferenceService"


def addons() -> list[AddOn]:
    """The operator's Deployments are rolled out by the real controllers, not simulated."""
    operator = replace(make_operator(""), controllers=[ArgoCDOperator()])
    return [operator, make_simulators(BESIDE), make_notebooks(""), make_notifications("")]


async def run(kubeconfig: Path) -> None:
    """Run until SIGTERM; print when ready."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    folder, connection = DataFolder(get_state_folder() / DEMO_NAME), load_kubeconfig([kubeconfig])
    with folder.lock_for_this_process():
        _lead_there(folder, connection)
        inside = _build_inner_task(
            DemoOptions(port=0), LLMOPS, "OpenShift GitOps", lambda words: print(words, file=sys.stderr)
        )
        async with (
            await connect(connection) as cluster,
            run_addons(addons(), cluster, on_failure=stop.set, folder=folder.root),
            inside(cluster, folder, stop) as completed,
        ):
            if not stop.is_set():
                target = (connection.server, str(kubeconfig), str(folder.root))
                folder.write_run(completed(RunningInstance(os.getpid(), *target, rbac=True)))
                print("ready; Ctrl-C stops it", flush=True)
            await stop.wait()


def _lead_there(folder: DataFolder, connection: Connection) -> None:
    """Write the files by which commands find a demo's API."""
    folder.tls.mkdir(mode=0o700)
    (folder.tls / "ca.crt").write_bytes(connection.ca_data)
    folder.admin_token.touch(mode=0o600)
    folder.admin_token.write_text(connection.token)


@contextlib.contextmanager
def demo_elsewhere(home: Path) -> Iterator[Demo]:
    """Start the demo, wait until it is ready, and stop it afterwards. Skips if no real server is built."""
    if realcluster.programs() is None:
        pytest.skip(f"a real server: it is not in {realcluster.CACHE} (make realcluster)")
    log = record_log(home / "demo.log")
    env = {**own(home), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with realcluster.real_cluster() as real, log.open("a") as errors:
        process = subprocess.Popen(
            [sys.executable, __file__, str(real.kubeconfig)],
            env=env, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True,
            preexec_fn=realcluster.die_with_parent,  # noqa: PLW1509 - it takes no lock that another thread could hold
        )  # fmt: skip
        try:
            yield Demo(process, printed(process, log), home, log)
        finally:
            process.kill()
            process.communicate()


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1])))
