"""`argosy app sync`: start a sync and follow the operation until it ends."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from argosy.cli.durations import seconds
from argosy.cli.error_messages import say
from argosy.cli.exit_codes import INTERRUPTED, NO, REFUSED, TIMED_OUT
from argosy.cli.tables import Screen
from argosy.cli.verbs import (
    Commands,
    asked,
    at_desk,
    can_ask,
    form,
    is_compat,
    print_data,
    talk,
    verb,
)
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.gitops.application import Application
    from argosy.gitops.application_client.client import Desk
    from argosy.gitops.application_client.sync_requests import SyncWish
    from argosy.gitops.application_client.watch import Ended
    from argosy.kube.names import ResourceKey
    from argosy.kube.objects import Manifest

FORMS = ("table", "wide", "tree", "tree=detailed", "json", "yaml")
MOST = 12  # in messages
LAST_LOOK = 2.0  # wait for the comparison after a sync


def add_to(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = verb(
        parts, "sync", "sync an Application to its target state in Git", run_sync, named="any", forms=FORMS,
        examples=("sync models", "sync models --prune --dry-run", "sync -l env=dev --async",
                  "sync models --resource apps:Deployment:predictor"),
    )  # fmt: skip
    _add_sync_flags(parser)


def add_timeout(parser: argparse.ArgumentParser) -> None:
    about = "give up after this many seconds (default: never)"
    parser.add_argument("--timeout", type=seconds, default=0.0, metavar="S", help=about)


def _add_sync_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-l", "--selector", default="", metavar="LABELS", help="all Applications with these labels")
    add("--project", default="", metavar="NAME", help="all Applications of this project")
    add("--revision", default="", metavar="R", help="a branch, tag or commit instead of the target revision")
    about = "revision of one of several sources, in the order of --source-positions; repeatable"
    add("--revisions", action="append", default=[], metavar="R", help=about)
    about = "position of a source; the first is 1; repeatable"
    add("--source-positions", action="append", type=int, default=[], metavar="N", help=about)
    about = "name of a source, instead of its position; repeatable"
    add("--source-names", action="append", default=[], metavar="NAME", help=about)
    add("--prune", action="store_true", help="delete objects that are not in Git any more")
    add("--dry-run", action="store_true", help="only show what would change")
    add("--force", action="store_true", help="delete and recreate objects that cannot be updated")
    add("--replace", action="store_true", help="replace instead of apply")
    add("--server-side", action="store_true", help="use server-side apply")
    add("--apply-out-of-sync-only", action="store_true", help="apply only objects that are OutOfSync")
    about = "only GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME; * matches any part, a leading ! excludes"
    add("--resource", action="append", default=[], metavar="RESOURCE", help=f"{about}; repeatable")
    add(
        "--label",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="only objects with this label in Git; repeatable",
    )
    add("--strategy", choices=("hook", "apply"), default="", help="hook (default), or apply: without hooks")
    add("--info", action="append", default=[], metavar="NAME=VALUE", help="a note in the operation; repeatable")
    add("--retry-limit", type=int, metavar="N", help="maximum number of retries (below zero: no limit)")
    add("--retry-backoff-duration", default="", metavar="D", help="pause before the first retry, such as 5s")
    add("--retry-backoff-max-duration", default="", metavar="D", help="longest pause, such as 3m")
    add("--retry-backoff-factor", type=int, metavar="N", help="factor by which each pause grows")
    add("--retry-refresh", action="store_true", help="use the latest revision for retries")
    add("--async", dest="is_async", action="store_true", help="do not wait for the operation to end")
    add("--preview-changes", action="store_true", help="show the differences and ask for confirmation")
    add("-y", "--yes", "--assumeYes", dest="yes", action="store_true", help="do not ask")
    add("--local", default="", metavar="DIR", help="refused: only manifests in Git are synced")
    add("--local-repo-root", default="", metavar="DIR", help="goes with --local")
    add_timeout(parser)


# -- sync ----------------------------------------------------------------------------------------------------------


def run_sync(chosen: argparse.Namespace) -> int:
    if chosen.local:
        told = "show the changes with: argosy app diff --local, then commit and push them"
        raise UserError(f"cannot sync a local folder, only manifests in Git; {told}", where="--local")
    if not chosen.names and not chosen.selector and not chosen.project:
        told = "argosy app sync NAME, or select several with -l LABELS or --project NAME"
        raise UserError(f"no Application selected; {told}")

    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.sync_checks import check_windows

        apps = await desk.chosen(chosen.names, chosen.selector, chosen.project)
        await check_windows(desk, apps)
        if chosen.preview_changes and not await _previewed(desk, apps, chosen):
            return NO
        codes = [await _sync(desk, app, chosen) for app in apps]
        return max(codes, default=0)

    return leaving_it_running(lambda: at_desk(chosen, work, writes=True), " ".join(chosen.names))


def leaving_it_running(run: Callable[[], int], names: str) -> int:
    """Run a command; on Ctrl-C, report that the operation continues."""
    try:
        return run()
    except KeyboardInterrupt:
        name = names or "NAME"
        told = "the requested operation continues"
        say("interrupted", told, f"argosy app wait {name} --operation, or: argosy app terminate-op {name}")
        return INTERRUPTED


async def _previewed(desk: Desk, apps: list[Application], chosen: argparse.Namespace) -> bool:
    from argosy.features.applications.diff.cli import print_diff

    for app in apps:
        await print_diff(desk, app, refs=(chosen.revision,) if chosen.revision else ())
    if chosen.yes:
        return True
    if not can_ask():
        raise UserError("cannot ask for confirmation without a terminal; add -y", where="--preview-changes")
    return asked("Sync these changes?")


async def _sync(desk: Desk, app: Application, chosen: argparse.Namespace) -> int:
    from argosy.gitops.application_client.sync_requests import sync_operation

    wish, by = _wish(chosen, app), await desk.who()
    if wish.revision or wish.revisions:
        await _resolved(desk, app, wish)
    also = await _labelled(desk, app, chosen.label) if chosen.label else ()
    asked_for = await desk.revise(app, lambda now: {"operation": sync_operation(now, wish, by, also)})
    if chosen.is_async:
        talk(f"{app.name}: sync requested; wait for it: argosy app wait {app.name} --operation")
        return 0
    return await followed(desk, asked_for, chosen, "sync")


def _wish(chosen: argparse.Namespace, app: Application) -> SyncWish:
    from argosy.gitops.application_client.sync_requests import SyncWish

    return SyncWish(
        revision=chosen.revision,
        revisions=_revisions(chosen, app),
        prune=chosen.prune,
        dry_run=chosen.dry_run,
        force=chosen.force,
        replace=chosen.replace,
        server_side=chosen.server_side,
        only_out_of_sync=chosen.apply_out_of_sync_only,
        strategy=chosen.strategy,
        resources=tuple(chosen.resource),
        info=tuple(chosen.info),
        retry_limit=chosen.retry_limit,
        retry_duration=chosen.retry_backoff_duration,
        retry_longest=chosen.retry_backoff_max_duration,
        retry_factor=chosen.retry_backoff_factor,
        retry_refresh=chosen.retry_refresh,
    )


async def _resolved(desk: Desk, app: Application, wish: SyncWish) -> None:
    from argosy.gitops.application_client.reader import open_reader
    from argosy.gitops.application_client.sync_checks import check_refs

    async with open_reader(desk) as reader:
        await check_refs(reader, app, wish.revisions or (wish.revision,))


def _revisions(chosen: argparse.Namespace, app: Application) -> tuple[str, ...]:
    from argosy.gitops.application_client.sync_requests import positioned

    if not chosen.revisions:
        return ()
    return positioned(app, chosen.revisions, chosen.source_positions, chosen.source_names)


async def _labelled(desk: Desk, app: Application, labels: list[str]) -> list[ResourceKey]:
    from argosy.gitops.application_client.reader import open_reader
    from argosy.gitops.application_client.sync_requests import keys_with_labels

    async with open_reader(desk) as reader:
        assembled = await reader.assemble(app)
    return keys_with_labels(app, assembled.desired, labels)


async def followed(desk: Desk, app: Application, chosen: argparse.Namespace, what: str) -> int:
    """Show the operation until it ends, and return the exit code."""
    from argosy.features.applications.sync.progress import Retries, Waves, picture
    from argosy.gitops.application_client.watch import follow_operation

    how = form(chosen)
    shown = None if how in ("json", "yaml") else picture()
    retries = Retries(talk)

    def see(now: Application) -> None:
        if shown is not None:
            shown.see(now)
        if not isinstance(shown, Waves):  # the wave display shows retries
            retries.see(now)

    began = time.monotonic()
    ended = await follow_operation(desk, app, chosen.timeout, see, talk)
    now = None
    if ended.app is not None and not is_compat(chosen) and shown is not None:
        now = await _compared(desk, ended.app, see)
    code = await _told(desk, ended, chosen, what)
    if now is not None and isinstance(shown, Waves):
        _tell_state(now, time.monotonic() - began)
    return code


def _tell_state(app: Application, seconds: float) -> None:
    """Print sync status and health: after a successful sync, models may still be loading."""
    from argosy.gitops.application_client.summary import health_word, sync_word

    screen = Screen(sys.stderr)
    waits = "" if health_word(app) == "Healthy" else f"; next: argosy app wait {app.name} --health"
    print(f"{screen.mark(sync_word(app))}  {screen.mark(health_word(app))} in {seconds:.1f} s{waits}", file=sys.stderr)


async def _compared(desk: Desk, app: Application, see: Callable[[Application], None]) -> Application | None:
    """Wait briefly for the comparison after the sync, because statuses are outdated until then."""
    from argosy.gitops.application import read_application
    from argosy.kube.controller.wait import until

    state = app.state
    if state is None or state.progress != "Succeeded" or state.request.sync.dry_run:
        return None
    seen: list[Application] = []

    def is_new(manifest: Manifest | None) -> bool:
        if manifest is None:
            return True
        now = read_application(manifest)
        is_later = str(now.status.get("reconciledAt") or "") > state.finished
        if is_later or (now.status.get("sync") or {}).get("status") == "Synced":
            see(now)
            seen.append(now)
            return True
        return False

    await until(desk.cluster, app.key, is_new, LAST_LOOK)
    return seen[-1] if seen else None


async def _told(desk: Desk, ended: Ended, chosen: argparse.Namespace, what: str) -> int:
    from argosy.gitops.application_client.stuck_pods import NOT_STARTING, stuck_pods
    from argosy.gitops.application_client.watch import Ending, is_taken_up, unheard

    app = ended.app
    if app is None:
        raise UserError(f"{what}: the Application was deleted")
    if is_compat(chosen):
        app = await _looked_at(desk, app)
    await print_end(desk, app, chosen)
    if ended.ending is Ending.TOO_LATE:
        is_begun = app.state is not None and is_taken_up(app)
        blocker = app.state.message if app.state is not None and is_begun else await unheard(desk, app)
        wait, end = (f"argosy app {each}" for each in (f"wait {app.name} --operation", f"terminate-op {app.name}"))
        advice = f"it {'is still running' if is_begun else 'has not started'}; {wait}, or: {end}"
        stuck = (await stuck_pods(desk, app) or await stuck_pods(desk, app, NOT_STARTING)) if is_begun else []
        say(f"{app.name}: {what} has not finished after {chosen.timeout:g} s", [blocker, *stuck[:MOST]], advice)
        return TIMED_OUT
    if is_compat(chosen) and what == "sync" and not (chosen.resource or chosen.label) and (left := _to_prune(app)):
        say(f"{app.name}: {left} resources require pruning", "", f"argocd app sync {app.name} --prune")
        return NO
    return verdict(app, what)


def _to_prune(app: Application) -> int:
    """argo: A full sync fails if objects remain to be pruned."""
    from argosy.gitops.application_client.summary import sync_word

    state = app.state
    if state is None or state.request.sync.dry_run or state.progress != "Succeeded" or sync_word(app) == "Synced":
        return 0
    return sum(result.outcome == "PruneSkipped" for result in state.results)


async def _looked_at(desk: Desk, app: Application) -> Application:
    """argo: Refresh the Application before printing the result, except after a dry run."""
    from argosy.gitops.application_client.small_changes import refresh
    from argosy.kube.controller.wait import TooLate

    if app.state is None or app.state.request.sync.dry_run:
        return app
    try:
        return await refresh(desk, app, is_hard=False, seconds=60.0, tell=talk)
    except TooLate:
        return app


async def print_end(desk: Desk, app: Application, chosen: argparse.Namespace, *, shows_operation: bool = True) -> None:
    """Print the final state in the chosen output format; the table format has been printed during the operation."""
    from argosy.features.applications.read.cli import print_app, print_tree

    how = form(chosen)
    if how in ("json", "yaml"):
        print_data(dict(app.wire), how)
    elif is_compat(chosen):
        from argosy.features.applications.read.argocd_facts import print_ending

        await print_ending(desk, app, how, shows_operation=shows_operation)
    elif how.startswith("tree"):
        await print_tree(desk, app)
    elif how == "wide":
        print()
        await print_app(desk, app, shows_operation=True)


def verdict(app: Application, what: str) -> int:
    from argosy.gitops.application_client import summary

    state = app.state
    if state is None or state.progress == "Succeeded":
        dry = state is not None and state.request.sync.dry_run
        at = summary.short(state.revision or ", ".join(map(summary.short, state.revisions))) if state else ""
        ending = " (dry run: nothing changed)" if dry else ""
        talk(f"{app.name}: {what} to {at or 'its revision'} succeeded{ending}")
        return 0
    named = summary.failures(app)[:MOST]
    advice = _advice(app, state.message)
    say(f"{app.name}: {what} {state.progress.value.lower()}", [state.message, *named], advice)
    return REFUSED if summary.is_refused_by_project(app) else NO


def _advice(app: Application, message: str) -> str:
    from argosy.gitops.application_client.summary import is_refused_by_project
    from argosy.kube.schema.name_syntax import dns_label

    if is_refused_by_project(app):
        elsewhere = f"move the Application: argosy app set {app.name} --project NAME"
        return f"see what the project permits: argosy proj get {app.project}, and change the project, or {elsewhere}"
    namespace = app.destination.namespace
    if namespace and f'namespaces "{namespace}" not found' in message:
        if wrong := dns_label(namespace):
            right = f"correct it: argosy app set {app.name} --dest-namespace NAME"
            return f"{namespace!r} cannot be the name of a namespace ({wrong[0].partition(' (e.g.')[0]}); {right}"
        return f"argosy app set {app.name} --sync-option CreateNamespace=true, then: argosy app sync {app.name}"
    return f"argosy app get {app.name} --show-operation"
