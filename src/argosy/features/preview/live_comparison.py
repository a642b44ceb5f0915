"""Compares the head with the live state, for `argosy preview --live`.

In: a repository, names, a cluster. Out: Preview. Never: writes; reports fields that others set in the cluster as
changes of the head.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from argosy.errors import ArgosyError
from argosy.features.preview.applications import Found
from argosy.features.preview.comparison import Comparison, compare
from argosy.features.preview.rendering import Drawer, Drawn
from argosy.features.preview.revisions import Repository, Side, named_apps, open_sides
from argosy.features.preview.service import Preview, as_preview, told
from argosy.gitops.analysis.object_changes import Change, Touched
from argosy.gitops.analysis.repository import Fault, Item, Locate, Trouble
from argosy.gitops.analysis.violation import Place
from argosy.gitops.application import Application, read_application
from argosy.gitops.application.step_results import Checkout, Pair, Rendered
from argosy.gitops.application_client.client import Desk, Opening
from argosy.gitops.application_client.reader import Reader, open_reader
from argosy.gitops.diff import differences
from argosy.gitops.reconciler.app_state import Look
from argosy.gitops.source.repositories import Repositories
from argosy.gitops.source.settings import SourceSettings
from argosy.gitops.workspace.checkouts import Checkouts, Talk, cache_folder
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of_source


class _Heads(Repositories):
    """Returns the head for sources in this repository, and fetches all others."""

    known: Mapping[tuple[str, str], Checkout]

    async def checkout(self, url: str, ref: str, **options: object) -> Checkout:
        found = self.known.get((url, ref))
        return found or await super().checkout(url, ref, **options)  # type: ignore[arg-type]


def preview_live(folder: str, words: Sequence[str], opening: Opening, *, talk: Talk) -> Preview:
    """Compare the Applications that the head changes, or the given ones."""
    started = time.monotonic()
    repository = Repository(folder)
    try:
        word, names = named_apps(repository, words)
        sides = open_sides(repository, word)
        found = compare(repository, sides, names, talk=talk)
        changed = {each.name for each in found.touched if not each.is_folder}
        wanted = [each for each in found.applications if each.app.name in (set(names) or changed)]
        gone = [each for each in found.touched if each.after is None and not each.is_folder]
        checkouts = Checkouts(talk=talk)
        try:
            known = _heads(Drawer(repository, checkouts), sides.head, wanted)
        finally:
            checkouts.close()
        found.rendered = len(wanted)
        found.touched = [*asyncio.run(_looked(wanted, known, opening, found)), *gone]
        result = told(found)
    finally:
        repository.close()
    return replace(as_preview(found, result, time.monotonic() - started), is_live=True)


def _heads(drawer: Drawer, head: Side, wanted: Sequence[Found]) -> dict[tuple[str, str], Checkout]:
    known = {}
    for each in wanted:
        for source in each.app.sources:
            spot = drawer.spot(head, source, each.file, each.app.name, Drawn())
            if spot is not None:
                known[source.repo_url, source.ref] = spot.checkout
    return known


async def _looked(
    wanted: Sequence[Found], known: Mapping[tuple[str, str], Checkout], opening: Opening, found: Comparison
) -> list[Touched]:
    repositories = _Heads(cache_folder(), SourceSettings())
    repositories.known = known
    environments = {each.name: each.environment for each in found.touched}
    async with opening() as desk, open_reader(desk, repositories=repositories) as reader:
        looks = [await _touched(desk, reader, each, found.notes) for each in wanted]
    return [replace(each, environment=environments.get(each.name, "")) for each in looks]


async def _touched(desk: Desk, reader: Reader, found: Found, notes: list[str]) -> Touched:
    name = found.app.name
    live = await _live_application(desk, found)
    if live is None:
        notes.append(f"{name}: Application not found in the cluster; all of its objects are new")
    app = _as_head(live, found.app, desk.control)
    try:
        look = await reader.look(app)
    except ArgosyError as error:
        fault = Fault(Trouble.RENDER, str(error).partition("; ")[0], "correct what it names", found.place)
        return Touched(name, live, found.app, fault=fault)
    if not look.is_whole:
        said = next((each.message for each in look.conditions), "cannot be compared")
        return Touched(name, live, found.app, fault=Fault(Trouble.RENDER, said, "argosy check", found.place))
    return _of_look(name, live, found, look)


async def _live_application(desk: Desk, found: Found) -> Application | None:
    key = found.key._replace(namespace=found.key.namespace or desk.control)
    manifest = await desk.get(key)
    if manifest is None and key.namespace != desk.control:
        manifest = await desk.get(key._replace(namespace=desk.control))
    return read_application(manifest) if manifest is not None else None


def _as_head(live: Application | None, head: Application, control: str) -> Application:
    """Return the live Application with the spec of the head."""
    if live is None:
        return replace(head, namespace=head.namespace or control)
    return read_application({**live.wire, "spec": head.wire["spec"]})


def _of_look(name: str, live: Application | None, found: Found, look: Look) -> Touched:
    rendered = look.assembled.rendered
    changes = [_change(pair, rendered).located() for pair in look.comparison.pairs if pair.differs]
    kept = [_item(pair.desired, rendered) for pair in look.comparison.pairs if pair.desired and not pair.differs]
    return Touched(name, live, found.app, tuple(changes), tuple(kept))


def _change(pair: Pair, rendered: Sequence[Rendered]) -> Change:
    before = _item(pair.compared or pair.live, rendered) if pair.live is not None else None
    after = _item(pair.predicted or pair.desired, rendered) if pair.desired is not None else None
    is_both = before is not None and after is not None
    return Change(pair.key, before, after, tuple(differences(pair)) if is_both else ())


def _item(manifest: Manifest | None, rendered: Sequence[Rendered]) -> Item:
    manifest = manifest or {}
    key = key_of_source(manifest)
    return Item(manifest, key, _locator(key, rendered))


def _locator(key: ResourceKey, rendered: Sequence[Rendered]) -> Locate:
    def locate(pointer: str) -> Place:
        for each in rendered:
            if (origin := each.origins.find(key, pointer)) is not None:
                return Place(origin.file, origin.line)
        return Place("")

    return locate
