"""`argosy app hold|release|refresh|terminate-op|confirm-deletion|delete`: single changes of an Application."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from argosy.cli.durations import seconds
from argosy.cli.error_messages import say
from argosy.cli.exit_codes import TIMED_OUT
from argosy.cli.verbs import (
    Commands,
    add_truth,
    asked,
    at_desk,
    can_ask,
    is_compat,
    talk,
    typed,
    verb,
)
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.gitops.application import Application
    from argosy.gitops.application_client.client import Desk


def add_to(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = verb(
        parts, "hold", "pause automated sync until it is released", run_hold,
        examples=("hold models", "hold models --reason 'incident 42'"),
    )  # fmt: skip
    parser.add_argument("--reason", default="", metavar="TEXT", help="reason of the hold, visible to everyone")
    verb(parts, "release", "end a hold", run_release, examples=("release models", "release ml/models"))
    parser = verb(
        parts, "refresh", "compare an Application with Git again", run_refresh,
        examples=("refresh models", "refresh models --hard"),
    )  # fmt: skip
    parser.add_argument("--hard", action="store_true", help="also render its manifests again")
    about = "wait at most this many seconds (default: 60)"
    parser.add_argument("--timeout", type=seconds, default=60.0, metavar="S", help=about)
    verb(
        parts, "terminate-op", "terminate the running operation", run_terminate,
        examples=("terminate-op models", "terminate-op ml/models"),
    )  # fmt: skip
    verb(
        parts, "confirm-deletion", "confirm the deletion or pruning of objects that require confirmation", run_confirm,
        examples=("confirm-deletion models", "confirm-deletion ml/models"),
    )  # fmt: skip
    parser = verb(
        parts, "delete", "delete Applications and their objects", run_delete, named="any",
        examples=("delete models", "delete models --cascade=false -y", "delete -l env=preview -y --wait"),
    )  # fmt: skip
    parser.add_argument("-l", "--selector", default="", metavar="LABELS", help="all Applications with these labels")
    add_truth(parser, "--cascade", "also delete its objects (default: true)", usual=True)
    about = "foreground (default: delete dependents first) or background"
    policies = ("foreground", "background")
    parser.add_argument("-p", "--propagation-policy", choices=policies, default="foreground", help=about)
    parser.add_argument("--wait", action="store_true", help="wait until it is deleted")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    about = "with --wait: give up after this many seconds (default: never)"
    parser.add_argument("--timeout", type=seconds, default=0.0, metavar="S", help=about)


def run_hold(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.small_changes import hold
        from argosy.gitops.status.hold import read_hold

        app, changed = await hold(desk, await desk.find(chosen.name), chosen.reason)
        found = read_hold(app.annotations)
        who = f" by {found.by}" if found and found.by else ""
        print(f"{app.name}: {'held' if changed else 'unchanged: already held'}{who}")
        talk(f"automated sync is paused; resume it with: argosy app release {app.name}")
        return 0

    return at_desk(chosen, work, writes=True)


def run_release(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.small_changes import release

        app, changed = await release(desk, await desk.find(chosen.name))
        print(f"{app.name}: {'released' if changed else 'unchanged: not held'}")
        return 0

    return at_desk(chosen, work, writes=True)


def run_refresh(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client import summary
        from argosy.gitops.application_client.small_changes import refresh
        from argosy.kube.controller.wait import TooLate

        try:
            app = await desk.find(chosen.name)
            app = await refresh(desk, app, is_hard=chosen.hard, seconds=chosen.timeout, tell=talk)
        except TooLate as error:
            from argosy.cli.error_messages import tell

            tell(error, doing=f"{typed(chosen)} failed")
            return TIMED_OUT
        at = ", ".join(map(summary.short, summary.revisions(app)))
        print(f"{app.name}: {summary.sync_word(app)}, {summary.health_word(app)}{f' at {at}' if at else ''}")
        return 0

    return at_desk(chosen, work, writes=True)


def run_terminate(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.small_changes import terminate

        app = await terminate(desk, await desk.find(chosen.name))
        print(f"Application '{app.name}' operation terminating")
        return 0

    return at_desk(chosen, work, writes=True)


def run_confirm(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.small_changes import confirm_deletion

        app = await confirm_deletion(desk, await desk.find(chosen.name))
        print(f"Application '{app.name}' updated successfully")
        return 0

    return at_desk(chosen, work, writes=True)


def run_delete(chosen: argparse.Namespace) -> int:
    if not chosen.names and not chosen.selector:
        raise UserError("no Application selected; argosy app delete NAME, or select several with -l LABELS")

    async def work(desk: Desk) -> int:
        apps = await desk.chosen(chosen.names, chosen.selector)
        codes = [await _delete(desk, app, chosen) for app in apps]
        return max(codes, default=0)

    return at_desk(chosen, work, writes=True)


async def _delete(desk: Desk, app: Application, chosen: argparse.Namespace) -> int:
    from argosy.gitops.application_client import summary
    from argosy.gitops.application_client.small_changes import delete
    from argosy.gitops.application_client.watch import Ending, Waited, follow

    if not _may_delete(app, chosen):
        talk(f"The command to delete '{app.name}' was cancelled")
        return 0
    await delete(desk, app, cascades=chosen.cascade, policy=chosen.propagation_policy)
    if not chosen.wait:
        print(f"application '{app.name}' deleted")
        return 0
    ended = await follow(desk, app, Waited(is_deleted=True), chosen.timeout, lambda _: None)
    if ended.ending is Ending.TOO_LATE:
        held_up = summary.why(ended.app) if ended.app else ""
        say(f"{app.name} still exists after {chosen.timeout:g} s", held_up, f"argosy app get {app.name}")
        return TIMED_OUT
    print(f"application '{app.name}' deleted")
    return 0


def _may_delete(app: Application, chosen: argparse.Namespace) -> bool:
    if chosen.yes:
        return True
    with_all = " and all its resources" if chosen.cascade else "; its resources stay"
    if can_ask():
        return asked(f"Are you sure you want to delete '{app.name}'{with_all}?")
    if is_compat(chosen):
        return True  # argo: asks only in terminals
    raise UserError(f"{app.name}{with_all}: cannot ask for confirmation without a terminal; add -y")
