"""`argosy demo`: the whole delivery in one process: cluster, operator, simulators, engine, and a repository to push to.

In: options. Out: three environments of a model, or another example, until it is told to stop. Never: leaves anything
behind, unless a folder was named to keep it in.
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
GRACE: Final = 0.3  # seconds: Ctrl-C is over soon, and what is broken off then is done after the next start
ADDONS: Final = "{operator},{simulators},notebooks,notifications"
OPERATORS: Final = {"": "argocd_operator", PLAIN: f"argocd_operator={PLAIN}"}


@dataclass(frozen=True)
class DemoOptions:
    data_dir: Path | None = None
    api_port: int | None = None
    kubeconfig: Path | None = None
    argocd: str | None = None  # "plain": one that no operator watches; None: as the folder has it, else with one
    has_engine: bool = True
    example: str | None = None  # by name; None: as the folder has it, else the usual one
    port: int | None = None  # of the page; None: the usual one, or any that is free
    log_format: str = ""
    log_level: str = "warn"


def played(addons: str) -> str:
    """What delivers there, by its name."""
    return "Argo CD" if OPERATORS[PLAIN] in addons.split(",") else "OpenShift GitOps"


def _operator(options: DemoOptions, folder: DataFolder) -> str:
    """A folder that is gone on with keeps what it has: beside another Argo CD there would be two for the same."""
    asked = OPERATORS[options.argocd or ""]
    addons = "" if folder.is_owned() else folder.last_addons()  # one that runs is told of by who opens the folder
    known = next((each for each in OPERATORS.values() if each in addons.split(",")), asked)
    if options.argocd is not None and asked != known:
        message = f"its demo has {played(addons)}; leave out --argocd, or choose another --data-dir"
        raise UserError(message, where=str(folder.root))
    return known


def run(options: DemoOptions, ready: Ready, tell: Tell) -> None:
    """In the foreground, until SIGTERM or SIGINT."""
    folder = DataFolder(options.data_dir or state_home() / DEMO_NAME)
    is_kept = options.data_dir is not None
    if not is_kept:
        _sweep(folder)  # of a demo that was killed
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
    find_git()  # else a folder is half made
    try:
        run_in(folder, sandbox, ready, _inside(options, example, played(addons), tell))
    finally:
        if not is_kept:
            _sweep(folder)


def _check(example: Example, options: DemoOptions) -> None:
    """What it is like when it is ready is what argosy's engine has made of it, with the operator's settings."""
    if not example.is_arranged:
        return
    if options.argocd == PLAIN:
        raise UserError(f"{example.name} is delivered by OpenShift GitOps; leave out --argocd", where="--example")
    if not options.has_engine:
        raise UserError(f"{example.name} is delivered by argosy's engine; leave out --no-engine", where="--example")


def _sweep(folder: DataFolder) -> None:
    """What a demo made. Where another one runs, that one is refused or stopped by its own door."""
    if folder.root.is_dir() and not folder.is_owned():
        with folder.owned():
            folder.clear()


def _inside(options: DemoOptions, example: Example, delivers: str, tell: Tell) -> Inside:
    @contextlib.asynccontextmanager
    async def delivering(
        cluster: Cluster, folder: DataFolder, stop: asyncio.Event
    ) -> AsyncIterator[Completed]:
        tell(f"starting a cluster, with {delivers} and KServe as simulators")  # now that folder and port are ours
        repository = example.make(folder.root / "repositories" / example.repository)
        put_tools(folder.root / "bin")
        put_notebook(folder.root)
        namespace = await control_namespace(cluster)
        arranger = example.arranger(cluster, repository, namespace, tell)
        is_new = await arranger.prepare()
        if accidents := await staged_in(cluster, repository) if example.has_accidents else ():
            tell(f"accidents are still staged: {', '.join(accidents)}; undo them with: argosy demo fix")
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
    """Runs while the block does; it never ends by itself, unless it fails."""
    doing = asyncio.create_task(work)
    doing.add_done_callback(lambda _: on_end())
    try:
        yield
    finally:
        doing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await doing


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Whoever presses Ctrl-C early need not wait for the end of it."""
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
