"""Renders an alignment as text. In: an Alignment. Out: lines. Never: computes figures of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from argosy.cli.tables import TerminalOutput, drop_control_characters

if TYPE_CHECKING:
    from argosy.features.align_git.service import AlignedApplication, Alignment
    from argosy.gitops.analysis.alignment.git_change_proposal_types import Proposal
    from argosy.gitops.analysis.alignment.sync_and_health_counts import AlignmentTally, ApplicationStatus

HEADINGS = ("APP", "BEFORE", "AFTER", "AFTER A SYNC")
REPORT_HEADINGS = ("", "SYNCED", "HEALTHY", "ERRORS", "")


def render_alignment(alignment: Alignment, screen: TerminalOutput) -> Iterator[str]:
    for aligned in alignment.apps:
        if proposal_lines := [*_render_proposals(aligned, screen, alignment)]:
            yield aligned.app.name
            yield from proposal_lines
    yield ""
    rows = [
        [aligned.app.name, *(_render_state(s, screen) for s in _list_states(aligned))] for aligned in alignment.apps
    ]
    yield from screen.format_table(HEADINGS, rows)
    yield ""
    yield from screen.format_table(
        REPORT_HEADINGS,
        [
            _build_report_row("before", alignment.before, "as the status of each says"),
            _build_report_row("after", alignment.after, "compared again: the changes, with the live state now"),
            _build_report_row("after a sync", alignment.synced, "rehearsed by dry runs; nothing was applied"),
        ],
    )


def _list_states(aligned: AlignedApplication) -> tuple[ApplicationStatus, ApplicationStatus, ApplicationStatus]:
    return aligned.proof.before, aligned.proof.after, aligned.proof.synced


def _render_state(state: ApplicationStatus, screen: TerminalOutput) -> str:
    error_text = "".join(f" + {error}" for error in state.errors)
    return screen.add_colour(f"{screen.format_status(state.sync)}/{state.health}{error_text}", "0")


def _build_report_row(name: str, tally: AlignmentTally, method: str) -> list[str]:
    synced, healthy, errors = tally.lines
    return [name, *(text.partition(" ")[2] for text in (synced, healthy, errors)), method]


def _render_proposals(aligned: AlignedApplication, screen: TerminalOutput, alignment: Alignment) -> Iterator[str]:
    for proposal in aligned.proposals:
        mark = proposal.decision_tag or "note"
        yield f"  {mark:<6} {drop_control_characters(proposal.text)}"
        yield from (f"         {drop_control_characters(line)}" for line in _select_evidence(proposal))
        if not proposal.certain and proposal not in aligned.done:
            yield from (f"         {command}" for command in proposal.commands or _build_accept_hint(aligned, proposal))
    for path in aligned.paths:
        added, removed = _count_changed_lines(*(alignment.files.changed if alignment.files else {}).get(path, ("", "")))
        yield f"  file   {path}  {screen.add_colour(f'+{added}', '32')} {screen.add_colour(f'-{removed}', '31')}"
    if aligned.done and alignment.files and not aligned.paths and not aligned.manual_steps:
        yield "  note   the files here say so already: push them, and sync what makes this Application"
    yield from (
        f"  {screen.format_failure('by hand: ' + drop_control_characters(fault))}" for fault in aligned.manual_steps
    )
    yield from (
        f"  {screen.format_failure('refused: ' + drop_control_characters(line))}"
        for line in aligned.proof.dry_run.refused
    )
    yield from (f"  contested: {drop_control_characters(line)}" for line in aligned.proof.contested)
    yield from (f"  unproven: {drop_control_characters(line)}" for line in aligned.proof.dry_run.unproven)
    if aligned.proof.fault:
        yield f"  {screen.format_failure(drop_control_characters(aligned.proof.fault))}"


def _build_accept_hint(aligned: AlignedApplication, proposal: Proposal) -> tuple[str, ...]:
    """Return the command that applies the proposal."""
    return (f"to agree: argosy align {aligned.app.name} --accept",) if proposal.kind.changes_git else ()


def _select_evidence(proposal: Proposal) -> tuple[str, ...]:
    return proposal.evidence[:4]


def _count_changed_lines(old: str, new: str) -> tuple[int, int]:
    import difflib

    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    changes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return sum(code[4] - code[3] for code in changes), sum(code[2] - code[1] for code in changes)
