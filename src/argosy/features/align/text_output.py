"""Renders an alignment as text. In: an Alignment. Out: lines. Never: computes figures of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from argosy.cli.tables import Screen, plain

if TYPE_CHECKING:
    from argosy.features.align.service import Aligned, Alignment
    from argosy.gitops.analysis.alignment.proposal import Proposal
    from argosy.gitops.analysis.alignment.report import Standing, Tally

HEADINGS = ("APP", "BEFORE", "AFTER", "AFTER A SYNC")
REPORT = ("", "SYNCED", "HEALTHY", "ERRORS", "")


def lines(found: Alignment, screen: Screen) -> Iterator[str]:
    for each in found.apps:
        if told := [*_proposals(each, screen, found)]:
            yield each.app.name
            yield from told
    yield ""
    rows = [[each.app.name, *(_words(s, screen) for s in _standings(each))] for each in found.apps]
    yield from screen.table(HEADINGS, rows)
    yield ""
    yield from screen.table(
        REPORT,
        [
            _row("before", found.before, "as the status of each says"),
            _row("after", found.after, "compared again: the changes, beside what lives now"),
            _row("after a sync", found.synced, "rehearsed by dry runs; nothing was applied"),
        ],
    )


def _standings(each: Aligned) -> tuple[Standing, Standing, Standing]:
    return each.proof.before, each.proof.after, each.proof.synced


def _words(standing: Standing, screen: Screen) -> str:
    more = "".join(f" + {each}" for each in standing.errors)
    return screen.colour(f"{screen.mark(standing.sync)}/{standing.health}{more}", "0")


def _row(name: str, tally: Tally, how: str) -> list[str]:
    synced, healthy, errors = tally.lines
    return [name, *(text.partition(" ")[2] for text in (synced, healthy, errors)), how]


def _proposals(each: Aligned, screen: Screen, found: Alignment) -> Iterator[str]:
    for proposal in each.proposals:
        mark = proposal.mark or "note"
        yield f"  {mark:<6} {plain(proposal.text)}"
        yield from (f"         {plain(told)}" for told in _evidence(proposal))
        if not proposal.certain and proposal not in each.done:
            yield from (f"         {command}" for command in proposal.commands or _yes(each, proposal))
    for path in each.paths:
        added, removed = _counts(*(found.files.changed if found.files else {}).get(path, ("", "")))
        yield f"  file   {path}  {screen.colour(f'+{added}', '32')} {screen.colour(f'-{removed}', '31')}"
    if each.done and found.files and not each.paths and not each.faults:
        yield "  note   the files here say so already: push them, and sync what makes this Application"
    yield from (f"  {screen.bad('by hand: ' + plain(fault))}" for fault in each.faults)
    yield from (f"  {screen.bad('refused: ' + plain(told))}" for told in each.proof.rehearsal.refused)
    yield from (f"  contested: {plain(told)}" for told in each.proof.contested)
    yield from (f"  unproven: {plain(told)}" for told in each.proof.rehearsal.unproven)
    if each.proof.fault:
        yield f"  {screen.bad(plain(each.proof.fault))}"


def _yes(each: Aligned, proposal: Proposal) -> tuple[str, ...]:
    """Return the command that applies the proposal."""
    return (f"to agree: argosy align {each.app.name} --accept",) if proposal.kind.changes else ()


def _evidence(proposal: Proposal) -> tuple[str, ...]:
    return proposal.evidence[:4]


def _counts(old: str, new: str) -> tuple[int, int]:
    import difflib

    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    found = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return sum(code[4] - code[3] for code in found), sum(code[2] - code[1] for code in found)
