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
from typing import Any

from argosy.cli.data_folder import DataFolder, Run, write_text
from argosy.features.local import kubeconfig
from argosy.features.local.component_logs import PartLogs
from argosy.features.local.pod_logs import FirstWhoKnows
from argosy.isolation.scratch_folders import scratch_folder
from argosy.kube.client import Cluster, PodLogs, SomeLogs
from argosy.kube.client.file_permissions import check_private
from argosy.kube.controller import AddOn
from argosy.kube.controller.addon_loader import load_addons, running
from argosy.kube.objects import dump
from argosy.sandbox.apiserver.tls import Certificates

Ready = Callable[[Run], None]
# A task inside the sandbox: starts before the sandbox is ready, ends before it stops, and adds fields to its Run.
Completed = Callable[[Run], Run]
Inside = Callable[[Cluster, DataFolder, asyncio.Event], AbstractAsyncContextManager[Completed]]
MOST_FILES = 65536


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
async def nothing_else(cluster: Cluster, folder: DataFolder, stop: asyncio.Event) -> AsyncIterator[Completed]:
    yield lambda run: run


def run(options: SandboxOptions, ready: Ready) -> None:
    """Run in the foreground; returns after SIGTERM or SIGINT, when all writes are durable."""
    if options.ephemeral and options.data_dir is None:
        with scratch_folder("argosy-sandbox-") as place:
            run_in(DataFolder(place / "data"), options, ready)
    else:
        run_in(DataFolder(options.data_dir), options, ready)


def run_in(folder: DataFolder, options: SandboxOptions, ready: Ready, inside: Inside = nothing_else) -> None:
    _allow_many_connections()
    with folder.owned():
        _run_on_fast_loop(_serve(folder, options, ready, inside))


def _allow_many_connections() -> None:
    """Raise the open file limit: the usual 1024 is too low for the informers and watches of a few clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _run_on_fast_loop(main: Coroutine[Any, Any, None]) -> None:
    """Use uvloop if it is installed: the loop takes a third of the cost of a request."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main)


async def _serve(folder: DataFolder, options: SandboxOptions, ready: Ready, inside: Inside) -> None:
    from argosy.sandbox.apiserver.control_plane import MAX_WATCHES_PER_USER, Folder, Plane
    from argosy.sandbox.apiserver.https_server import serve
    from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
    from argosy.sandbox.apiserver.tls import certificates

    addons = load_addons(options.addons)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    found = certificates(folder.tls)
    token = _admin_token(folder)
    place = Folder(folder.database, folder.secret_key, folder.token_key, found.authority)
    rbac = folder.last_rbac() if options.rbac is None else options.rbac
    port = folder.last_port() if options.port is None else options.port
    async with (
        _heard(addons, options) as pod_logs,
        Plane.open(
            place,
            rbac=rbac,
            admin_token=token,
            in_memory=options.ephemeral,
            max_watches_per_user=options.max_watches_per_user or MAX_WATCHES_PER_USER,
        ) as plane,
        _leading_back(folder, found, token, serve(plane, found, port=port, any_port=options.port is None)) as leads,
        running(addons, EmbeddedCluster(plane), on_failure=stop.set, folder=folder.root),
        inside(EmbeddedCluster(plane), folder, stop) as completed,
    ):
        api, document = leads
        plane.actions.pod_logs = pod_logs
        plane.measured.extend(each.metrics for each in addons if each.metrics)
        if options.kubeconfig:
            kubeconfig.add_to(options.kubeconfig, document)
        file = options.kubeconfig or folder.kubeconfig
        context = kubeconfig.context_of(folder) if options.kubeconfig else ""
        place_of_it = (str(file.absolute()), str(folder.root))
        current = Run(os.getpid(), api, *place_of_it, options.ephemeral, rbac, context, addons=options.addons)
        gc.collect()
        gc.freeze()  # objects of the start-up stay alive; later collections skip them
        if not stop.is_set():
            current = completed(current)
            folder.write_run(current)
            ready(current)
            await stop.wait()
        if options.kubeconfig and options.ephemeral:
            kubeconfig.remove_from(options.kubeconfig, document)


@contextlib.asynccontextmanager
async def _heard(addons: Sequence[AddOn], options: SandboxOptions) -> AsyncIterator[PodLogs | None]:
    """The reader of Pod logs: simulators for their Pods, argosy's own log for simulated argosy and Argo CD Pods."""
    tellers = [each.pod_logs for each in addons if each.pod_logs]
    some = [each for each in tellers if isinstance(each, SomeLogs)]
    players = next((each for each in tellers if not isinstance(each, SomeLogs)), None)
    if not addons:
        yield None
        return
    told = PartLogs(players or FirstWhoKnows([]))
    with told.listening(options.log_format, options.log_level):
        yield FirstWhoKnows(some, told) if some else told


@contextlib.asynccontextmanager
async def _leading_back(
    folder: DataFolder, certificates: Certificates, token: str, serving: AbstractAsyncContextManager[str]
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Serve, and write the kubeconfig before add-ons start: programs that they run may need it."""
    async with serving as api:
        document = _document(folder, api, certificates, token)
        write_text(folder.kubeconfig, dump(document))
        yield api, document


def _document(folder: DataFolder, api: str, certificates: Certificates, token: str) -> dict[str, Any]:
    from argosy.sandbox.apiserver.registry_call import ADMIN

    authority = certificates.authority.read_bytes()
    return kubeconfig.document(kubeconfig.context_of(folder), api, authority, ADMIN.name, token)


def _admin_token(folder: DataFolder) -> str:
    """Load or create the administrator's token; it is stored, so that a kubeconfig stays valid after a restart."""
    if not folder.admin_token.exists() or not folder.admin_token.stat().st_size:
        write_text(folder.admin_token, secrets.token_urlsafe(32))
    check_private(folder.admin_token)
    return folder.admin_token.read_text()
