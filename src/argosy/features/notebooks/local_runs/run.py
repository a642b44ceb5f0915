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
from argosy.features.notebooks.jupyter_package_check import check_installed
from argosy.features.notebooks.local_runs import environment_variables_and_mounts
from argosy.features.notebooks.local_runs.checkout import NotebookRepositories, export_tree, find_exported_file
from argosy.features.notebooks.local_runs.environment_variables_and_mounts import LocalMount
from argosy.features.notebooks.local_runs.run_limits_config_map import (
    ARGOSY_CM,
    MIN_MEMORY_BYTES,
    LocalRunSettings,
    load_config_map_data,
    read_settings,
)
from argosy.features.notebooks.local_runs.run_record_folder import RunRecord
from argosy.features.notebooks.local_runs.slots import RunSlots
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.run_backend import NotebookRunState, RunKey, RunOutcome, RunPhase
from argosy.features.notebooks.run_outcome_from_error import build_refused_outcome
from argosy.features.notebooks.runner import failure_category_names, written_file_digests
from argosy.features.notebooks.runner.event_stream import RunProgress
from argosy.features.notebooks.runner.run_request import STDOUT, RunRequest
from argosy.features.notebooks.standard_environment_variables import WORKSPACE
from argosy.isolation.errors import RefusedError
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.long_running_program import NO_WALL_LIMIT_SECONDS, ProgramAccess, ProgramExit, start_program
from argosy.isolation.untrusted_program_runner import build_module_command, list_python_paths
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema import quantity

RUNNER_MODULE: Final = "argosy.features.notebooks.runner"
MAX_PROCESSES: Final = 256
TIMEOUT_GRACE_SECONDS: Final = 20.0  # seconds that the runner gets to handle its own deadline and report it
MAX_RUNNER_OUTPUT_BYTES: Final = 48 << 20  # bytes of output of a runner
_NETWORK_FILE_NAMES = ("resolv.conf", "hosts", "nsswitch.conf", "ssl", "ca-certificates", "pki")
NETWORK_FILES: Final = [name for name in (f"/etc/{part}" for part in _NETWORK_FILE_NAMES) if os.path.exists(name)]
log = logging.getLogger(__name__)


