"""Simulates the kubelet for Pods, and asks the scheduler for a Node where a Pod has none.

In: the key of a Pod. Out: its Node, then its status, then its deletion. Never: touches a Pod on a real Node.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from argosy.errors import UserError
from argosy.kube.controller import ControllerContext, InformerCache, Requeue, Watch
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps_and_delays import format_timestamp, remaining_delay
from argosy.kube.resource_key import ResourceKey, split_api_version
from argosy.kube.well_known_kinds import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    REPLICA_SET,
    STATEFUL_SET,
    STORAGE_CLASS,
)
from argosy.sandbox.simulators import node_and_storage_class_manifests, pod_events, pod_status
from argosy.sandbox.simulators.conditional_writes import delete_object, requeue_on_conflict, update_status_if_changed
from argosy.sandbox.simulators.containers import ContainersState, PodSimulation, simulate_containers
from argosy.sandbox.simulators.event_recorder import EventRecorder
from argosy.sandbox.simulators.owner_references_and_marks import (
    SIMULATED_NOTE,
    build_key,
    enqueue_if_unmarked,
    find_controller_reference,
    is_being_deleted,
    is_simulated_by_other_addon,
)
from argosy.sandbox.simulators.pod_processes import PodProcesses, ProcessPodState
from argosy.sandbox.simulators.scheduler import Scheduler
from argosy.sandbox.simulators.simulation_annotations import (
    DEFAULT_SETTINGS,
    InjectedFault,
    SimulationSettings,
    read_simulation_annotations,
    read_simulation_settings,
)
from argosy.sandbox.simulators.timestamps_and_durations import ExactTimestamps, parse_timestamp, seconds_until_deadline

OWNER_KINDS = (REPLICA_SET, DEPLOYMENT, STATEFUL_SET, DAEMON_SET, JOB, CRON_JOB)
FINISHED_PHASES = ("Succeeded", "Failed")
STOPPED_MESSAGE = "stopped"
PROCESS_MESSAGE = "containers run as confined local processes (argosy)"
EVICTION_MESSAGE = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 92Mi."


class PodController:
    """The in-memory state only decides which Pods to enqueue; after a restart every Pod is reconciled anyway."""

    name = "simulated-pods"

    def __init__(self, processes: PodProcesses | None = None) -> None:
        self._processes = processes or PodProcesses()
        self._timestamps = ExactTimestamps()
        self._scheduler = Scheduler()
        self._events = EventRecorder("kubelet")
        self._failed_by_owner: dict[str, frozenset[str]] = {}  # uids of failed Pods by the uid of their owner
        self._stopping: set[ResourceKey] = set()
        self._owner_annotations: dict[str, dict[str, str]] = {}
        self._cache: InformerCache | None = None
        self.watches = (
            Watch(POD, enqueue_if_unmarked),
            Watch(POD, self._scheduler.enqueue_if_freed),
            *(
                Watch(kind, self._scheduler.enqueue_unscheduled)
                for kind in (PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, NODE)
            ),
            *(Watch(kind, self._enqueue_pods_if_annotations_changed, metadata_only=True) for kind in OWNER_KINDS),
        )

    def _enqueue_pods_if_annotations_changed(self, manifest: Manifest) -> Iterable[ResourceKey]:
        """Enqueue the Pods of a workload whose simulation annotations changed."""
        uid, current_annotations = manifest["metadata"]["uid"], read_simulation_annotations(manifest)
        if self._cache is None or self._owner_annotations.get(uid, {}) == current_annotations:
            return
        self._owner_annotations[uid] = current_annotations
        pending = [manifest]
        while pending:
            for child in self._cache.list_owned(pending.pop()["metadata"]["uid"]):
                if child["kind"] == "Pod":
                    yield key_of(child)
                else:
                    pending.append(child)

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        self._cache = context.cache
        self._scheduler.use_cache(context.cache)
        self._scheduler.forget(key)
        pod = context.cache.get(key)
        if pod is None:
            await self._processes.kill_pod_by_key(key, context.clock.now())
        if pod is None or is_simulated_by_other_addon(pod):
            return None
        if not pod["spec"].get("nodeName"):
            # k8s: the controller that set a scheduling gate removes it
            if not is_being_deleted(pod) and not pod["spec"].get("schedulingGates"):
                await self._scheduler.schedule(pod, _read_settings(pod, context.cache)[0], context)
            return None
        node = context.cache.get(build_key(NODE, "", pod["spec"]["nodeName"]))
        if node is None or not node_and_storage_class_manifests.is_simulated_node(node):
            return None
        if is_being_deleted(pod):
            return await self._finish_deletion(pod, context)
        return await self._simulate(pod, node_and_storage_class_manifests.read_internal_ip(node), context)

    async def _simulate(self, pod: Manifest, node_address: str, context: ControllerContext) -> Requeue | None:
        """Compute and write the next status of a running Pod."""
        status, now = pod.get("status") or {}, context.clock.now()
        if status.get("phase") in FINISHED_PHASES:
            return None
        settings, problem = _read_settings(pod, context.cache)
        simulation = PodSimulation(pod, settings, now, self._timestamps, self._count_earlier_failures(pod, settings))
        if problem and status.get("phase") in (None, "Pending"):
            await self._update_status(
                pod, pod_status.build_config_error_status(simulation, problem, node_address), settings, context
            )
            return None
        process_state = await self._processes.advance(pod, context) if self._should_run_as_process(settings) else None
        containers_state = (
            simulate_containers(simulation) if process_state is None else _summarize_process_state(process_state)
        )
        planned_failures = [
            *_plan_eviction(simulation, containers_state),
            *_plan_deadline_failure(simulation, containers_state),
        ]
        for wait, reason, message in planned_failures:
            if wait <= 0:
                await self._processes.end(pod, now)
                await self._update_status(
                    pod, pod_status.build_failed_status(pod, reason, message, format_timestamp(now)), settings, context
                )
                return None
        note = SIMULATED_NOTE if process_state is None else PROCESS_MESSAGE
        new_status = pod_status.build_pod_status(simulation, containers_state, node_address, note=note)
        if process_state is not None:
            process_statuses = {
                "containerStatuses": process_state.container_statuses,
                "initContainerStatuses": process_state.init_statuses or None,
            }
            new_status |= process_statuses
        await self._update_status(pod, new_status, settings, context)
        waits = [
            wait
            for wait in (containers_state.seconds_until_change, *(failure[0] for failure in planned_failures))
            if wait is not None
        ]
        return Requeue(min(waits)) if waits else None

    def _should_run_as_process(self, settings: SimulationSettings) -> bool:
        """True if the Pod runs as a process; an injected fault is always simulated."""
        return settings.runs_as_process and settings.fault is None and self._processes.is_open

    def _count_earlier_failures(self, pod: Manifest, settings: SimulationSettings) -> int:
        """Count failed Pods of the same owner, including deleted ones. Only some settings need the count."""
        uid = str((find_controller_reference(pod) or {}).get("uid") or "")
        if (
            not uid
            or self._cache is None
            or (settings.fail_times is None and settings.fault is not InjectedFault.EVICTED)
        ):
            self._failed_by_owner.pop(uid, None)
            return 0
        pods = (sibling for sibling in self._cache.list_owned(uid) if sibling["kind"] == "Pod")
        failed_uids = {
            str(sibling["metadata"]["uid"])
            for sibling in pods
            if (sibling.get("status") or {}).get("phase") == "Failed"
        }
        self._failed_by_owner[uid] = self._failed_by_owner.get(uid, frozenset()) | failed_uids
        return len(self._failed_by_owner[uid])

    async def _update_status(
        self, pod: Manifest, new_status: dict[str, Any], settings: SimulationSettings, context: ControllerContext
    ) -> None:
        if await update_status_if_changed(pod, new_status, context.cluster):
            if new_status["phase"] == "Failed" and (owner := find_controller_reference(pod)):
                self._failed_by_owner[owner["uid"]] = self._failed_by_owner.get(owner["uid"], frozenset()) | {
                    pod["metadata"]["uid"]
                }
            await self._events.record(pod, pod_events.build_status_events(pod, new_status, settings), context)

    async def _finish_deletion(self, pod: Manifest, context: ControllerContext) -> Requeue | None:
        """Delete a terminating Pod: at once, or after `stop-after` seconds within the grace period."""
        settings, _ = _read_settings(pod, context.cache)
        phase = (pod.get("status") or {}).get("phase")
        wait = _compute_stop_delay(pod, settings, context.clock.now())
        wait = max(wait, await self._processes.stop(pod, context.clock.now()))
        if phase not in FINISHED_PHASES and key_of(pod) not in self._stopping:
            self._stopping.add(key_of(pod))
            await self._events.record(pod, pod_events.build_stop_events(pod), context)
        if wait > 0 and phase not in FINISHED_PHASES:
            return Requeue(wait)
        self._stopping.discard(key_of(pod))
        if pod["metadata"].get("finalizers") and phase not in FINISHED_PHASES:
            await update_status_if_changed(
                pod,
                pod_status.build_failed_status(pod, "", STOPPED_MESSAGE, format_timestamp(context.clock.now())),
                context.cluster,
            )
            return None
        if pod["metadata"].get("deletionGracePeriodSeconds") == 0 and pod["metadata"].get("finalizers"):
            return None  # the remaining finalizers belong to others
        await delete_object(pod, context.cluster, grace_seconds=0)
        return None


def _summarize_process_state(process_state: ProcessPodState) -> ContainersState:
    """Summarize the process states of all containers for the Pod's conditions."""
    first = process_state.container_statuses[0]
    return ContainersState(
        process_state.phase,
        first["state"],
        is_ready=process_state.is_ready,
        seconds_until_change=process_state.seconds_until_change,
    )


