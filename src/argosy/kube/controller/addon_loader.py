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
from argosy.kube.client import AdmissionRegistry, Cluster, SubresourceRegistry
from argosy.kube.controller import AddOn, run
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind

ENTRY_POINT_GROUP: Final = "argosy.addons"
FIELD_MANAGER_NAME: Final = "argosy-addons"
KIND_SERVED_TIMEOUT_SECONDS: Final = 10.0
GRACE_SECONDS: Final = (
    1.0  # seconds that a running step has to finish; an interrupted one is repeated after the next start
)


def load_addons(addon_list: str) -> list[AddOn]:
    """Load the add-ons of a list such as `notebooks,argocd_operator=plain`."""
    points_by_name = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    parts = [part.strip().partition("=") for part in addon_list.split(",") if part.strip()]
    names = [name for name, _, _ in parts]
    if duplicate := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"add-on {duplicate} is listed twice; list each add-on once", where="--addons")
    return [_load_addon(points_by_name, name, variant) for name, _, variant in parts]


def describe_addons(addon_list: str = "") -> dict[str, str]:
    """Describe each of these add-ons in a sentence; all installed ones if none is given."""
    addon_names = addon_list or ",".join(sorted({point.name for point in entry_points(group=ENTRY_POINT_GROUP)}))
    descriptions: dict[str, str] = {}
    for addon_name in filter(None, addon_names.split(",")):
        try:
            descriptions[addon_name] = load_addons(addon_name)[0].description
        except UserError as error:
            descriptions[addon_name] = error.message
    return descriptions


def _load_addon(points_by_name: dict[str, EntryPoint], name: str, variant: str) -> AddOn:
    point = points_by_name.get(name)
    if point is None:
        close_matches = difflib.get_close_matches(name, points_by_name, n=1)
        names = ", ".join(sorted(points_by_name)) or "none installed"
        hint = f"did you mean {close_matches[0]}?" if close_matches else f"choose among: {names}"
        raise UserError(f"add-on {name} not found; {hint}", where="--addons")
    try:
        addon = point.load()(variant)
    except ImportError as error:
        raise UserError(f"add-on {name} cannot be loaded ({error}); reinstall it", where="--addons") from error
    if not isinstance(addon, AddOn):
        raise UserError(f"{point.value} does not return an AddOn; contact its author", where=f"add-on {name}")
    return addon


@contextlib.asynccontextmanager
async def run_addons(
    addons: Sequence[AddOn], cluster: Cluster, on_failure: Callable[[], None], folder: Path | None = None
) -> AsyncIterator[None]:
    """Create kinds and first objects, then run the controllers until the context ends.

    `folder`: for background services; without one, none are run.
    """
    if not addons:
        yield
        return
    with _register_admission_handlers(addons, cluster), _register_subresource_extensions(addons, cluster):
        for addon in addons:
            await _install_addon_objects(addon, cluster)
        async with contextlib.AsyncExitStack() as stack:
            for addon in addons:
                if addon.background is not None and folder is not None:
                    await stack.enter_async_context(addon.background(folder))
            await stack.enter_async_context(_run_controllers(addons, cluster, on_failure))
            yield


def _register_admission_handlers(addons: Sequence[AddOn], cluster: Cluster) -> contextlib.AbstractContextManager[None]:
    handlers = [handler for addon in addons for handler in addon.admission_handlers]
    return cluster.register_admission(handlers) if isinstance(cluster, AdmissionRegistry) else contextlib.nullcontext()


def _register_subresource_extensions(
    addons: Sequence[AddOn], cluster: Cluster
) -> contextlib.AbstractContextManager[None]:
    extensions = [extension for addon in addons for extension in addon.subresource_extensions]
    return (
        cluster.register_subresources(extensions)
        if isinstance(cluster, SubresourceRegistry)
        else contextlib.nullcontext()
    )


@contextlib.asynccontextmanager
async def _run_controllers(
    addons: Sequence[AddOn], cluster: Cluster, on_failure: Callable[[], None]
) -> AsyncIterator[None]:
    controllers = [controller for addon in addons for controller in addon.controllers]
    task = asyncio.create_task(run(controllers, cluster, grace_seconds=GRACE_SECONDS), name="add-ons")
    task.add_done_callback(lambda _: on_failure())  # they never end normally
    try:
        yield
    finally:
        if not task.done():
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _install_addon_objects(addon: AddOn, cluster: Cluster) -> None:
    try:
        for definition in addon.definitions:
            await _apply_crd(definition, cluster)
        for manifest in addon.initial_manifests:
            await _create_if_missing(manifest, cluster)
    except ClusterError as error:
        raise ArgosyError(f"add-on {addon.name}: {error}") from error


async def _apply_crd(definition: Manifest, cluster: Cluster) -> None:
    """Apply a CRD; if that is forbidden, accept one that is already installed."""
    try:
        await cluster.apply(definition, manager=FIELD_MANAGER_NAME, force=True)
    except Forbidden:
        spec = definition["spec"]
        if GroupKind(spec["group"], spec["names"]["kind"]) not in await cluster.kinds():
            raise


async def _create_if_missing(manifest: Manifest, cluster: Cluster) -> None:
    """Create the object unless it exists. A kind that was just defined may need a moment until it is served."""
    async with asyncio.timeout(KIND_SERVED_TIMEOUT_SECONDS):
        while True:
            try:
                if await cluster.get(key_of(manifest)) is None:
                    await cluster.create(manifest)
                return
            except ClusterError as error:
                if error.code != 404:
                    raise
            await asyncio.sleep(0.02)
