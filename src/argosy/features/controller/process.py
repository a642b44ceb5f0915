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

from argosy.cli.cluster_target import ClusterTarget, TargetOptions, find_target
from argosy.cli.sandbox_data_folder_and_lock import get_state_folder
from argosy.errors import ClusterError, UserError
from argosy.gitops.application_client.control_namespace import find_control_namespace
from argosy.gitops.engine.engine import Engine, EngineOptions, compute_total_workers
from argosy.gitops.engine.leader_or_shard_start import run_leading_engine, run_sharded_engine
from argosy.gitops.engine.liveness import STUCK_SECONDS, ControllerHealth
from argosy.gitops.status.application_event_manifests import ALL_EVENT_REASONS
from argosy.kube.client import Cluster
from argosy.kube.client.cluster_client import connect
from argosy.kube.client.connection_settings import load_in_cluster_connection
from argosy.kube.client.kubeconfig import list_environment_paths
from argosy.kube.client.reachability_log import ReachabilityLog
from argosy.kube.controller import leader_elected_addon_runner
from argosy.kube.controller.startup_retry import retry_until_reachable
from argosy.kube.schema.bundled_crds import load_definition
from argosy.observability.probe_server import (
    ALL_ADDRESSES,
    LOOPBACK,
    ProbeSources,
    is_address,
    no_problems,
    serve_probes,
)

CRD_NAMES: Final = ("applications.argoproj.io", "appprojects.argoproj.io")
FIELD_MANAGER: Final = "argosy-controller"
POD_VARIABLE: Final = "KUBERNETES_SERVICE_HOST"  # k8s: set in every Pod


@dataclass(frozen=True)
class ControllerOptions:
    target: TargetOptions = field(default_factory=TargetOptions)
    namespace: str = ""
    mirrors: Path | None = None
    plugin_sockets: str = ""  # folder with the sockets of plug-ins in sidecars; empty: none
    uses_leader_election: bool = True
    is_sharded: bool = False  # shards the Applications with other controllers
    workers: int = 8
    renderers: int = 2
    addons: str = ""
    runs_engine: bool = True  # False: only add-ons
    port: int = 0  # for probes and metrics; 0: none
    listen: str = ""  # address of that port; empty: loopback, in a Pod all addresses
    event_reasons: frozenset[str] = ALL_EVENT_REASONS  # of Events about Applications
    condition_types: frozenset[str] = frozenset()  # conditions of Applications that are exported as metrics
    stuck_after_seconds: float = STUCK_SECONDS  # seconds without progress until liveness fails


def run_controller(options: ControllerOptions, on_ready: Callable[[ClusterTarget, str, str, str], None]) -> None:
    """Run in the foreground; returns after SIGTERM or SIGINT, when running writes are done.

    `on_ready` gets the target, the namespace, the leader if it is another process, and the expiry of its Lease; it is
    called again whenever the leader changes.
    """
    asyncio.run(_run(options, on_ready))


async def _run(options: ControllerOptions, on_ready: Callable[[ClusterTarget, str, str, str], None]) -> None:
    if options.listen and not is_address(options.listen):
        raise UserError(f"invalid address {options.listen}; use one like 127.0.0.1, or :: for all", where="--listen")
    target = choose_target(options.target)
    if not options.runs_engine and not options.addons:
        raise UserError("nothing to run without the engine; pass add-ons with --addons", where="--no-engine")
    if options.is_sharded and not (options.runs_engine and options.uses_leader_election):
        raise UserError("cannot be combined with --no-engine or --no-leader-elect", where="--shards")
    addons = leader_elected_addon_runner.load_allowed_addons(options.addons, is_embedded=target.is_embedded)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    cluster = await connect(target.connection)
    try:
        vitals = ControllerHealth(compute_total_workers(options.workers), options.stuck_after_seconds)
        metric_sources = [vitals.render_metrics, *(addon.metrics for addon in addons if addon.metrics)]
        unready = vitals.list_readiness_problems if options.runs_engine else no_problems
        probes = ProbeSources(metric_sources, vitals.list_problems, unready, vitals.list_restartable_problems)
        async with serve_probes(options.port, probes, address=_probe_address(options)):
            prepare_task = asyncio.create_task(_prepare_namespace(cluster, options, target))
            await _wait_for_end(stop, [prepare_task])
            if stop.is_set():
                return
            namespace, tasks = prepare_task.result(), []
            cluster.set_reachability_log(ReachabilityLog())
            if options.runs_engine and options.uses_leader_election and not options.is_sharded:
                vitals.on_leader_change = partial(on_ready, target, namespace)
            else:
                on_ready(target, namespace, "", "")
            if options.runs_engine:
                tasks.append(
                    asyncio.create_task(_run_engine(cluster, options, namespace, target, vitals), name="engine")
                )
            if addons:
                addon_task = leader_elected_addon_runner.run_addons_until_cancelled(
                    addons,
                    cluster,
                    namespace,
                    use_leader_election=options.uses_leader_election,
                    on_candidate=vitals.register_addon_election,
                )
                tasks.append(asyncio.create_task(addon_task, name="add-ons on duty"))
            await _wait_for_end(stop, tasks)
    finally:
        await cluster.close()


