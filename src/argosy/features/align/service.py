"""Aligns several Applications: proposals, edited files and proof.

In: a reader, Applications, a working tree. Out: Alignment. Never: a status without a comparison; writes; prints.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.features.align.application_files import Files
from argosy.features.align.proof import Proof, proven
from argosy.features.align.proposals import Settled, Wishes, settled
from argosy.features.align.trial import Trial, tree_of
from argosy.gitops.analysis.alignment.proposal import Proposal, ProposalKind
from argosy.gitops.analysis.alignment.report import Tally, tally
from argosy.gitops.application import Application
from argosy.gitops.application_client.reader import Reader

AT_ONCE: Final = 4
Tell = Callable[[int], None]


@dataclass(frozen=True)
class Aligned:
    """One Application: its proposals, the applied ones, the edited files and the proof."""

    app: Application
    proposals: tuple[Proposal, ...]
    done: tuple[Proposal, ...]
    proof: Proof
    paths: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()  # manual steps, each with the reason
    parent: str = ""  # the Application that creates this one
    broken_by: tuple[str, ...] = ()  # files edited for other Applications that break this one

    @property
    def is_accepted(self) -> bool:
        """True if it may stay OutOfSync: Healthy, without errors, and an operator sets the differing fields."""
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
        """Compared with the current live state."""
        return tally(each.proof.after for each in self.apps)

    @property
    def synced(self) -> Tally:
        """After a dry-run sync of each Application."""
        return tally(each.proof.synced for each in self.apps)

    @property
    def is_good(self) -> bool:
        return all(each.is_good for each in self.apps)

    @property
    def order(self) -> list[str]:
        """Names of Applications to sync, parents before children, because a parent creates its children."""
        wanting = [each for each in self.apps if each.paths or each.proof.after.sync != "Synced"]
        parents = {each.parent for each in wanting if each.paths} - {""}
        named = [each.app.name for each in self.apps if each.app.name in parents]
        named += sorted(parents - set(named))
        needing = (each for each in wanting if each.proof.after.sync != "Synced" and not each.proof.fault)
        return [*named, *(each.app.name for each in needing if each.app.name not in named)]

    def document(self) -> dict[str, Any]:
        return {
            "applications": [each.document() for each in self.apps],
            "before": self.before.document(),
            "after": self.after.document(),
            "afterSync": self.synced.document(),
            "syncInOrder": self.order,
        }


async def align(
    reader: Reader, apps: Sequence[Application], files: Files | None, wishes: Wishes, tell: Tell = lambda number: None
) -> Alignment:
    """Without files, proposals are only proven. `report_progress` gets the number of finished Applications.

    If an edit would break another Application, everything is tried again without that file.
    """
    made = await _aligned(reader, apps, files, wishes, tell)
    barred = frozenset(path for each in made.apps for path in each.broken_by)
    if not barred:
        return made
    if files is not None:
        files.reset()
    return await _aligned(reader, apps, files, replace(wishes, barred=barred), tell)


async def _aligned(
    reader: Reader, apps: Sequence[Application], files: Files | None, wishes: Wishes, tell: Tell
) -> Alignment:
    gate, ready = asyncio.Semaphore(AT_ONCE), itertools.count(1)

    async def one(app: Application) -> Settled:
        async with gate:
            found = await settled(reader, app, wishes)
            tell(next(ready))
            return found

    found = await asyncio.gather(*(one(app) for app in apps))
    written = [files.change(each.trial, each.done) if files else ([], []) for each in found]
    edits = _edits(found, files)
    everyone = {each.name: each for each in (*wishes.siblings, *apps)}
    made = []
    for app, each, (paths, faults) in zip(apps, found, written, strict=True):
        proof = await _proven(reader, app, each, edits)
        parent = everyone.get(app.parent)
        if parent is not None and files is not None:
            faults += await _unread(reader, app, parent, files)
        name = parent.name if parent else ""
        broken = await _broken_by(reader, proof, each, edits)
        made.append(Aligned(app, tuple(each.proposals), each.done, proof, tuple(paths), tuple(faults), name, broken))
    known = {app.key for app in apps}
    others = [each for each in wishes.siblings if each.key not in known and not each.deleted]
    return Alignment((*made, *await _concerned(reader, others, found, edits)), files)


def _edits(found: Sequence[Settled], files: Files | None) -> dict[str, tuple[bytes, bytes]]:
    """Return old and new content of edited source files by path."""
    made = {path: (each.trial.bases[path], new) for each in found for path, new in each.trial.files.items()}
    return made | {path: (old.encode(), new.encode()) for path, (old, new) in (files.changed if files else {}).items()}


async def _concerned(
    reader: Reader, others: Sequence[Application], found: Sequence[Settled], edits: Mapping[str, tuple[bytes, bytes]]
) -> list[Aligned]:
    """Check Applications that were not selected but read an edited file."""
    urls = {each.trial.url for each in found if each.trial.files}
    made = []
    for app in (each for each in others if each.sources and each.sources[0].repo_url in urls):
        try:
            here = Settled(Trial(app), look=await reader.look(app))
        except ArgosyError:
            continue
        if await _read_here(reader, here, edits):
            proof = await _proven(reader, app, here, edits)
            made.append(Aligned(app, (), (), proof, broken_by=await _broken_by(reader, proof, here, edits)))
    return made


async def _broken_by(
    reader: Reader, proof: Proof, found: Settled, edits: Mapping[str, tuple[bytes, bytes]]
) -> tuple[str, ...]:
    """Return the shared edits if they make the API server refuse a previously Synced Application."""
    if proof.before.sync != "Synced" or not proof.rehearsal.refused:
        return ()
    return tuple(await _read_here(reader, found, edits))


async def _unread(reader: Reader, app: Application, parent: Application, files: Files) -> list[str]:
    """argo: the parent creates the Application from Git; if it tracks another branch, it does not see the change."""
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
    told = f"it is created by {parent.name}, which tracks {ref}, where {here[0]} differs from this working tree"
    return [f"{told}: bring the change there, or let {parent.name} track this branch"]


async def _proven(reader: Reader, app: Application, found: Settled, edits: Mapping[str, tuple[bytes, bytes]]) -> Proof:
    """Prove the trial together with the edits of other Applications in files that it reads."""
    shared = await _read_here(reader, found, edits)
    if not shared:
        return await proven(reader, app, found.trial, found.look)
    return await proven(reader, app, replace(found.trial, files={**shared, **found.trial.files}))


async def _read_here(reader: Reader, found: Settled, edits: Mapping[str, tuple[bytes, bytes]]) -> dict[str, bytes]:
    """Return edited files that it reads, if their old content is equal in its tree."""
    if found.look is None:
        return {}
    read = {each.path for part in found.look.assembled.rendered for each in part.inputs if not each.place}
    chosen = {path: texts for path, texts in edits.items() if path in read and path not in found.trial.files}
    if not chosen:
        return {}
    try:
        tree = await tree_of(reader, found.trial)
        return {path: new for path, (old, new) in chosen.items() if tree.read(path) == old}
    except ArgosyError:
        return {}
