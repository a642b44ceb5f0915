"""Loads add-ons from entry points, prepares and runs them.

In: add-on names, a cluster. Out: running controllers. Never: knows what an add-on does.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
from collections.abc import AsyncIterator, Callable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

from argosy.errors import ArgosyError, ClusterError, Forbidden, UserError
from argosy.kube.client import Admitting, Cluster, Performing
from argosy.kube.controller import AddOn, run
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest, key_of

GROUP: Final = "argosy.addons"
MANAGER: Final = "argosy-addons"
SERVED_SECONDS: Final = 10.0
GRACE: Final = 1.0  # seconds that a running step has to finish; an interrupted one is repeated after the next start


def load_addons(chosen: str) -> list[AddOn]:
    """Load the add-ons of a list such as `notebooks,argocd_operator=plain`."""
    known = {point.name: point for point in entry_points(group=GROUP)}
    wanted = [part.strip().partition("=") for part in chosen.split(",") if part.strip()]
    names = [name for name, _, _ in wanted]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"add-on {twice} is listed twice; list each add-on once", where="--addons")
    return [_made(known, name, variant) for name, _, variant in wanted]


def described(chosen: str = "") -> dict[str, str]:
    """Describe each of these add-ons in a sentence; all installed ones if none is given."""
    wanted = chosen or ",".join(sorted({point.name for point in entry_points(group=GROUP)}))
    found: dict[str, str] = {}
    for each in filter(None, wanted.split(",")):
        try:
            found[each] = load_addons(each)[0].about
        except UserError as error:
            found[each] = error.message
    return found


def _made(known: dict[str, EntryPoint], name: str, variant: str) -> AddOn:
    point = known.get(name)
    if point is None:
        near = difflib.get_close_matches(name, known, n=1)
        names = ", ".join(sorted(known)) or "none installed"
        hint = f"did you mean {near[0]}?" if near else f"choose among: {names}"
        raise UserError(f"add-on {name} not found; {hint}", where="--addons")
    try:
        made = point.load()(variant)
    except ImportError as error:
        raise UserError(f"add-on {name} cannot be loaded ({error}); reinstall it", where="--addons") from error
    if not isinstance(made, AddOn):
        raise UserError(f"{point.value} does not return an AddOn; contact its author", where=f"add-on {name}")
    return made


@contextlib.asynccontextmanager
async def running(
    addons: Sequence[AddOn], cluster: Cluster, on_failure: Callable[[], None], folder: Path | None = None
) -> AsyncIterator[None]:
    """Create kinds and first objects, then run the controllers until the context ends.

    `folder`: for background services; without one, none are run.
    """
    if not addons:
        yield
        return
    with _admitting(addons, cluster), _performing(addons, cluster):
        for addon in addons:
            await _prepare(addon, cluster)
        async with contextlib.AsyncExitStack() as stack:
            for addon in addons:
                if addon.beside is not None and folder is not None:
                    await stack.enter_async_context(addon.beside(folder))
            await stack.enter_async_context(_working(addons, cluster, on_failure))
            yield


def _admitting(addons: Sequence[AddOn], cluster: Cluster) -> contextlib.AbstractContextManager[None]:
    admitters = [each for addon in addons for each in addon.admitters]
    return cluster.admit_with(admitters) if isinstance(cluster, Admitting) else contextlib.nullcontext()


def _performing(addons: Sequence[AddOn], cluster: Cluster) -> contextlib.AbstractContextManager[None]:
    performers = [each for addon in addons for each in addon.performers]
    return cluster.perform_with(performers) if isinstance(cluster, Performing) else contextlib.nullcontext()


@contextlib.asynccontextmanager
async def _working(addons: Sequence[AddOn], cluster: Cluster, on_failure: Callable[[], None]) -> AsyncIterator[None]:
    controllers = [each for addon in addons for each in addon.controllers]
    work = asyncio.create_task(run(controllers, cluster, grace=GRACE), name="add-ons")
    work.add_done_callback(lambda _: on_failure())  # they never end normally
    try:
        yield
    finally:
        if not work.done():
            work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


async def _prepare(addon: AddOn, cluster: Cluster) -> None:
    try:
        for definition in addon.definitions:
            await _define(definition, cluster)
        for manifest in addon.first:
            await _make(manifest, cluster)
    except ClusterError as error:
        raise ArgosyError(f"add-on {addon.name}: {error}") from error


async def _define(definition: Manifest, cluster: Cluster) -> None:
    """Apply a CRD; if that is forbidden, accept one that is already installed."""
    try:
        await cluster.apply(definition, manager=MANAGER, force=True)
    except Forbidden:
        spec = definition["spec"]
        if GroupKind(spec["group"], spec["names"]["kind"]) not in await cluster.kinds():
            raise


async def _make(manifest: Manifest, cluster: Cluster) -> None:
    """Create the object unless it exists. A kind that was just defined may need a moment until it is served."""
    async with asyncio.timeout(SERVED_SECONDS):
        while True:
            try:
                if await cluster.get(key_of(manifest)) is None:
                    await cluster.create(manifest)
                return
            except ClusterError as error:
                if error.code != 404:
                    raise
            await asyncio.sleep(0.02)
