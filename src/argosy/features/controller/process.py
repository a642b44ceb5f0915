"""The controller process: the engine, add-ons, or both.

In: a cluster, and the namespace of settings. Out: running controllers. Never: two engines on one cluster; changes
objects of an Argo CD if the engine is disabled.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from argosy.cli.data_folder import state_home
from argosy.cli.target import Target, TargetOptions, find_target
from argosy.errors import ClusterError, UserError
from argosy.gitops.application_client.control_namespace import control_namespace
from argosy.gitops.engine.engine import Engine, EngineOptions, count_workers
from argosy.gitops.engine.liveness import STUCK, Vitals
from argosy.gitops.engine.start import lead_engine, share_engine
from argosy.kube.client import Cluster
from argosy.kube.client.connection import in_cluster
from argosy.kube.client.http import connect
from argosy.kube.client.kubeconfig import environment_paths
from argosy.kube.client.reachability import Contact
from argosy.kube.controller import addon_leadership
from argosy.kube.controller.retry import insist
from argosy.kube.schema.bundled_crds import definition
from argosy.observability.probe_server import EVERYWHERE, LOOPBACK, Signs, is_address, nothing, probed

KINDS: Final = ("applications.argoproj.io", "appprojects.argoproj.io")
MANAGER: Final = "argosy-controller"
POD: Final = "KUBERNETES_SERVICE_HOST"  # k8s: set in every Pod


@dataclass(frozen=True)
class ControllerOptions:
    target: TargetOptions = field(default_factory=TargetOptions)
    namespace: str = ""
    mirrors: Path | None = None
    elects: bool = True
    shares: bool = False  # shards the Applications with other controllers
    workers: int = 8
    renderers: int = 2
    addons: str = ""
    delivers: bool = True  # False: only add-ons
    port: int = 0  # for probes and metrics; 0: none
    listen: str = ""  # address of that port; empty: loopback, in a Pod all addresses
    stuck: float = STUCK  # seconds without progress until liveness fails


def run(options: ControllerOptions, ready: Callable[[Target, str, str, str], None]) -> None:
    """Run in the foreground; returns after SIGTERM or SIGINT, when running writes are done.

    `ready` gets the target, the namespace, the leader if it is another process, and the expiry of its Lease; it is
    called again whenever the leader changes.
    """
    asyncio.run(_run(options, ready))


async def _run(options: ControllerOptions, ready: Callable[[Target, str, str, str], None]) -> None:
    if options.listen and not is_address(options.listen):
        raise UserError(f"invalid address {options.listen}; use one like 127.0.0.1, or :: for all", where="--listen")
    target = target_here(options.target)
    if not options.delivers and not options.addons:
        raise UserError("nothing to run without the engine; pass add-ons with --addons", where="--no-engine")
    if options.shares and not (options.delivers and options.elects):
        raise UserError("cannot be combined with --no-engine or --no-leader-elect", where="--shards")
    addons = addon_leadership.chosen_addons(options.addons, is_embedded=target.is_embedded)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    cluster = await connect(target.connection)
    try:
        vitals = Vitals(count_workers(options.workers), options.stuck)
        measures = [vitals.measured, *(each.metrics for each in addons if each.metrics)]
        unready = vitals.unready if options.delivers else nothing
        signs = Signs(measures, vitals.troubles, unready, vitals.stuck)
        async with probed(options.port, signs, listen=_address(options)):
            preparing = asyncio.create_task(_namespace(cluster, options, target))
            await _until(stop, [preparing])
            if stop.is_set():
                return
            namespace, work = preparing.result(), []
            cluster.tell_contact(Contact())
            if options.delivers and options.elects and not options.shares:
                vitals.told = partial(ready, target, namespace)
            else:
                ready(target, namespace, "", "")
            if options.delivers:
                work.append(asyncio.create_task(_lead(cluster, options, namespace, target, vitals), name="engine"))
            if addons:
                duty = addon_leadership.work(
                    addons, cluster, namespace, elects=options.elects, stands=vitals.stands_beside
                )
                work.append(asyncio.create_task(duty, name="add-ons on duty"))
            await _until(stop, work)
    finally:
        await cluster.close()


async def _until(stop: asyncio.Event, work: Sequence[asyncio.Task[Any]]) -> None:
    """Wait for `stop` or the end of any task, then cancel all: a failed process is restarted as a whole."""
    ending = asyncio.create_task(stop.wait())
    await asyncio.wait({ending, *work}, return_when=asyncio.FIRST_COMPLETED)
    ended = [each for each in work if each.done()]
    for each in (ending, *work):
        each.cancel()
    await asyncio.gather(ending, *work, return_exceptions=True)
    for each in ended:
        each.result()


def _address(options: ControllerOptions) -> str:
    """Probe address. There is no login, so only loopback, unless requested or in a Pod, where the kubelet connects."""
    return options.listen or (EVERYWHERE[1] if os.environ.get(POD) else LOOPBACK)


def target_here(options: TargetOptions) -> Target:
    """Inside a Pod, use its cluster unless a flag or a variable selects another."""
    by_flag = options.context or options.kubeconfig or options.data_dir
    if os.environ.get(POD) and not (by_flag or os.environ.get("ARGOSY_CONTEXT") or environment_paths()):
        connection = in_cluster()
        return Target(connection, f"the cluster around this Pod ({connection.server})")
    return find_target(options)


async def _namespace(cluster: Cluster, options: ControllerOptions, target: Target) -> str:
    """Namespace of the settings, after CRDs and namespace exist. Waits for an unreachable API server."""
    if not options.delivers:
        return options.namespace or target.connection.namespace
    namespace = options.namespace or await insist(lambda: control_namespace(cluster))
    await insist(lambda: _prepare(cluster, namespace))
    return namespace


async def _prepare(cluster: Cluster, namespace: str) -> None:
    """Create missing CRDs and the control namespace; existing ones are kept."""
    for name in KINDS:
        try:
            await cluster.create(definition(name))
        except ClusterError as error:
            if error.code != 409:
                raise
    try:
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    except ClusterError as error:
        if error.code not in (403, 409):  # without the permission, the namespace exists: the service account is in it
            raise


async def _lead(cluster: Cluster, options: ControllerOptions, namespace: str, target: Target, vitals: Vitals) -> None:
    engine_options = EngineOptions(
        mirrors=options.mirrors or state_home() / "mirrors",
        # An embedded cluster needs no pause between waves.
        wave_delay=0.0 if target.is_embedded else 2.0,
        workers=options.workers,
        renderers=options.renderers,
    )

    if options.shares:
        await share_engine(cluster, engine_options, namespace, vitals)
    elif options.elects:
        await lead_engine(cluster, engine_options, namespace, vitals=vitals)
    else:
        await vitals.kept(Engine(cluster, engine_options, namespace))
