"""One local run, from checkout to outcome.

In: a job, and which run of it. Out: its state; always an outcome. Never: leaves a process or working file of the run.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from argosy.annotations import NETWORK
from argosy.errors import ClusterError, TransientError, UserError
from argosy.features.notebooks.environment import WORKSPACE
from argosy.features.notebooks.error_categories import refused
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.local_runs import environment
from argosy.features.notebooks.local_runs.checkout import Sources, export, file_in
from argosy.features.notebooks.local_runs.environment import Mounted
from argosy.features.notebooks.local_runs.records import Record
from argosy.features.notebooks.local_runs.settings import ARGOSY_CM, LEAST_MEMORY, Allowed, data_of, read
from argosy.features.notebooks.local_runs.slots import Slots
from argosy.features.notebooks.requirements import check_installed
from argosy.features.notebooks.run_backend import Outcome, RunKey, Standing, State
from argosy.features.notebooks.runner import artefacts, categories
from argosy.features.notebooks.runner.events import Heard
from argosy.features.notebooks.runner.order import STDOUT, Order
from argosy.isolation.errors import RefusedError
from argosy.isolation.limits import ProgramLimits
from argosy.isolation.long_running import DAYS, Ended, Surroundings, start
from argosy.isolation.program import python_command, python_places
from argosy.kube.client import Cluster
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.schema import quantity

RUNNER: Final = "argosy.features.notebooks.runner"
PROCESSES: Final = 256
GRACE: Final = 20.0  # seconds that the runner gets to handle its own deadline and report it
MOST_SAID: Final = 48 << 20  # bytes of output of a runner
_FOR_NETWORK = ("resolv.conf", "hosts", "nsswitch.conf", "ssl", "ca-certificates", "pki")
FOR_NETWORK: Final = [name for name in (f"/etc/{part}" for part in _FOR_NETWORK) if os.path.exists(name)]
log = logging.getLogger(__name__)


class Life:
    """A local run of a job; ends by itself or by `stop`."""

    def __init__(self, job: Job, run: RunKey, record: Record, claims: Path, sources: Sources, slots: Slots) -> None:
        self._job, self._record, self._claims, self._sources, self._slots = job, record, claims, sources, slots
        self._state: State = "waiting"
        self._heard, self._said = Heard(), 0
        self._rest: list[bytes] = []
        self._revision = ""
        self._outcome: Outcome | None = None
        self._mounts: list[Mounted] = []
        record.begin(run)

    def begin(self, cluster: Cluster) -> None:
        self.task = asyncio.create_task(self._live(cluster), name=f"notebook {self._job.key}")

    def standing(self, pod: str) -> Standing:
        message = self._outcome.message if self._outcome else ""
        cells, total = tuple(self._heard.cells), self._heard.total
        return Standing(self._state, cells, total, pod, self._revision, self._outcome, message)

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def _live(self, cluster: Cluster) -> None:
        try:
            allowed = read(await data_of(ARGOSY_CM, cluster))
            async with self._slots.taken(allowed.parallel):
                self._state = "running"
                start = artefacts.RunStart()
                outcome = await self._run(allowed, cluster)
            if outcome.passed:
                claims = [each for each in self._mounts if each.is_claim and not each.read_only]
                places = [(str(each.source), each.name) for each in claims]
                found = await asyncio.to_thread(artefacts.of, places, start.earliest_file_time())
                outcome = Outcome(True, outcome.message, results=outcome.results, artefacts=found)
        except UserError as error:
            outcome = refused(error)
        except (TransientError, ClusterError, RefusedError, OSError) as error:
            outcome = Outcome(False, str(error), categories.INFRASTRUCTURE, retriable=True)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("unexpected error while running notebook job %s", self._job.key)
            message = "argosy failed to run the notebook; see the logs of argosy"
            outcome = Outcome(False, message, categories.INFRASTRUCTURE, True)
        finally:
            await asyncio.shield(asyncio.to_thread(self._record.clear))
        self._record.finish(outcome, self._heard.notebook)
        self._heard.notebook = None  # it can be large, and is saved as a file now
        self._outcome, self._state = outcome, "ended"

    # -- preparing

    async def _run(self, allowed: Allowed, cluster: Cluster) -> Outcome:
        check_installed()
        order = await self._prepare(cluster)
        job, work = self._job, self._record.work

        async def find(kind: str, name: str) -> Manifest | None:
            return await cluster.get(ResourceKey("", kind, job.namespace, name))

        env = await environment.env_of(job, find)
        self._mounts = await environment.mounts_of(job, self._record.volumes, self._claims, find)
        ports = allowed.ports if job.annotations.get(NETWORK) == "on" else ()
        places = [environment.give(work / name) for name in (".tmp", ".shm")]
        own = [(str(work), WORKSPACE, False), (str(places[0]), "/tmp", False), (str(places[1]), "/dev/shm", False)]  # noqa: S108
        around = Surroundings(
            # The job's variables are for the notebook only: they must not influence the runner.
            env={"HOME": WORKSPACE, "TMPDIR": "/tmp", "HOSTNAME": f"{job.name}-validation"},  # noqa: S108
            ports=ports,
            needs_unix_sockets=True,  # kernel and client communicate over ipc
            mounts=[*own, *((str(each.source), each.name, each.read_only) for each in self._mounts)],
            extras=[(name, name, True) for name in FOR_NETWORK if ports],
            disposable=[work, self._record.volumes],
            scratch=work,
            counted=[each.source for each in self._mounts if not each.read_only],
            hear=self._hear,
        )
        await self._initialize(env, around, allowed)
        limits = ProgramLimits(cpu=DAYS, memory=_memory(job, allowed), scratch=allowed.storage, processes=PROCESSES)
        return await self._confined(replace(order, env=env), limits, around)

    async def _prepare(self, cluster: Cluster) -> Order:
        """Check out the files and build the run request. Raises SourceError."""
        job, work = self._job, self._record.work
        environment.give(work)
        checkout = await self._sources.checkout(job.notebook, job.namespace, cluster)
        self._revision = checkout.revision
        self._record.note(revision=checkout.revision)
        await asyncio.to_thread(export, checkout.tree, work / "repo")
        file_in(work / "repo", job.notebook.path, "spec.notebook.path")
        golden = ""
        if job.golden is not None:
            theirs = await self._sources.checkout(job.golden, job.namespace, cluster)
            await asyncio.to_thread(export, theirs.tree, work / "golden")
            file_in(work / "golden", job.golden.path, "spec.goldenNotebook.path")
            golden = f"{WORKSPACE}/golden/{job.golden.path}"
        await asyncio.to_thread(environment.own_all, work)
        return Order(
            notebook=f"{WORKSPACE}/repo/{job.notebook.path}", named=job.notebook.path, golden=golden,
            output=STDOUT, results=STDOUT, events=STDOUT, parameters=dict(job.parameters),
            timeout_seconds=job.timeout, comparison=dict(job.comparison), validation=dict(job.validation),
        )  # fmt: skip

    async def _initialize(self, env: dict[str, str], around: Surroundings, allowed: Allowed) -> None:
        """Run init containers with a command one after another in the same sandbox. Raises UserError if one fails."""
        for each in self._job.init_containers:
            argv = [str(word) for word in (*(each.get("command") or ()), *(each.get("args") or ()))]
            name = f"init container {each.get('name') or ''}"
            if not each.get("command"):
                raise UserError("local runs pull no image, so a command is required; set one", where=name)
            own = {str(one.get("name")): str(one.get("value") or "") for one in each.get("env") or ()}
            given = replace(around, env={**around.env, **env, **own}, hear=None, disposable=around.disposable)
            limits = ProgramLimits(cpu=DAYS, memory=allowed.memory, scratch=allowed.storage, processes=PROCESSES)
            places = (Path(sys.executable), *python_places())
            resident = await start(argv, folder=Path(WORKSPACE), readable=places, limits=limits, around=given)
            try:
                async with asyncio.timeout(self._job.timeout):
                    ended = await asyncio.shield(resident.ended)
            except TimeoutError:
                raise UserError(f"ran longer than {self._job.timeout:g} s; make it faster", where=name) from None
            finally:
                await resident.end()
            if ended.refused:
                raise UserError(f"cannot start: {ended.refused}", where=name)
            if ended.code or ended.limit:
                said = resident.said().strip()[-300:]
                raise UserError(f"exited with {ended.limit or ended.code}: {said}; correct its command", where=name)

    # -- running

    async def _confined(self, order: Order, limits: ProgramLimits, around: Surroundings) -> Outcome:
        readable = (Path(sys.executable), *python_places())
        command = python_command(RUNNER, "-")
        resident = await start(command, folder=Path(WORKSPACE), readable=readable, limits=limits, around=around)
        try:
            await resident.tell(order.dump().encode())
            async with asyncio.timeout(order.timeout_seconds + GRACE):
                ended = await asyncio.shield(resident.ended)
        except TimeoutError:
            message = f"the notebook ran longer than {order.timeout_seconds:g} s and did not stop; allow more time"
            return Outcome(False, message, categories.TIMEOUT, results=self._heard.results or {})
        finally:
            await resident.end()
        return self._judge(ended, limits, resident.said())

    def _hear(self, data: bytes) -> None:
        self._said += len(data)
        if self._said > MOST_SAID:
            return
        self._rest.append(data)  # lines may be long: join only once
        if b"\n" not in data:
            return
        *lines, rest = b"".join(self._rest).split(b"\n")
        self._rest = [rest]
        for line in lines:
            text = line.decode(errors="replace")
            self._heard.hear([text])
            self._record.hear(text)

    def _judge(self, ended: Ended, limits: ProgramLimits, said: str) -> Outcome:
        found: dict[str, Any] = self._heard.results or {}
        if ended.refused:
            raise RefusedError(f"cannot confine the notebook: {ended.refused}")
        if ended.limit == "memory":
            message = f"the notebook used more than {limits.memory >> 20} MiB of memory; raise its limit, or use less"
            return Outcome(False, message, categories.EXECUTION, results=found)
        if ended.limit:
            message = f"the notebook wrote more than {limits.scratch >> 20} MiB; write less, or raise notebooks.storage"
            return Outcome(False, message, categories.EXECUTION, results=found)
        if ended.code not in (0, 1, 2) or not found:
            log.warning("runner of notebook job %s exited with %s: %s", self._job.key, ended.code, said[-500:])
            message = f"the notebook terminated its own runner (exit code {ended.code})"
            return Outcome(False, message, categories.EXECUTION, results=found)
        passed = ended.code == 0 and found.get("status") == "succeeded"
        return Outcome(passed, _message(found), str(found.get("error_category") or ""), results=found)


def _message(found: dict[str, Any]) -> str:
    if found.get("status") == "succeeded":
        numbers = found["statistics"]
        ran, good = numbers["succeeded_cells"] + numbers["failed_cells"], numbers["succeeded_cells"]
        return f"Validation completed: {good}/{ran} cells succeeded ({numbers['success_rate']:.1f}% success rate)"
    error = str(found.get("error") or "the notebook failed")
    missing = ", ".join(found.get("packages_missing") or ())
    return f"{error}; local runs pull no image: install {missing} in the environment of argosy" if missing else error


def _memory(job: Job, allowed: Allowed) -> int:
    """The job's memory limit, at most the allowed memory."""
    asked = str((job.resources.get("limits") or {}).get("memory") or "")
    try:
        wanted = int(quantity.parse(asked)) if asked else allowed.memory
    except (UserError, ValueError):
        wanted = allowed.memory
    return max(min(wanted, allowed.memory), LEAST_MEMORY)
