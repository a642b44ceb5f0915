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

from argosy.isolation.limits import ProgramLimits
from argosy.isolation.long_running import DAYS, Resident, Surroundings, start
from argosy.isolation.program import python_places
from argosy.isolation.scratch_folders import scratch_folder, sweep_scratch_folders
from argosy.kube.client import Cluster
from argosy.kube.controller import Context
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps import remaining_delay
from argosy.kube.schema import quantity
from argosy.sandbox.simulators.pod_processes import container_log, volumes
from argosy.sandbox.simulators.pod_processes.container_process import Life
from argosy.sandbox.simulators.pod_processes.network import ports_of
from argosy.sandbox.simulators.pod_processes.service_account import account_of
from argosy.sandbox.simulators.pod_processes.settings import argv_of, env_of, expanded
from argosy.sandbox.simulators.timestamps import moment_of

LOOK: Final = 0.2  # poll interval of Pods with running processes
MEMORY, LEAST_MEMORY, MOST_MEMORY = 1 << 30, 64 << 20, 8 << 30
SCRATCH, TASKS = 256 << 20, 256
KUBECONFIG: Final = "kubeconfig"
LAST_WORDS: Final = "/dev/termination-log"


@dataclass(frozen=True)
class Doing:
    """The current state of a Pod that runs as processes."""

    phase: str
    init: list[dict[str, Any]]
    containers: list[dict[str, Any]]
    wait: float | None

    @property
    def is_ready(self) -> bool:
        return self.phase == "Running" and all(each["ready"] for each in self.containers)


@dataclass
class Running:
    """A Pod, its containers, and its local folder, which is deleted when its processes have ended."""

    key: ResourceKey
    init: list[Life]
    containers: list[Life]
    logs: Path
    folder: Path | None = None
    asked_to_end: bool = field(default=False)
    removal: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)  # deletes the folder

    @property
    def lives(self) -> list[Life]:
        return [*self.init, *self.containers]

    def words_of(self, container: Manifest) -> Path:
        """k8s: an empty file whose content becomes the termination message."""
        assert self.folder is not None
        file = volumes.give(self.folder / "words") / str(container["name"])
        file.write_bytes(b"")
        volumes.own(file, 0o600)
        for life in self.lives:
            if life.name == container["name"]:
                life.words = file
        return file

    def make_folder(self) -> Path:
        """Create the folder once. Programs can traverse its parents but cannot list them."""
        if self.folder is None:
            with contextlib.ExitStack() as undo:
                scratch = undo.enter_context(scratch_folder("argosy-pod-"))
                folder = scratch / "pod"
                folder.mkdir()
                for passed in (scratch, folder):
                    passed.chmod(0o711)
                self.removal.push(undo.pop_all())
            self.folder = folder
        return self.folder

    def close(self) -> None:
        self.removal.close()
        self.folder = None


