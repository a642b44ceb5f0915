"""`argosy app rollback`: show the plan, ask for confirmation in a terminal, follow the rollback until it ends."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from argosy.cli.exit_codes import INTERRUPTED, NO
from argosy.cli.verbs import Commands, asked, at_desk, can_ask, is_compat, talk, verb
from argosy.features.applications.sync.cli import FORMS, add_timeout, followed, leaving_it_running

if TYPE_CHECKING:
    from argosy.gitops.application import Application
    from argosy.gitops.application_client.client import Desk
    from argosy.gitops.status.history import Deployment

MOST = 24  # lines of a plan


def add_to(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = verb(
        parts, "rollback", "roll back to a previous deployment", run_rollback, forms=FORMS,
        examples=("rollback models", "rollback models 3 --hold --reason 'latency'"),
    )  # fmt: skip
    about = "id of the deployment in the history (default: the last one that differs)"
    parser.add_argument("id", nargs="?", type=int, metavar="ID", help=about)
    parser.add_argument("--prune", action="store_true", help="delete objects that the deployment did not have")
    parser.add_argument("--hold", action="store_true", help="pause automated sync until it is released")
    parser.add_argument("--reason", default="", metavar="TEXT", help="reason of the hold")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    add_timeout(parser)


def run_rollback(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.small_changes import (
            entry_to_roll_back_to,
            is_deployed_already,
            roll_back,
            syncs_itself,
        )
        from argosy.gitops.application_client.sync_checks import check_windows

        app = await desk.find(chosen.name)
        entry = entry_to_roll_back_to(app, chosen.id, is_compat=is_compat(chosen))
        await check_windows(desk, [app])
        if is_deployed_already(app, entry):
            told = f"deployment {entry.id} is already deployed"
            talk(f"{app.name}: {told}; choose an older one: argosy app history {app.name}")
        reason = (chosen.reason or f"rolled back to {entry.id}") if chosen.hold or chosen.reason else None
        _tell_way(app, entry, chosen)
        if not is_compat(chosen) and not chosen.yes and can_ask():
            await _tell_plan(desk, app, entry, prunes=chosen.prune)
            needs_hold = syncs_itself(app) and reason is None
            question = f"{app.name} has automated sync. Hold it and roll back?" if needs_hold else "Roll back?"
            if code := _refusal(app, question):
                return code
            reason = f"rolled back to {entry.id}" if needs_hold else reason
        begun = await roll_back(desk, app, entry, prune=chosen.prune, hold_reason=reason, tell=talk)
        code = await followed(desk, begun, chosen, "rollback")
        if reason is not None:
            talk(f"{app.name}: automated sync is held ({reason}); resume it with: argosy app release {app.name}")
        return code

    return leaving_it_running(lambda: at_desk(chosen, work, writes=True), chosen.name)


def _refusal(app: Application, question: str) -> int:
    """Ask for confirmation; return 0 for yes, else the exit code."""
    try:
        code = 0 if asked(question) else NO
    except KeyboardInterrupt:
        talk("")
        code = INTERRUPTED
    if code:
        talk(f"{app.name}: rollback cancelled; nothing changed")
    return code


def _tell_way(app: Application, entry: Deployment, chosen: argparse.Namespace) -> None:
    from argosy.gitops.application_client import summary

    if not is_compat(chosen):
        there, back = (", ".join(map(summary.short, each)) for each in (summary.revisions(app), entry.revisions))
        talk(f"{app.name}: rolling back from {there or 'nothing'} to deployment {entry.id}: {back}, {entry.deployed}")


async def _tell_plan(desk: Desk, app: Application, entry: Deployment, *, prunes: bool) -> None:
    """Print the changes. A failed comparison does not stop the rollback, as the controller may have more access."""
    from argosy.errors import ArgosyError
    from argosy.features.applications.diff.cli import plan_lines
    from argosy.gitops.application_client.differences import differing
    from argosy.gitops.application_client.reader import open_reader
    from argosy.gitops.application_client.rollback_plan import look_back

    try:
        async with open_reader(desk, app=app) as reader:
            look = await look_back(reader, app, entry)
            masked = reader.rules.compare.masked_annotations
    except ArgosyError as error:
        talk(f"  cannot show the changes: {error}")
        return
    if not look.is_whole:
        said = next((each.message for each in look.conditions if each.type.is_error), "the comparison failed")
        talk(f"  cannot show the changes: {said}")
        return
    lines = plan_lines(differing(look.comparison, masked), prunes=prunes)
    for line in lines[:MOST] or ["no changes: the cluster already matches that deployment"]:
        talk(f"  {line}")
    if len(lines) > MOST:
        talk(f"  … and {len(lines) - MOST} more lines")
