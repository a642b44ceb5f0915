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

from argosy.cli.data_folder import DEMO_NAME, DataFolder, state_home
from argosy.errors import UserError
from argosy.features.demo.command_stubs import put_tools
from argosy.features.demo.examples import Example, example_in
from argosy.features.demo.failure_drills import staged_in
from argosy.features.demo.initial_state import Tell
from argosy.features.demo.notebook import put_notebook
from argosy.features.demo.page_server import beside
from argosy.features.local.sandbox import Completed, Inside, Ready, SandboxOptions, run_in
from argosy.gitops.application_client.control_namespace import control_namespace
from argosy.gitops.engine.engine import EngineOptions
from argosy.gitops.engine.start import lead_engine
from argosy.gitops.workspace.new_repository import find_git
from argosy.kube.client import Cluster

PLAIN: Final = "plain"
GRACE: Final = 0.3  # seconds: stop quickly; an interrupted sync resumes at the next start
ADDONS: Final = "{operator},{simulators},notebooks,notifications"
OPERATORS: Final = {"": "argocd_operator", PLAIN: f"argocd_operator={PLAIN}"}


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


def played(addons: str) -> str:
    """Name of the simulated GitOps product."""
    return "Argo CD" if OPERATORS[PLAIN] in addons.split(",") else "OpenShift GitOps"


def _operator(options: DemoOptions, folder: DataFolder) -> str:
    """Operator add-on: an existing folder keeps its operator, because two Argo CDs would conflict."""
    asked = OPERATORS[options.argocd or ""]
    addons = "" if folder.is_owned() else folder.last_addons()  # opening the folder reports a running demo
    known = next((each for each in OPERATORS.values() if each in addons.split(",")), asked)
    if options.argocd is not None and asked != known:
        message = f"this folder has {played(addons)}; omit --argocd, or choose another --data-dir"
        raise UserError(message, where=str(folder.root))
    return known


def run(options: DemoOptions, ready: Ready, tell: Tell) -> None:
    """Run the demo in the foreground, until SIGTERM or SIGINT."""
    folder = DataFolder(options.data_dir or state_home() / DEMO_NAME)
    is_kept = options.data_dir is not None
    if not is_kept:
        _sweep(folder)  # leftovers of a killed demo
    example = example_in(folder, options.example)
    _check(example, options)
    addons = ADDONS.format(operator=_operator(options, folder), simulators=example.simulators)
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
        run_in(folder, sandbox, ready, _inside(options, example, played(addons), tell))
    finally:
        if not is_kept:
            _sweep(folder)


def _check(example: Example, options: DemoOptions) -> None:
    """Raise UserError for options that the example does not support: its state needs the operator and the engine."""
    if not example.is_arranged:
        return
    if options.argocd == PLAIN:
        raise UserError(f"example {example.name} needs OpenShift GitOps; omit --argocd", where="--example")
    if not options.has_engine:
        raise UserError(f"example {example.name} needs argosy's engine; omit --no-engine", where="--example")


def _sweep(folder: DataFolder) -> None:
    """Delete the data of a demo, unless another process is using the folder."""
    if folder.root.is_dir() and not folder.is_owned():
        with folder.owned():
            folder.clear()


def _inside(options: DemoOptions, example: Example, delivers: str, tell: Tell) -> Inside:
    @contextlib.asynccontextmanager
    async def delivering(cluster: Cluster, folder: DataFolder, stop: asyncio.Event) -> AsyncIterator[Completed]:
        tell(
            f"starting a cluster, with {delivers} and KServe as simulators"
        )  # after the folder lock and the port are taken
        repository = example.make(folder.root / "repositories" / example.repository)
        put_tools(folder.root / "bin")
        put_notebook(folder.root)
        namespace = await control_namespace(cluster)
        arranger = example.arranger(cluster, repository, namespace, tell)
        is_new = await arranger.prepare()
        if accidents := await staged_in(cluster, repository) if example.has_accidents else ():
            tell(f"failure drills are still active: {', '.join(accidents)}; undo them with: argosy demo fix")
        async with contextlib.AsyncExitStack() as stack:
            page = await stack.enter_async_context(beside(cluster, folder, options.port, repository.folder))
            if options.has_engine:
                tell("starting the engine")
                engine = EngineOptions(mirrors=folder.root / "mirrors", wave_delay=0.0, grace=GRACE)
                leading = lead_engine(cluster, engine, namespace, identity=f"argosy-{DEMO_NAME}")
                await stack.enter_async_context(_beside(leading, on_end=stop.set))
                if is_new:
                    await _unless(stop, arranger.deliver())
            await _unless(stop, page.ready())
            yield lambda run: replace(run, name=DEMO_NAME, repository=str(repository.folder), url=page.url)

    return delivering


@contextlib.asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None], on_end: Callable[[], None]) -> AsyncIterator[None]:
    """Run the coroutine while the block runs; it ends early only by an error."""
    doing = asyncio.create_task(work)
    doing.add_done_callback(lambda _: on_end())
    try:
        yield
    finally:
        doing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await doing


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Run the coroutine, but cancel it when `stop` is set, so that an early Ctrl-C works."""
    doing = asyncio.create_task(work)
    ending = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({doing, ending}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            doing.result()
    finally:
        ending.cancel()
        doing.cancel()
        await asyncio.gather(doing, ending, return_exceptions=True)