def _read_settings(pod: Manifest, cache: InformerCache) -> tuple[SimulationSettings, str]:
    """Read the settings of a Pod and its owners; also return what is wrong with them, or an empty string."""
    annotation_maps = [read_simulation_annotations(pod)]
    current, depth = pod, 0
    while (reference := find_controller_reference(current)) is not None and depth < 3:
        group, _ = split_api_version(reference["apiVersion"])
        owner = cache.get(ResourceKey(group, reference["kind"], pod["metadata"]["namespace"], reference["name"]))
        if owner is None:
            break
        annotation_maps.append(read_simulation_annotations(owner))
        current, depth = owner, depth + 1
    try:
        return read_simulation_settings(annotation_maps), ""
    except UserError as error:
        return DEFAULT_SETTINGS, str(error)


def _plan_eviction(simulation: PodSimulation, containers_state: ContainersState) -> Iterable[tuple[float, str, str]]:
    """Yield (seconds until the Pod fails, reason, message) for an injected eviction."""
    if (
        simulation.settings.fault is InjectedFault.EVICTED
        and containers_state.phase == "Running"
        and not simulation.earlier_failures
    ):
        running: dict[str, Any] = containers_state.state.get("running") or {}
        started_at = (
            simulation.timestamps.parse_exact(simulation.uid, running["startedAt"]) if running else simulation.now
        )
        yield (
            seconds_until_deadline(started_at, simulation.settings.run_for, simulation.now),
            pod_status.EVICTED_REASON,
            EVICTION_MESSAGE,
        )


def _plan_deadline_failure(
    simulation: PodSimulation, containers_state: ContainersState
) -> Iterable[tuple[float, str, str]]:
    """Yield (seconds until the Pod fails, reason, message) for `activeDeadlineSeconds`."""
    deadline_seconds = simulation.pod["spec"].get("activeDeadlineSeconds")
    if deadline_seconds is not None and containers_state.phase in ("Pending", "Running"):
        start_time = (simulation.pod.get("status") or {}).get("startTime")
        started_at = simulation.timestamps.parse_exact(simulation.uid, start_time) if start_time else simulation.now
        message = "Pod was active on the node longer than the specified deadline"
        yield seconds_until_deadline(started_at, float(deadline_seconds), simulation.now), "DeadlineExceeded", message


def _compute_stop_delay(pod: Manifest, settings: SimulationSettings, now: datetime) -> float:
    metadata = pod["metadata"]
    grace_seconds = float(metadata.get("deletionGracePeriodSeconds") or 0)
    # k8s: deletion was requested one grace period earlier
    deletion_time = parse_timestamp(metadata["deletionTimestamp"])
    return remaining_delay(
        deletion_time - timedelta(seconds=grace_seconds), min(settings.stop_after, grace_seconds), now
    )
