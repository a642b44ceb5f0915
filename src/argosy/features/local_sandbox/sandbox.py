"""The sandbox process: an embedded Kubernetes API server with add-ons.

In: options, and an optional task to run inside. Out: a reachable cluster. Never: reports ready before that task is.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from argosy.cli.sandbox_data_folder_and_lock import DataFolder, RunningInstance, write_private_text
from argosy.errors import UserError
from argosy.features.local_sandbox import kubeconfig
from argosy.features.local_sandbox.component_logs_as_pod_logs import ComponentLogs
from argosy.isolation.scratch_folders import create_scratch_folder
from argosy.kube.client import AccessDescriber, Cluster, PodLogReader, PreviousPodLogReader, SelectivePodLogReader
from argosy.kube.client.private_file_permission_check import check_private_file
from argosy.kube.controller import AddOn
from argosy.kube.controller.addon_loader import load_addons, run_addons
from argosy.kube.objects import Manifest, dump_yaml
from argosy.sandbox.apiserver.tls import CertificateFiles

OnReady = Callable[[RunningInstance], None]
# A task inside the sandbox: starts before the sandbox is ready, ends before it stops, and adds fields to its Run.
CompleteRun = Callable[[RunningInstance], RunningInstance]
InnerTask = Callable[[Cluster, DataFolder, asyncio.Event], AbstractAsyncContextManager[CompleteRun]]
MAX_OPEN_FILES = 65536
NO_READER_MESSAGE: Final = "nothing runs Pods in this cluster, so there are no logs and no shell"


@dataclass(frozen=True)
class SandboxOptions:
    data_dir: Path | None = None
    port: int | None = None
    kubeconfig: Path | None = None
    ephemeral: bool = False
    rbac: bool | None = None  # None: as last time
    addons: str = ""  # names, with a variant after "="; separated by commas
    log_format: str = ""  # "": message only, without a time
    log_level: str = "warn"
    max_watches_per_user: int | None = None  # None: the server's default


@contextlib.asynccontextmanager
async def no_inner_task(cluster: Cluster, folder: DataFolder, stop: asyncio.Event) -> AsyncIterator[CompleteRun]:
    yield lambda run: run


def run_sandbox(options: SandboxOptions, on_ready: OnReady) -> None:
    """Run in the foreground; returns after SIGTERM or SIGINT, when all writes are durable."""
    if options.ephemeral and options.data_dir is None:
        with create_scratch_folder("argosy-sandbox-") as scratch:
            run_in_folder(DataFolder(scratch / "data"), options, on_ready)
    else:
        run_in_folder(DataFolder(options.data_dir), options, on_ready)


def run_in_folder(
    folder: DataFolder, options: SandboxOptions, on_ready: OnReady, inner_task: InnerTask = no_inner_task
) -> None:
    _raise_open_file_limit()
    with folder.lock_for_this_process():
        _run_on_fast_loop(_serve(folder, options, on_ready, inner_task))


def _raise_open_file_limit() -> None:
    """Raise the open file limit: the usual 1024 is too low for the informers and watches of a few clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    new_limit = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < new_limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (new_limit, hard))