class Processes:
    """Starts processes only while `run_in` is open."""

    def __init__(self) -> None:
        self._place: Path | None = None
        self._pods: dict[str, Running] = {}

    @property
    def is_open(self) -> bool:
        return self._place is not None

    @contextlib.asynccontextmanager
    async def beside(self, folder: Path) -> AsyncIterator[None]:
        self._place = folder
        await asyncio.to_thread(sweep_scratch_folders)  # left by a sandbox that was killed
        try:
            yield
        finally:
            self._place = None
            now = moment_of("2000-01-01T00:00:00Z")  # any time: the status is not read anymore
            await asyncio.gather(*(each.end(now) for pod in self._pods.values() for each in pod.lives))
            for pod in self._pods.values():
                pod.close()
            self._pods.clear()

    # -- state

    async def step(self, pod: Manifest, context: Context) -> Doing:
        """Start, restart or complete the containers of a Pod; return its state."""
        running = self._running(pod)
        policy, now = str(pod["spec"].get("restartPolicy") or "Always"), context.clock.now()
        waits: list[float | None] = []

        async def begin(container: Manifest, hear: Callable[[bytes], None]) -> Resident:
            return await self._start(pod, container, running, hear, context.cluster)

        may_begin = True
        for life in running.init:
            stays = life.container.get("restartPolicy") == "Always"
            waits.append(await life.step(begin, _policy_of_init(stays, policy), now))
            if not (life.code == 0 or (stays and life.is_running)):
                may_begin = False
                break
        if may_begin:
            waits += [await life.step(begin, policy, now) for life in running.containers]
        phase = _phase(running, policy, may_begin)
        if phase in ("Succeeded", "Failed"):
            await asyncio.gather(*(life.end(now) for life in running.lives))
            running.close()
        waits += [LOOK for life in running.lives if life.has_process]
        return Doing(
            phase,
            [each.status(waits=True) for each in running.init],
            [each.status(waits=not may_begin) for each in running.containers],
            min((max(each, 0.02) for each in waits if each is not None), default=None),
        )

    def _running(self, pod: Manifest) -> Running:
        uid = str(pod["metadata"]["uid"])
        if uid not in self._pods:
            assert self._place is not None
            metadata, status = pod["metadata"], pod.get("status") or {}
            logs = self._place / "logs" / "pods" / f"{metadata['namespace']}_{metadata['name']}_{uid}"
            lives: list[list[Life]] = []
            for part, told in (("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")):
                known = {each["name"]: each for each in status.get(told) or ()}
                lives.append([Life(each, logs, known.get(each["name"]) or {}) for each in pod["spec"].get(part) or ()])
            self._pods[uid] = Running(key_of(pod), lives[0], lives[1], logs)
        return self._pods[uid]

    async def _start(
        self, pod: Manifest, container: Manifest, running: Running, hear: Callable[[bytes], None], cluster: Cluster
    ) -> Resident:
        assert self._place is not None
        namespace = pod["metadata"]["namespace"]

        async def read(kind: str, name: str) -> Manifest | None:
            return await cluster.get(ResourceKey("", kind, namespace, name))

        env = await env_of(pod, container, read)
        argv = argv_of(container, env)
        folder = running.make_folder()
        folders = await volumes.folders_of(pod, folder / "volumes", self._place / "volumes", read)
        account = await account_of(pod, folder, cluster, self._place / KUBECONFIG)
        words = running.words_of(container)
        argv[0] = shutil.which(argv[0], path={**account.env, **env}["PATH"]) or argv[0]
        around = Surroundings(
            env={"HOSTNAME": pod["metadata"]["name"], **account.env, **env},
            ports=(*account.ports, *await ports_of(pod, cluster)),
            mounts=volumes.mounts_of(container, folders),
            extras=(*account.extras, (str(words), str(container.get("terminationMessagePath") or LAST_WORDS), False)),
            disposable=[folder],
            at_home=not container.get("workingDir"),
            hear=hear,
        )
        where = Path(expanded(str(container.get("workingDir") or folder / "bin"), env))
        readable = (Path(sys.executable), *python_places(), *account.readable)
        return await start(argv, folder=where, readable=readable, limits=_limits(container), around=around)

    # -- end

    async def stop(self, pod: Manifest, now: datetime) -> float:
        """Ask the processes to end, then kill them after the grace period; return the seconds to wait, 0 when done."""
        running = self._pods.get(str(pod["metadata"]["uid"]))
        if running is None:
            return 0.0
        for life in running.lives:
            if not running.asked_to_end:
                life.ask_to_end()
        running.asked_to_end = True
        seconds = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        asked = moment_of(pod["metadata"]["deletionTimestamp"]) - timedelta(seconds=seconds)
        grace = remaining_delay(asked, seconds, now)
        if grace > 0 and any(life.has_process for life in running.lives):
            return min(grace, LOOK)
        await self.forget(pod["metadata"]["uid"], now)
        return 0.0

    async def end(self, pod: Manifest, now: datetime) -> None:
        """Kill the processes at once; their output stays."""
        if running := self._pods.get(str(pod["metadata"]["uid"])):
            await asyncio.gather(*(life.end(now) for life in running.lives))
            running.close()

    async def forget(self, uid: str, now: datetime) -> None:
        """Kill the processes of a deleted Pod and delete its logs."""
        if running := self._pods.pop(uid, None):
            await asyncio.gather(*(life.end(now) for life in running.lives))
            running.close()
            shutil.rmtree(running.logs, ignore_errors=True)

    async def forget_gone(self, key: ResourceKey, now: datetime) -> None:
        """Forget a Pod that was deleted by force."""
        for uid in [uid for uid, running in self._pods.items() if running.key == key]:
            await self.forget(uid, now)

    # -- output

    def lines(
        self, pod: Manifest, *, container: str, follow: bool, tail: int | None, previous: bool = False
    ) -> AsyncIterator[str] | None:
        """Return the output of a container, or None if the Pod does not run as a process."""
        running = self._pods.get(str(pod["metadata"]["uid"]))
        life = next((each for each in running.lives if each.name == container), None) if running else None
        if life is None:
            return None
        restarts = life.restarts
        file = life.log(previous=previous)

        def is_over() -> bool:
            return life.restarts != restarts or not life.has_process

        return container_log.lines(file, tail=tail, follow=follow and not previous, is_over=is_over)


def _policy_of_init(stays: bool, policy: str) -> str:
    return "Always" if stays else "Never" if policy == "Never" else "OnFailure"


def _phase(running: Running, policy: str, has_begun: bool) -> str:
    if not has_begun:
        is_over = policy == "Never" and any(life.code for life in running.init)
        return "Failed" if is_over else "Pending"
    codes = [life.code for life in running.containers]
    if all(code is not None for code in codes):
        return "Failed" if any(codes) else "Succeeded"
    begun = all(life.state and (life.restarts or _is_created(life)) for life in running.containers)
    return "Running" if begun else "Pending"


def _is_created(life: Life) -> bool:
    return (life.state.get("waiting") or {}).get("reason") != "CreateContainerConfigError"


def _limits(container: Manifest) -> ProgramLimits:
    asked = ((container.get("resources") or {}).get("limits") or {}).get("memory")
    memory = min(int(quantity.parse(asked)), MOST_MEMORY) if asked else MEMORY
    return ProgramLimits(cpu=DAYS, memory=max(memory, LEAST_MEMORY), scratch=SCRATCH, processes=TASKS)
