"""Runs Pods as local processes, from the first init container to the end of the Pod.

In: Pods that request it. Out: their current state and their output. Never: leaves a process running after `run_in`
ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from argosy.annotations import NETWORK
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.long_running_program import (
    NO_WALL_LIMIT_SECONDS,
    LongRunningProgram,
    ProgramAccess,
    start_program,
)
from argosy.isolation.scratch_folders import create_scratch_folder, sweep_scratch_folders
from argosy.isolation.untrusted_program_runner import list_python_paths
from argosy.kube.client import Cluster
from argosy.kube.controller import ControllerContext
from argosy.kube.objects import Manifest, get_annotation, key_of
from argosy.kube.objects.allowed_ports_setting_parser import parse_ports
from argosy.kube.objects.timestamps_and_delays import remaining_delay
from argosy.kube.resource_key import CONTROL_NAMESPACES, ResourceKey
from argosy.kube.schema import quantity
from argosy.kube.well_known_kinds import CONFIG_MAP
from argosy.sandbox.simulators.pod_processes import container_log_file, volumes
from argosy.sandbox.simulators.pod_processes.command_and_environment import build_argv, build_env, expand_variables
from argosy.sandbox.simulators.pod_processes.container_process import ContainerProcess
from argosy.sandbox.simulators.pod_processes.service_account import write_service_account_files
from argosy.sandbox.simulators.timestamps_and_durations import parse_timestamp

POLL_INTERVAL_SECONDS: Final = 0.2  # poll interval of Pods with running processes
DEFAULT_MEMORY_BYTES, MIN_MEMORY_BYTES, MAX_MEMORY_BYTES = 1 << 30, 64 << 20, 8 << 30
SCRATCH_BYTES, MAX_PROCESSES = 256 << 20, 256
KUBECONFIG_FILE: Final = "kubeconfig"
TERMINATION_MESSAGE_PATH: Final = "/dev/termination-log"
NETWORK_SETTING: Final = "notebooks.network"


@dataclass(frozen=True)
class ProcessPodState:
    """The current state of a Pod that runs as processes."""

    phase: str
    init_statuses: list[dict[str, Any]]
    container_statuses: list[dict[str, Any]]
    seconds_until_change: float | None

    @property
    def is_ready(self) -> bool:
        return self.phase == "Running" and all(status["ready"] for status in self.container_statuses)


@dataclass
class RunningPod:
    """A Pod, its containers, and its local folder, which is deleted when its processes have ended."""

    key: ResourceKey
    init_containers: list[ContainerProcess]
    containers: list[ContainerProcess]
    logs: Path
    folder: Path | None = None
    is_stopping: bool = field(default=False)
    folder_cleanup: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)  # deletes the folder

    @property
    def all_containers(self) -> list[ContainerProcess]:
        return [*self.init_containers, *self.containers]

    def create_termination_message_file(self, container: Manifest) -> Path:
        """k8s: an empty file whose content becomes the termination message."""
        assert self.folder is not None
        file = volumes.create_folder(self.folder / "words") / str(container["name"])
        file.write_bytes(b"")
        volumes.set_owner(file, 0o600)
        for process in self.all_containers:
            if process.name == container["name"]:
                process.termination_message_file = file
        return file

    def get_mirror_folder(self) -> Path:
        """Create the folder once. Programs can traverse its parents but cannot list them."""
        if self.folder is None:
            with contextlib.ExitStack() as cleanup:
                scratch = cleanup.enter_context(create_scratch_folder("argosy-pod-"))
                folder = scratch / "pod"
                folder.mkdir()
                for path in (scratch, folder):
                    path.chmod(0o711)
                self.folder_cleanup.push(cleanup.pop_all())
            self.folder = folder
        return self.folder

    def close(self) -> None:
        self.folder_cleanup.close()
        self.folder = None


class PodProcesses:
    """Starts processes only while `run_in` is open."""

    def __init__(self) -> None:
        self._data_folder: Path | None = None
        self._pods: dict[str, RunningPod] = {}

    @property
    def is_open(self) -> bool:
        return self._data_folder is not None

    @contextlib.asynccontextmanager
    async def run_in(self, folder: Path) -> AsyncIterator[None]:
        self._data_folder = folder
        await asyncio.to_thread(sweep_scratch_folders)  # left by a sandbox that was killed
        try:
            yield
        finally:
            self._data_folder = None
            now = parse_timestamp("2000-01-01T00:00:00Z")  # any time: the status is not read anymore
            await asyncio.gather(*(process.end(now) for pod in self._pods.values() for process in pod.all_containers))
            for pod in self._pods.values():
                pod.close()
            self._pods.clear()

    # -- state

    async def advance(self, pod: Manifest, context: ControllerContext) -> ProcessPodState:
        """Start, restart or complete the containers of a Pod; return its state."""
        running_pod = self._find_or_register(pod)
        policy, now = str(pod["spec"].get("restartPolicy") or "Always"), context.clock.now()
        waits: list[float | None] = []

        async def start_container(container: Manifest, on_output: Callable[[bytes], None]) -> LongRunningProgram:
            return await self._start_container(pod, container, running_pod, on_output, context.cluster)

        is_initialized = True
        for process in running_pod.init_containers:
            is_sidecar = process.container.get("restartPolicy") == "Always"
            waits.append(await process.advance(start_container, _choose_init_restart_policy(is_sidecar, policy), now))
            if not (process.exit_code == 0 or (is_sidecar and process.is_running)):
                is_initialized = False
                break
        if is_initialized:
            waits += [await process.advance(start_container, policy, now) for process in running_pod.containers]
        phase = _compute_phase(running_pod, policy, is_initialized)
        if phase in ("Succeeded", "Failed"):
            await asyncio.gather(*(process.end(now) for process in running_pod.all_containers))
            running_pod.close()
        waits += [POLL_INTERVAL_SECONDS for process in running_pod.all_containers if process.has_process]
        return ProcessPodState(
            phase,
            [item.build_status(is_initializing=True) for item in running_pod.init_containers],
            [item.build_status(is_initializing=not is_initialized) for item in running_pod.containers],
            min((max(item, 0.02) for item in waits if item is not None), default=None),
        )

    def _find_or_register(self, pod: Manifest) -> RunningPod:
        uid = str(pod["metadata"]["uid"])
        if uid not in self._pods:
            assert self._data_folder is not None
            metadata, status = pod["metadata"], pod.get("status") or {}
            logs = self._data_folder / "logs" / "pods" / f"{metadata['namespace']}_{metadata['name']}_{uid}"
            process_lists: list[list[ContainerProcess]] = []
            for spec_field, status_field in (
                ("initContainers", "initContainerStatuses"),
                ("containers", "containerStatuses"),
            ):
                previous_statuses = {item["name"]: item for item in status.get(status_field) or ()}
                process_lists.append(
                    [
                        ContainerProcess(item, logs, previous_statuses.get(item["name"]) or {})
                        for item in pod["spec"].get(spec_field) or ()
                    ]
                )
            self._pods[uid] = RunningPod(key_of(pod), process_lists[0], process_lists[1], logs)
        return self._pods[uid]

    async def _start_container(
        self,
        pod: Manifest,
        container: Manifest,
        running_pod: RunningPod,
        on_output: Callable[[bytes], None],
        cluster: Cluster,
    ) -> LongRunningProgram:
        assert self._data_folder is not None
        namespace = pod["metadata"]["namespace"]

        async def load_object(kind: str, name: str) -> Manifest | None:
            return await cluster.get(ResourceKey("", kind, namespace, name))

        env = await build_env(pod, container, load_object)
        argv = build_argv(container, env)
        folder = running_pod.get_mirror_folder()
        folders = await volumes.prepare_volume_folders(
            pod, folder / "volumes", self._data_folder / "volumes", load_object
        )
        account = await write_service_account_files(pod, folder, cluster, self._data_folder / KUBECONFIG_FILE)
        message_file = running_pod.create_termination_message_file(container)
        argv[0] = shutil.which(argv[0], path={**account.env, **env}["PATH"]) or argv[0]
        surroundings = ProgramAccess(
            env={"HOSTNAME": pod["metadata"]["name"], **account.env, **env},
            ports=(*account.ports, *await load_allowed_outbound_ports(pod, cluster)),
            mounts=volumes.build_mounts(container, folders),
            extras=(
                *account.extra_mounts,
                (str(message_file), str(container.get("terminationMessagePath") or TERMINATION_MESSAGE_PATH), False),
            ),
            disposable=[folder],
            starts_in_scratch=not container.get("workingDir"),
            on_output=on_output,
        )
        working_folder = Path(expand_variables(str(container.get("workingDir") or folder / "bin"), env))
        readable = (Path(sys.executable), *list_python_paths(), *account.readable_paths)
        return await start_program(
            argv, folder=working_folder, readable=readable, limits=_read_limits(container), access=surroundings
        )

    # -- end

    async def stop(self, pod: Manifest, now: datetime) -> float:
        """Ask the processes to end, then kill them after the grace period; return the seconds to wait, 0 when done."""
        running_pod = self._pods.get(str(pod["metadata"]["uid"]))
        if running_pod is None:
            return 0.0
        for process in running_pod.all_containers:
            if not running_pod.is_stopping:
                process.ask_to_end()
        running_pod.is_stopping = True
        seconds = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        deletion_time = parse_timestamp(pod["metadata"]["deletionTimestamp"]) - timedelta(seconds=seconds)
        grace_left = remaining_delay(deletion_time, seconds, now)
        if grace_left > 0 and any(process.has_process for process in running_pod.all_containers):
            return min(grace_left, POLL_INTERVAL_SECONDS)
        await self.kill_and_delete_logs(pod["metadata"]["uid"], now)
        return 0.0

    async def end(self, pod: Manifest, now: datetime) -> None:
        """Kill the processes at once; their output stays."""
        if running_pod := self._pods.get(str(pod["metadata"]["uid"])):
            await asyncio.gather(*(process.end(now) for process in running_pod.all_containers))
            running_pod.close()

    async def kill_and_delete_logs(self, uid: str, now: datetime) -> None:
        """Kill the processes of a deleted Pod and delete its logs."""
        if running_pod := self._pods.pop(uid, None):
            await asyncio.gather(*(process.end(now) for process in running_pod.all_containers))
            running_pod.close()
            shutil.rmtree(running_pod.logs, ignore_errors=True)

    async def kill_pod_by_key(self, key: ResourceKey, now: datetime) -> None:
        """Forget a Pod that was deleted by force."""
        for uid in [uid for uid, running_pod in self._pods.items() if running_pod.key == key]:
            await self.kill_and_delete_logs(uid, now)

    # -- output

    def lines(
        self, pod: Manifest, *, container: str, follow: bool, tail: int | None, previous: bool = False
    ) -> AsyncIterator[str] | None:
        """Return the output of a container, or None if the Pod does not run as a process."""
        running_pod = self._pods.get(str(pod["metadata"]["uid"]))
        process = (
            next((candidate for candidate in running_pod.all_containers if candidate.name == container), None)
            if running_pod
            else None
        )
        if process is None:
            return None
        restarts = process.restart_count
        file = process.find_log(previous=previous)

        def is_over() -> bool:
            return process.restart_count != restarts or not process.has_process

        return container_log_file.read_lines(file, tail=tail, follow=follow and not previous, is_over=is_over)


def _choose_init_restart_policy(is_sidecar: bool, policy: str) -> str:
    return "Always" if is_sidecar else "Never" if policy == "Never" else "OnFailure"


def _compute_phase(running_pod: RunningPod, policy: str, is_initialized: bool) -> str:
    if not is_initialized:
        is_over = policy == "Never" and any(process.exit_code for process in running_pod.init_containers)
        return "Failed" if is_over else "Pending"
    codes = [process.exit_code for process in running_pod.containers]
    if all(code is not None for code in codes):
        return "Failed" if any(codes) else "Succeeded"
    are_all_created = all(
        process.state and (process.restart_count or _is_created(process)) for process in running_pod.containers
    )
    return "Running" if are_all_created else "Pending"


def _is_created(process: ContainerProcess) -> bool:
    return (process.state.get("waiting") or {}).get("reason") != "CreateContainerConfigError"


def _read_limits(container: Manifest) -> ProgramLimits:
    memory_limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
    memory = min(int(quantity.parse(memory_limit)), MAX_MEMORY_BYTES) if memory_limit else DEFAULT_MEMORY_BYTES
    return ProgramLimits(
        cpu=NO_WALL_LIMIT_SECONDS, memory=max(memory, MIN_MEMORY_BYTES), scratch=SCRATCH_BYTES, processes=MAX_PROCESSES
    )


async def load_allowed_outbound_ports(pod: Manifest, cluster: Cluster) -> tuple[int, ...]:
    """Return the ports, besides the cluster's API, that both the Pod and the ConfigMap argosy-cm allow."""
    if get_annotation(pod, NETWORK) != "on":
        return ()
    for namespace in CONTROL_NAMESPACES:
        config_map = await cluster.get(ResourceKey(*CONFIG_MAP, namespace, "argosy-cm"))
        if config_map is not None:
            return parse_ports(str((config_map.get("data") or {}).get(NETWORK_SETTING) or "")) or ()
    return ()
