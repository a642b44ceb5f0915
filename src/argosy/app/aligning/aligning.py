"""`argosy align`, without its printing: proposals for several Applications, the files that they change, the proof.

In: a reader, Applications, a working tree. Out: an Alignment. Never: a status that was not compared; a write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from argosy.advise.aligning.proposal import Proposal, ProposalKind
from argosy.advise.aligning.report import Tally, tally
from argosy.app.aligning.files import Files
from argosy.app.aligning.proposing import Settled, Wishes, settled
from argosy.app.aligning.proving import Proof, proven
from argosy.app.aligning.trying import Trial, tree_of
from argosy.app.applications.reader import Reader
from argosy.model.annotations import TRACKING_ID
from argosy.model.application import Application
from argosy.model.errors import ArgosyError

AT_ONCE: Final = 4


@dataclass(frozen=True)
class Aligned:
    """One Application: what is proposed, which of it was carried out, in which files, and what that proves."""

    app: Application
    proposals: tuple[Proposal, ...]
    done: tuple[Proposal, ...]
    proof: Proof
    paths: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()  # what is to be done by hand, and why
    parent: str = ""  # the Application that makes this one

    @property
    def is_accepted(self) -> bool:
        """OutOfSync and left so: it is Healthy, without an error, and what differs is its operator's."""
        has_said = any(each.kind is ProposalKind.ACCEPT for each in self.proposals)
        then = self.proof.synced
        return has_said and then.health == "Healthy" and not then.errors and not self.proof.rehearsal.refused

    @property
    def is_good(self) -> bool:
        return (self.proof.is_good or self.is_accepted) and not self.faults

    def document(self) -> dict[str, Any]:
        return {
            "application": self.app.name,
            "proposals": [each.document() | {"done": each in self.done} for each in self.proposals],
            **self.proof.document(),
            "files": list(self.paths),
            "byHand": list(self.faults),
        }


@dataclass(frozen=True)
class Alignment:
    apps: tuple[Aligned, ...]
    files: Files | None

    @property
    def before(self) -> Tally:
        return tally(each.proof.before for each in self.apps)

    @property
    def after(self) -> Tally:
        """As it lives now."""
        return tally(each.proof.after for each in self.apps)

    @property
    def synced(self) -> Tally:
        """After a sync of each, rehearsed."""
        return tally(each.proof.synced for each in self.apps)

    @property
    def is_good(self) -> bool:
        return all(each.is_good for each in self.apps)

    @property
    def order(self) -> list[str]:
        """Those to sync, a parent before its children: they are made from what it reads."""
        wanting = [each for each in self.apps if each.paths or each.proof.after.sync != "Synced"]
        parents = {each.parent for each in wanting if each.paths} - {""}
        named = [each.app.name for each in self.apps if each.app.name in parents]
        named += sorted(parents - set(named))
        needing = (each for each in wanting if each.proof.after.sync != "Synced")
        return [*named, *(each.app.name for each in needing if each.app.name not in named)]

    def document(self) -> dict[str, Any]:
        return {
            "applications": [each.document() for each in self.apps],
            "before": self.before.document(),
            "after": self.after.document(),
            "afterSync": self.synced.document(),
            "syncInOrder": self.order,
        }


async def align(reader: Reader, apps: Sequence[Application], files: Files | None, wishes: Wishes) -> Alignment:
    """Without files, proposals are only proven."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(app: Application) -> Settled:
        async with gate:
            return await settled(reader, app, wishes)

    found = await asyncio.gather(*(one(app) for app in apps))
    written = [files.change(each.trial, each.done) if files else ([], []) for each in found]
    everyone = {each.name: each for each in (*wishes.siblings, *apps)}
    made = []
    for app, each, (paths, faults) in zip(apps, found, written, strict=True):
        proof = await _proven(reader, app, each, files)
        parent = everyone.get(_parent(app))
        if parent is not None and files is not None:
            faults += await _unread(reader, app, parent, files)
        name = parent.name if parent else ""
        made.append(Aligned(app, tuple(each.proposals), each.done, proof, tuple(paths), tuple(faults), name))
    return Alignment(tuple(made), files)


async def _unread(reader: Reader, app: Application, parent: Application, files: Files) -> list[str]:
    """argo: an Application is what its parent reads. One that follows another branch does not see what changes here."""
    changed = files.changed
    here = [each.path for each in files.applications.get(app.name, ()) if each.path in changed]
    if not here or not parent.sources:
        return []
    try:
        tree = await tree_of(reader, Trial(parent))
        is_read = tree.entry(here[0]) is not None and tree.read(here[0]) == changed[here[0]][0].encode()
    except ArgosyError:
        return []
    if is_read:
        return []
    ref = parent.sources[0].ref or "HEAD"
    told = f"it is made by {parent.name}, which follows {ref}, where {here[0]} is not what it is here"
    return [f"{told}: bring the change there, or let {parent.name} follow this branch"]


async def _proven(reader: Reader, app: Application, found: Settled, files: Files | None) -> Proof:
    """What others changed in files that it reads, it will see, too."""
    shared = await _read_here(reader, found, files) if files else {}
    if not shared:
        return await proven(reader, app, found.trial, found.look)
    return await proven(reader, app, replace(found.trial, files={**shared, **found.trial.files}))


async def _read_here(reader: Reader, found: Settled, files: Files) -> dict[str, bytes]:
    """Changed files that it reads, where they are the same in its tree as here."""
    if found.look is None:
        return {}
    read = {each.path for part in found.look.assembled.rendered for each in part.inputs if not each.place}
    chosen = {path: texts for path, texts in files.changed.items() if path in read and path not in found.trial.files}
    if not chosen:
        return {}
    try:
        tree = await tree_of(reader, found.trial)
        return {path: new.encode() for path, (old, new) in chosen.items() if tree.read(path) == old.encode()}
    except ArgosyError:
        return {}


def _parent(app: Application) -> str:
    """By the mark that whoever made it left. argo: `NAME:GROUP/KIND:NAMESPACE/NAME`."""
    name, _, rest = app.annotations.get(TRACKING_ID, "").partition(":")
    return name.rpartition("_")[2] if rest and name != app.name else ""