async def _wait_for_end(stop: asyncio.Event, tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Wait for `stop` or the end of any task, then cancel all: a failed process is restarted as a whole."""
    stop_task = asyncio.create_task(stop.wait())
    await asyncio.wait({stop_task, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    ended_tasks = [task for task in tasks if task.done()]
    for task in (stop_task, *tasks):
        task.cancel()
    await asyncio.gather(stop_task, *tasks, return_exceptions=True)
    for task in ended_tasks:
        task.result()


def _probe_address(options: ControllerOptions) -> str:
    """Probe address. There is no login, so only loopback, unless requested or in a Pod, where the kubelet connects."""
    return options.listen or (ALL_ADDRESSES[1] if os.environ.get(POD_VARIABLE) else LOOPBACK)


def choose_target(options: TargetOptions) -> ClusterTarget:
    """Inside a Pod, use its cluster unless a flag or a variable selects another."""
    by_flag = options.context or options.kubeconfig or options.data_dir
    if os.environ.get(POD_VARIABLE) and not (by_flag or os.environ.get("ARGOSY_CONTEXT") or list_environment_paths()):
        connection = load_in_cluster_connection()
        return ClusterTarget(connection, f"the cluster around this Pod ({connection.server})")
    return find_target(options)


async def _prepare_namespace(cluster: Cluster, options: ControllerOptions, target: ClusterTarget) -> str:
    """Namespace of the settings, after CRDs and namespace exist. Waits for an unreachable API server."""
    if not options.runs_engine:
        return options.namespace or target.connection.namespace
    namespace = options.namespace or await retry_until_reachable(lambda: find_control_namespace(cluster))
    await retry_until_reachable(lambda: _create_crds_and_namespace(cluster, namespace))
    return namespace


async def _create_crds_and_namespace(cluster: Cluster, namespace: str) -> None:
    """Create missing CRDs and the control namespace; existing ones are kept."""
    for name in CRD_NAMES:
        try:
            await cluster.create(load_definition(name))
        except ClusterError as error:
            if error.code != 409:
                raise
    try:
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    except ClusterError as error:
        if error.code not in (403, 409):  # without the permission, the namespace exists: the service account is in it
            raise


async def _run_engine(
    cluster: Cluster, options: ControllerOptions, namespace: str, target: ClusterTarget, vitals: ControllerHealth
) -> None:
    engine_options = EngineOptions(
        mirror_folder=(options.mirrors or get_state_folder() / "mirrors").absolute(),  # git runs in another folder
        # An embedded cluster needs no pause between waves.
        wave_delay_seconds=0.0 if target.is_embedded else 2.0,
        workers=options.workers,
        render_workers=options.renderers,
        plugin_sockets=options.plugin_sockets,
        event_reasons=options.event_reasons,
        condition_types=options.condition_types,
    )

    if options.is_sharded:
        await run_sharded_engine(cluster, engine_options, namespace, vitals)
    elif options.uses_leader_election:
        await run_leading_engine(cluster, engine_options, namespace, health=vitals)
    else:
        await vitals.run_engine(Engine(cluster, engine_options, namespace))
