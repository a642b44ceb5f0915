"""The process of `argosy demo`: cluster, operator, simulators, engine, web UI and a Git repository.

In: options. Out: a running example, until it is stopped. Never: leaves data behind, unless a data folder was given.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from argosy.cli.sandbox_data_folder_and_lock import DEMO_NAME, DataFolder, get_state_folder, write_private_text
from argosy.errors import UserError
from argosy.features.demo.examples import DemoExample, choose_example
from argosy.features.demo.failure_drills import find_active_drills
from argosy.features.demo.initial_demo_state import ReportSetupProgress
from argosy.features.demo.notebook import write_notebook
from argosy.features.demo.page_server import run_web_server
from argosy.features.kubectl.installed_programs import find_program, render_argosy_script
from argosy.features.local_sandbox.sandbox import CompleteRun, InnerTask, OnReady, SandboxOptions, run_in_folder
from argosy.gitops.application_client.control_namespace import find_control_namespace
from argosy.gitops.engine.engine import EngineOptions
from argosy.gitops.engine.leader_or_shard_start import run_leading_engine
from argosy.gitops.workspace.git_repository_creation import find_git
from argosy.kube.client import Cluster

PLAIN_ARGOCD: Final = "plain"
SHUTDOWN_GRACE_SECONDS: Final = 0.3  # seconds: stop quickly; an interrupted sync resumes at the next start
ADDONS_PATTERN: Final = "{operator},{simulators},notebooks,notifications"
OPERATOR_ADDONS: Final = {"": "argocd_operator", PLAIN_ARGOCD: f"argocd_operator={PLAIN_ARGOCD}"}
COMMAND_ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "argosy": (), "argocd": ("--argocd-compat",), "oc": ("oc",), "kubectl": ("kubectl",),
}  # fmt: skip


@dataclass(frozen=True)
class DemoOptions:
    data_dir: Path | None = None
    api_port: int | None = None
    kubeconfig: Path | None = None
    argocd: str | None = None  # "plain": without the operator; None: as in the folder, else with the operator
    has_engine: bool = True
    example: str | None = None  # name; None: as in the folder, else the default
    port: int | None = None  # of the web UI; None: the default port, or a free one
    log_format: str = ""
    log_level: str = "warn"


def gitops_product_name(addons: str) -> str:
    """Name of the simulated GitOps product."""
    return "Argo CD" if OPERATOR_ADDONS[PLAIN_ARGOCD] in addons.split(",") else "OpenShift GitOps"


def _choose_operator(options: DemoOptions, folder: DataFolder) -> str:
    """Operator add-on: an existing folder keeps its operator, because two Argo CDs would conflict."""
    requested = OPERATOR_ADDONS[options.argocd or ""]
    addons = "" if folder.is_locked() else folder.get_last_addons()  # opening the folder reports a running demo
    existing = next((operator for operator in OPERATOR_ADDONS.values() if operator in addons.split(",")), requested)
    if options.argocd is not None and requested != existing:
        message = f"this folder has {gitops_product_name(addons)}; omit --argocd, or choose another --data-dir"
        raise UserError(message, where=str(folder.root))
    return existing


def run_demo(options: DemoOptions, ready: OnReady, report: ReportSetupProgress) -> None:
    """Run the demo in the foreground, until SIGTERM or SIGINT."""
    folder = DataFolder(options.data_dir or get_state_folder() / DEMO_NAME)
    is_kept = options.data_dir is not None
    if not is_kept:
        _delete_leftovers(folder)  # leftovers of a killed demo
    example = choose_example(folder, options.example)
    _check_options(example, options)
    addons = ADDONS_PATTERN.format(operator=_choose_operator(options, folder), simulators=example.simulators)
    sandbox = SandboxOptions(
        data_dir=folder.root,
        port=options.api_port,
        kubeconfig=options.kubeconfig,
        ephemeral=not is_kept,
        addons=addons,
        log_format=options.log_format,
        log_level=options.log_level,
    )
    find_git()  # fail before the folder is created
    try:
        run_in_folder(folder, sandbox, ready, _build_inner_task(options, example, gitops_product_name(addons), report))
    finally:
        if not is_kept:
            _delete_leftovers(folder)


def _check_options(example: DemoExample, options: DemoOptions) -> None:
    """Raise UserError for options that the example does not support: its state needs the operator and the engine."""
    if not example.needs_operator_and_engine:
        return
    if options.argocd == PLAIN_ARGOCD:
        raise UserError(f"example {example.name} needs OpenShift GitOps; omit --argocd", where="--example")
    if not options.has_engine:
        raise UserError(f"example {example.name} needs argosy's engine; omit --no-engine", where="--example")


def _delete_leftovers(folder: DataFolder) -> None:
    """Delete the data of a demo, unless another process is using the folder."""
    if folder.root.is_dir() and not folder.is_locked():
        with folder.lock_for_this_process():
            folder.remove_sandbox_files()


def _build_inner_task(
    options: DemoOptions, example: DemoExample, product_name: str, report: ReportSetupProgress
) -> InnerTask:
    @contextlib.asynccontextmanager
    async def run_delivery(cluster: Cluster, folder: DataFolder, stop: asyncio.Event) -> AsyncIterator[CompleteRun]:
        # Reported when the folder lock and the port are taken.
        report(f"starting a cluster, with {product_name} and KServe as simulators")
        repository = example.create_repository(folder.root / "repositories" / example.repository)
        write_command_stubs(folder.root / "bin")
        write_notebook(folder.root)
        namespace = await find_control_namespace(cluster)
        arranger = example.arranger_class(cluster, repository, namespace, report)
        is_new = await arranger.create_objects()
        if active_drills := await find_active_drills(cluster, repository) if example.has_failure_drills else ():
            report(f"failure drills are still active: {', '.join(active_drills)}; undo them with: argosy demo fix")
        async with contextlib.AsyncExitStack() as stack:
            web_server = await stack.enter_async_context(
                run_web_server(cluster, folder, options.port, repository.folder)
            )
            if options.has_engine:
                report("starting the engine")
                engine = EngineOptions(
                    mirror_folder=folder.root / "mirrors", wave_delay_seconds=0.0, grace_seconds=SHUTDOWN_GRACE_SECONDS
                )
                engine_task = run_leading_engine(cluster, engine, namespace, identity=f"argosy-{DEMO_NAME}")
                await stack.enter_async_context(_run_in_background(engine_task, on_end=stop.set))
                if is_new:
                    await _run_unless_stopped(stop, arranger.sync_applications())
            await _run_unless_stopped(stop, web_server.wait_until_ready())
            yield lambda run: replace(run, name=DEMO_NAME, repository=str(repository.folder), url=web_server.url)

    return run_delivery


@contextlib.asynccontextmanager
async def _run_in_background(coroutine: Coroutine[Any, Any, None], on_end: Callable[[], None]) -> AsyncIterator[None]:
    """Run the coroutine while the block runs; it ends early only by an error."""
    task = asyncio.create_task(coroutine)
    task.add_done_callback(lambda _: on_end())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _run_unless_stopped(stop: asyncio.Event, coroutine: Coroutine[Any, Any, None]) -> None:
    """Run the coroutine, but cancel it when `stop` is set, so that an early Ctrl-C works."""
    task = asyncio.create_task(coroutine)
    stop_task = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({task, stop_task}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
    finally:
        stop_task.cancel()
        task.cancel()
        await asyncio.gather(task, stop_task, return_exceptions=True)


def write_command_stubs(folder: Path) -> Path:
    """Write the scripts that are missing on PATH; the folder must come last in PATH."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, arguments in COMMAND_ARGUMENTS.items():
        file = folder / name
        file.unlink(missing_ok=True)
        if not find_program(name):
            write_private_text(file, render_argosy_script(*arguments))
            file.chmod(0o700)
    return folder