class LocalRun:
    """A local run of a job; ends by itself or by `stop`."""

    def __init__(
        self,
        job: NotebookJob,
        run: RunKey,
        record: RunRecord,
        claims_folder: Path,
        repositories: NotebookRepositories,
        slots: RunSlots,
    ) -> None:
        self._job, self._record, self._claims_folder, self._repositories, self._slots = (
            job,
            record,
            claims_folder,
            repositories,
            slots,
        )
        self._state: RunPhase = "waiting"
        self._progress, self._output_bytes = RunProgress(), 0
        self._pending_output: list[bytes] = []
        self._revision = ""
        self._outcome: RunOutcome | None = None
        self._mounts: list[LocalMount] = []
        record.create(run)

    def start(self, cluster: Cluster) -> None:
        self.task = asyncio.create_task(self._run_to_end(cluster), name=f"notebook {self._job.key}")

    def get_run_state(self, pod: str) -> NotebookRunState:
        message = self._outcome.message if self._outcome else ""
        cells, total = tuple(self._progress.cell_events), self._progress.cell_count
        return NotebookRunState(self._state, cells, total, pod, self._revision, self._outcome, message)

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def _run_to_end(self, cluster: Cluster) -> None:
        try:
            limits = read_settings(await load_config_map_data(ARGOSY_CM, cluster))
            async with self._slots.acquire(limits.max_parallel_runs):
                self._state = "running"
                run_start = written_file_digests.RunStart()
                outcome = await self._run_notebook(limits, cluster)
            if outcome.passed:
                claim_mounts = [mount for mount in self._mounts if mount.is_claim and not mount.read_only]
                folders = [(str(mount.source), mount.mount_path) for mount in claim_mounts]
                files = await asyncio.to_thread(
                    written_file_digests.list_written_files, folders, run_start.earliest_file_time()
                )
                outcome = RunOutcome(True, outcome.message, results=outcome.results, artefacts=files)
        except UserError as error:
            outcome = build_refused_outcome(error)
        except (TransientError, ClusterError, RefusedError, OSError) as error:
            outcome = RunOutcome(False, str(error), failure_category_names.INFRASTRUCTURE, retriable=True)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("unexpected error while running notebook job %s", self._job.key)
            message = "argosy failed to run the notebook; see the logs of argosy"
            outcome = RunOutcome(False, message, failure_category_names.INFRASTRUCTURE, True)
        finally:
            await asyncio.shield(asyncio.to_thread(self._record.remove_working_files))
        self._record.finish(outcome, self._progress.notebook)
        self._progress.notebook = None  # it can be large, and is saved as a file now
        self._outcome, self._state = outcome, "ended"

    # -- preparing

    async def _run_notebook(self, settings: LocalRunSettings, cluster: Cluster) -> RunOutcome:
        check_installed()
        run_request = await self._prepare_run_request(cluster)
        job, work = self._job, self._record.work

        async def get_core_object(kind: str, name: str) -> Manifest | None:
            return await cluster.get(ResourceKey("", kind, job.namespace, name))

        env = await environment_variables_and_mounts.load_variables(job, get_core_object)
        self._mounts = await environment_variables_and_mounts.prepare_mounts(
            job, self._record.volumes, self._claims_folder, get_core_object
        )
        ports = settings.ports if job.annotations.get(NETWORK) == "on" else ()
        private_folders = [
            environment_variables_and_mounts.create_owned_folder(work / name) for name in (".tmp", ".shm")
        ]
        private_mounts = [
            (str(work), WORKSPACE, False),
            (str(private_folders[0]), "/tmp", False),  # noqa: S108
            (str(private_folders[1]), "/dev/shm", False),  # noqa: S108
        ]
        access = ProgramAccess(
            # The job's variables are for the notebook only: they must not influence the runner.
            env={"HOME": WORKSPACE, "TMPDIR": "/tmp", "HOSTNAME": f"{job.name}-validation"},  # noqa: S108
            ports=ports,
            needs_unix_sockets=True,  # kernel and client communicate over ipc
            mounts=[
                *private_mounts,
                *((str(mount.source), mount.mount_path, mount.read_only) for mount in self._mounts),
            ],
            extras=[(name, name, True) for name in NETWORK_FILES if ports],
            disposable=[work, self._record.volumes],
            scratch=work,
            counted=[mount.source for mount in self._mounts if not mount.read_only],
            on_output=self._on_output,
        )
        await self._run_init_containers(env, access, settings)
        limits = ProgramLimits(
            cpu=NO_WALL_LIMIT_SECONDS,
            memory=_compute_memory_limit(job, settings),
            scratch=settings.storage_bytes,
            processes=MAX_PROCESSES,
        )
        return await self._run_confined(replace(run_request, env=env), limits, access)

    async def _prepare_run_request(self, cluster: Cluster) -> RunRequest:
        """Check out the files and build the run request. Raises SourceError."""
        job, work = self._job, self._record.work
        environment_variables_and_mounts.create_owned_folder(work)
        checkout = await self._repositories.checkout(job.notebook, job.namespace, cluster)
        self._revision = checkout.revision
        self._record.save_facts(revision=checkout.revision)
        await asyncio.to_thread(export_tree, checkout.tree, work / "repo")
        find_exported_file(work / "repo", job.notebook.path, "spec.notebook.path")
        golden = ""
        if job.golden is not None:
            golden_checkout = await self._repositories.checkout(job.golden, job.namespace, cluster)
            await asyncio.to_thread(export_tree, golden_checkout.tree, work / "golden")
            find_exported_file(work / "golden", job.golden.path, "spec.goldenNotebook.path")
            golden = f"{WORKSPACE}/golden/{job.golden.path}"
        await asyncio.to_thread(environment_variables_and_mounts.set_owner_recursively, work)
        return RunRequest(
            notebook=f"{WORKSPACE}/repo/{job.notebook.path}", named=job.notebook.path, golden=golden,
            output=STDOUT, results=STDOUT, events=STDOUT, parameters=dict(job.parameters),
            timeout_seconds=job.timeout, comparison=dict(job.comparison), validation=dict(job.validation),
        )  # fmt: skip

    async def _run_init_containers(
        self, env: dict[str, str], access: ProgramAccess, settings: LocalRunSettings
    ) -> None:
        """Run init containers with a command one after another in the same sandbox. Raises UserError if one fails."""
        for container in self._job.init_containers:
            argv = [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]
            name = f"init container {container.get('name') or ''}"
            if not container.get("command"):
                raise UserError("local runs pull no image, so a command is required; set one", where=name)
            variables = {
                str(variable.get("name")): str(variable.get("value") or "") for variable in container.get("env") or ()
            }
            container_access = replace(
                access, env={**access.env, **env, **variables}, on_output=None, disposable=access.disposable
            )
            limits = ProgramLimits(
                cpu=NO_WALL_LIMIT_SECONDS,
                memory=settings.memory_bytes,
                scratch=settings.storage_bytes,
                processes=MAX_PROCESSES,
            )
            readable_paths = (Path(sys.executable), *list_python_paths())
            program = await start_program(
                argv, folder=Path(WORKSPACE), readable=readable_paths, limits=limits, access=container_access
            )
            try:
                async with asyncio.timeout(self._job.timeout):
                    program_end = await asyncio.shield(program.exit_task)
            except TimeoutError:
                raise UserError(f"ran longer than {self._job.timeout:g} s; make it faster", where=name) from None
            finally:
                await program.kill()
            if program_end.refused:
                raise UserError(f"cannot start: {program_end.refused}", where=name)
            if program_end.code or program_end.limit:
                output = program.read_output_tail().strip()[-300:]
                raise UserError(
                    f"exited with {program_end.limit or program_end.code}: {output}; correct its command", where=name
                )

    # -- running

    async def _run_confined(self, run_request: RunRequest, limits: ProgramLimits, access: ProgramAccess) -> RunOutcome:
        readable = (Path(sys.executable), *list_python_paths())
        command = build_module_command(RUNNER_MODULE, "-")
        program = await start_program(command, folder=Path(WORKSPACE), readable=readable, limits=limits, access=access)
        try:
            await program.write_line(run_request.to_json().encode())
            async with asyncio.timeout(run_request.timeout_seconds + TIMEOUT_GRACE_SECONDS):
                program_end = await asyncio.shield(program.exit_task)
        except TimeoutError:
            message = (
                f"the notebook ran longer than {run_request.timeout_seconds:g} s and did not stop; allow more time"
            )
            return RunOutcome(False, message, failure_category_names.TIMEOUT, results=self._progress.results or {})
        finally:
            await program.kill()
        return self._build_outcome(program_end, limits, program.read_output_tail())

    def _on_output(self, data: bytes) -> None:
        self._output_bytes += len(data)
        if self._output_bytes > MAX_RUNNER_OUTPUT_BYTES:
            return
        self._pending_output.append(data)  # lines may be long: join only once
        if b"\n" not in data:
            return
        *lines, incomplete_line = b"".join(self._pending_output).split(b"\n")
        self._pending_output = [incomplete_line]
        for line in lines:
            text = line.decode(errors="replace")
            self._progress.add_lines([text])
            self._record.append_event(text)

    def _build_outcome(self, program_end: ProgramExit, limits: ProgramLimits, output: str) -> RunOutcome:
        results: dict[str, Any] = self._progress.results or {}
        if program_end.refused:
            raise RefusedError(f"cannot confine the notebook: {program_end.refused}")
        if program_end.limit == "memory":
            message = f"the notebook used more than {limits.memory >> 20} MiB of memory; raise its limit, or use less"
            return RunOutcome(False, message, failure_category_names.EXECUTION, results=results)
        if program_end.limit:
            message = f"the notebook wrote more than {limits.scratch >> 20} MiB; write less, or raise notebooks.storage"
            return RunOutcome(False, message, failure_category_names.EXECUTION, results=results)
        if program_end.code not in (0, 1, 2) or not results:
            log.warning("runner of notebook job %s exited with %s: %s", self._job.key, program_end.code, output[-500:])
            message = f"the notebook terminated its own runner (exit code {program_end.code})"
            return RunOutcome(False, message, failure_category_names.EXECUTION, results=results)
        passed = program_end.code == 0 and results.get("status") == "succeeded"
        return RunOutcome(passed, _build_message(results), str(results.get("error_category") or ""), results=results)


def _build_message(results: dict[str, Any]) -> str:
    if results.get("status") == "succeeded":
        statistics = results["statistics"]
        ran_count, succeeded_count = (
            statistics["succeeded_cells"] + statistics["failed_cells"],
            statistics["succeeded_cells"],
        )
        return (
            f"Validation completed: {succeeded_count}/{ran_count} cells succeeded "
            f"({statistics['success_rate']:.1f}% success rate)"
        )
    error = str(results.get("error") or "the notebook failed")
    missing = ", ".join(results.get("packages_missing") or ())
    return f"{error}; local runs pull no image: install {missing} in the environment of argosy" if missing else error


def _compute_memory_limit(job: NotebookJob, settings: LocalRunSettings) -> int:
    """The job's memory limit, at most the allowed memory."""
    memory_text = str((job.resources.get("limits") or {}).get("memory") or "")
    try:
        requested_bytes = int(quantity.parse(memory_text)) if memory_text else settings.memory_bytes
    except (UserError, ValueError):
        requested_bytes = settings.memory_bytes
    return max(min(requested_bytes, settings.memory_bytes), MIN_MEMORY_BYTES)