def _run_on_fast_loop(main: Coroutine[Any, Any, None]) -> None:
    """Use uvloop if it is installed: the loop takes a third of the cost of a request."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main)


async def _serve(folder: DataFolder, options: SandboxOptions, on_ready: OnReady, inner_task: InnerTask) -> None:
    from argosy.sandbox.apiserver.control_plane import MAX_WATCHES_PER_USER, ControlPlane, ControlPlaneFiles
    from argosy.sandbox.apiserver.https_server import serve_https
    from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
    from argosy.sandbox.apiserver.tls import ensure_certificates

    addons = load_addons(options.addons)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server_certificates = ensure_certificates(folder.tls)
    token = _load_or_create_admin_token(folder)
    plane_files = ControlPlaneFiles(folder.database, folder.secret_key, folder.token_key, server_certificates.authority)
    rbac = folder.get_last_rbac() if options.rbac is None else options.rbac
    port = folder.get_last_port() if options.port is None else options.port
    async with (
        _open_pod_logs(addons, options) as pod_logs,
        ControlPlane.open(
            plane_files,
            rbac=rbac,
            admin_token=token,
            in_memory=options.ephemeral,
            max_watches_per_user=options.max_watches_per_user or MAX_WATCHES_PER_USER,
        ) as plane,
        _serve_with_kubeconfig(
            folder,
            server_certificates,
            token,
            serve_https(plane, server_certificates, port=port, allow_other_port=options.port is None),
        ) as api_and_kubeconfig,
        run_addons(addons, EmbeddedCluster(plane), on_failure=stop.set, folder=folder.root),
        inner_task(EmbeddedCluster(plane), folder, stop) as complete_run,
    ):
        api, document = api_and_kubeconfig
        plane.subresources.pod_logs = pod_logs
        plane.metric_sources.extend(addon.metrics for addon in addons if addon.metrics)
        if options.kubeconfig:
            kubeconfig.add_entries(options.kubeconfig, document)
        file = options.kubeconfig or folder.kubeconfig
        context = kubeconfig.context_name(folder) if options.kubeconfig else ""
        paths = (str(file.absolute()), str(folder.root))
        current = RunningInstance(os.getpid(), api, *paths, options.ephemeral, rbac, context, addons=options.addons)
        gc.collect()
        gc.freeze()  # objects of the start-up stay alive; later collections skip them
        if not stop.is_set():
            current = complete_run(current)
            folder.write_run(current)
            on_ready(current)
            await stop.wait()
        if options.kubeconfig and options.ephemeral:
            kubeconfig.remove_entries(options.kubeconfig, document)


@contextlib.asynccontextmanager
async def _open_pod_logs(addons: Sequence[AddOn], options: SandboxOptions) -> AsyncIterator[PodLogReader | None]:
    """The reader of Pod logs: simulators for their Pods, argosy's own log for simulated argosy and Argo CD Pods."""
    readers = [item.pod_log_reader for item in addons if item.pod_log_reader]
    partial_readers = [item for item in readers if isinstance(item, SelectivePodLogReader)]
    simulator_reader = next((item for item in readers if not isinstance(item, SelectivePodLogReader)), None)
    if not addons:
        yield None
        return
    component_logs = ComponentLogs(simulator_reader or PodLogDispatcher([]))
    with component_logs.collect_records(options.log_format, options.log_level):
        yield PodLogDispatcher(partial_readers, component_logs) if partial_readers else component_logs


@contextlib.asynccontextmanager
async def _serve_with_kubeconfig(
    folder: DataFolder, certificates: CertificateFiles, token: str, server: AbstractAsyncContextManager[str]
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Serve, and write the kubeconfig before add-ons start: programs that they run may need it."""
    async with server as api:
        document = _build_kubeconfig(folder, api, certificates, token)
        write_private_text(folder.kubeconfig, dump_yaml(document))
        yield api, document


def _build_kubeconfig(folder: DataFolder, api: str, certificates: CertificateFiles, token: str) -> dict[str, Any]:
    from argosy.sandbox.apiserver.write_call_and_result_types import ADMIN

    authority = certificates.authority.read_bytes()
    return kubeconfig.build_kubeconfig(kubeconfig.context_name(folder), api, authority, ADMIN.name, token)


def _load_or_create_admin_token(folder: DataFolder) -> str:
    """Load or create the administrator's token; it is stored, so that a kubeconfig stays valid after a restart."""
    if not folder.admin_token.exists() or not folder.admin_token.stat().st_size:
        write_private_text(folder.admin_token, secrets.token_urlsafe(32))
    check_private_file(folder.admin_token)
    return folder.admin_token.read_text()


class PodLogDispatcher:
    """Reads logs from the first reader that knows a Pod, else from the fallback."""

    def __init__(self, readers: Sequence[SelectivePodLogReader], fallback: PodLogReader | None = None) -> None:
        self._readers, self._fallback = tuple(readers), fallback

    def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]:
        """Log lines of the Pod. Raises UserError if no reader knows it."""
        reader = next((candidate for candidate in self._readers if candidate.has_logs_of(pod)), self._fallback)
        if reader is None:
            raise UserError(NO_READER_MESSAGE)
        return reader.lines(pod, container=container, follow=follow, tail=tail)

    def describe_access(self, manifest: Manifest) -> str:
        fallback: object = self._fallback
        return fallback.describe_access(manifest) if isinstance(fallback, AccessDescriber) else NO_READER_MESSAGE

    def previous_lines(self, pod: Manifest, *, container: str, tail: int | None) -> AsyncIterator[str] | None:
        fallback: object = self._fallback
        if isinstance(fallback, PreviousPodLogReader) and not any(reader.has_logs_of(pod) for reader in self._readers):
            return fallback.previous_lines(pod, container=container, tail=tail)
        return None
