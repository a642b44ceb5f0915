"""`argosy app sync`: start a sync and follow the operation until it ends."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from argosy.cli.error_messages import print_failure
from argosy.cli.exit_codes import EXIT_INTERRUPTED, EXIT_NEGATIVE
from argosy.cli.seconds_flag_parser import parse_seconds
from argosy.cli.subcommand_flags_and_runner import (
    SubParsersAction,
    add_app_subcommand,
    choose_output,
    confirm,
    is_compat,
    is_interactive,
    print_message,
    run_with_service,
)
from argosy.cli.tables import TerminalOutput
from argosy.errors import UserError
from argosy.features.applications.sync.operation_result_output import print_result

if TYPE_CHECKING:
    from pathlib import Path

    from argosy.gitops.application import Application
    from argosy.gitops.application_client.application_service import ApplicationService
    from argosy.gitops.application_client.sync_operation_builder import SyncFlags
    from argosy.kube.objects import Manifest
    from argosy.kube.resource_key import ResourceKey

OUTPUT_FORMATS = ("table", "wide", "tree", "tree=detailed", "json", "yaml")
COMPARISON_TIMEOUT_SECONDS = 2.0  # wait for the comparison after a sync


def add_commands(parts: SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_app_subcommand(
        parts,
        "sync",
        "sync an Application to its target state in Git",
        run_sync,
        name_count="any",
        outputs=OUTPUT_FORMATS,
        examples=(
            "sync models",
            "sync models --prune --dry-run",
            "sync -l env=dev --async",
            "sync models --local apps/models --dry-run",
            "sync models --resource apps:Deployment:predictor",
        ),
    )
    _add_sync_flags(parser)


def add_timeout(parser: argparse.ArgumentParser) -> None:
    help_text = "give up after this many seconds (default: never)"
    parser.add_argument("--timeout", type=parse_seconds, default=0.0, metavar="S", help=help_text)


def _add_sync_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-l", "--selector", default="", metavar="LABELS", help="all Applications with these labels")
    add("--project", default="", metavar="NAME", help="all Applications of this project")
    add("--revision", default="", metavar="R", help="a branch, tag or commit instead of the target revision")
    help_text = "revision of one of several sources, in the order of --source-positions; repeatable"
    add("--revisions", action="append", default=[], metavar="R", help=help_text)
    help_text = "position of a source; the first is 1; repeatable"
    add("--source-positions", action="append", type=int, default=[], metavar="N", help=help_text)
    help_text = "name of a source, instead of its position; repeatable"
    add("--source-names", action="append", default=[], metavar="NAME", help=help_text)
    add("--prune", action="store_true", help="delete objects that are not in Git any more")
    add("--dry-run", action="store_true", help="only show what would change")
    add("--force", action="store_true", help="delete and recreate objects that cannot be updated")
    add("--replace", action="store_true", help="replace instead of apply")
    add("--server-side", action="store_true", help="use server-side apply")
    add("--apply-out-of-sync-only", action="store_true", help="apply only objects that are OutOfSync")
    help_text = "only GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME; * matches any part, a leading ! excludes"
    add("--resource", action="append", default=[], metavar="RESOURCE", help=f"{help_text}; repeatable")
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
    add("--local", default="", metavar="DIR", help="sync the manifests of this folder, instead of those in Git")
    add("--local-repo-root", default="", metavar="DIR", help="root of the repository of --local")
    add_timeout(parser)


# -- sync ----------------------------------------------------------------------------------------------------------


def run_sync(args: argparse.Namespace) -> int:
    if args.local and (len(args.names) != 1 or args.selector or args.project):
        raise UserError("syncs one Application; name exactly one", where="--local")
    if args.local and (args.revision or args.revisions):
        raise UserError("--local and --revision cannot be combined: a local folder has no revision; omit one")
    if not args.names and not args.selector and not args.project:
        advice = "argosy app sync NAME, or select several with -l LABELS or --project NAME"
        raise UserError(f"no Application selected; {advice}")

    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.sync_checks import check_sync_windows

        apps = await service.load_selected(args.names, args.selector, args.project)
        await check_sync_windows(service, apps)
        if args.preview_changes and not await _confirm_preview(service, apps, args):
            return EXIT_NEGATIVE
        codes = [await _sync_application(service, app, args) for app in apps]
        return max(codes, default=0)

    return run_interruptible(lambda: run_with_service(args, work, show_target=True), " ".join(args.names))


def run_interruptible(run: Callable[[], int], names: str) -> int:
    """Run a command; on Ctrl-C, report that the operation continues."""
    try:
        return run()
    except KeyboardInterrupt:
        name = names or "NAME"
        detail = "the requested operation continues"
        print_failure("interrupted", detail, f"argosy app wait {name} --operation, or: argosy app terminate-op {name}")
        return EXIT_INTERRUPTED


async def _confirm_preview(service: ApplicationService, apps: list[Application], args: argparse.Namespace) -> bool:
    from argosy.features.applications.diff.cli import print_diff

    for app in apps:
        shown_app, local = _choose_local_folder(app, args)
        await print_diff(service, shown_app, refs=(args.revision,) if args.revision else (), local=local)
    if args.yes:
        return True
    if not is_interactive():
        raise UserError("cannot ask for confirmation without a terminal; add -y", where="--preview-changes")
    return confirm("Sync these changes?")


async def _sync_application(service: ApplicationService, app: Application, args: argparse.Namespace) -> int:
    from argosy.gitops.application_client.sync_operation_builder import build_operation_from_flags

    wish, user = _build_sync_wish(args, app), await service.find_user()
    if args.local:
        wish = replace(wish, manifests=await _render_local_folder(service, app, args))
    if wish.revision or wish.revisions:
        await _check_revisions(service, app, wish)
    labelled_keys = await _list_keys_with_any_label(service, app, args.label) if args.label else ()
    updated = await service.patch_application(
        app, lambda now: {"operation": build_operation_from_flags(now, wish, user, labelled_keys)}
    )
    if args.is_async:
        print_message(f"{app.name}: sync requested; wait for it: argosy app wait {app.name} --operation")
        return 0
    return await follow_operation_to_end(service, updated, args, "sync")


def _choose_local_folder(app: Application, args: argparse.Namespace) -> tuple[Application, Path | None]:
    from argosy.gitops.application_client.local_source_override import use_local_folder

    return use_local_folder(app, args.local, args.local_repo_root) if args.local else (app, None)


async def _render_local_folder(
    service: ApplicationService, app: Application, args: argparse.Namespace
) -> tuple[str, ...]:
    """Return the manifests of the local folder as JSON texts, as `argocd app sync --local` sends them."""
    import orjson

    from argosy.gitops.application_client.app_state_reader import open_reader
    from argosy.gitops.application_client.sync_checks import check_local_manifests
    from argosy.gitops.application_client.sync_operation_builder import check_no_automated_sync

    check_no_automated_sync(app, is_dry_run=args.dry_run)
    local_app, root = _choose_local_folder(app, args)
    async with open_reader(service, root, app=app) as reader:
        desired_state = await reader.render_desired_state(local_app)
        manifests = [manifest for part in desired_state.rendered for manifest in part.manifests]
        if not manifests:
            raise UserError(f"{args.local} contains no manifests; name another folder", where="--local")
        texts = tuple(orjson.dumps(manifest).decode() for manifest in manifests)
        check_local_manifests(reader, app, texts)
    if not args.dry_run:
        print_message(f"{app.name}: syncing {args.local}, which may not be in Git; the next sync returns to Git")
    return texts


def _build_sync_wish(args: argparse.Namespace, app: Application) -> SyncFlags:
    from argosy.gitops.application_client.sync_operation_builder import SyncFlags

    return SyncFlags(
        revision=args.revision,
        revisions=_read_revisions(args, app),
        prune=args.prune,
        dry_run=args.dry_run,
        force=args.force,
        replace=args.replace,
        server_side=args.server_side,
        only_out_of_sync=args.apply_out_of_sync_only,
        strategy=args.strategy,
        resources=tuple(args.resource),
        info=tuple(args.info),
        retry_limit=args.retry_limit,
        retry_duration=args.retry_backoff_duration,
        retry_max_duration=args.retry_backoff_max_duration,
        retry_factor=args.retry_backoff_factor,
        retry_refresh=args.retry_refresh,
    )


async def _check_revisions(service: ApplicationService, app: Application, wish: SyncFlags) -> None:
    from argosy.gitops.application_client.app_state_reader import open_reader
    from argosy.gitops.application_client.sync_checks import check_refs_exist

    async with open_reader(service) as reader:
        await check_refs_exist(reader, app, wish.revisions or (wish.revision,))


def _read_revisions(args: argparse.Namespace, app: Application) -> tuple[str, ...]:
    from argosy.gitops.application_client.sync_operation_builder import assign_refs

    if not args.revisions:
        return ()
    return assign_refs(app, args.revisions, args.source_positions, args.source_names)


async def _list_keys_with_any_label(
    service: ApplicationService, app: Application, labels: list[str]
) -> list[ResourceKey]:
    from argosy.gitops.application_client.app_state_reader import open_reader
    from argosy.gitops.application_client.sync_operation_builder import select_keys_by_labels

    async with open_reader(service) as reader:
        desired_state = await reader.render_desired_state(app)
    return select_keys_by_labels(app, desired_state.manifests, labels)


async def follow_operation_to_end(
    service: ApplicationService, app: Application, args: argparse.Namespace, action: str
) -> int:
    """Show the operation until it ends, and return the exit code."""
    from argosy.features.applications.sync.progress_output import RetryReporter, WaveDisplay, create_progress_display
    from argosy.gitops.application_client.condition_wait import wait_for_operation

    output = choose_output(args)
    display = None if output in ("json", "yaml") else create_progress_display()
    retries = RetryReporter(print_message)

    def show(current: Application) -> None:
        if display is not None:
            display.show(current)
        if not isinstance(display, WaveDisplay):  # the wave display shows retries
            retries.show(current)

    started_at = time.monotonic()
    result = await wait_for_operation(service, app, args.timeout, show, print_message)
    compared_app = None
    if result.app is not None and not is_compat(args) and display is not None:
        compared_app = await _wait_for_comparison(service, result.app, show)
    code = await print_result(service, result, args, action)
    if compared_app is not None and isinstance(display, WaveDisplay):
        _print_state(compared_app, time.monotonic() - started_at)
    return code


def _print_state(app: Application, seconds: float) -> None:
    """Print sync status and health: after a successful sync, models may still be loading."""
    from argosy.gitops.application_client.status_summary import read_health_status, read_sync_status

    screen = TerminalOutput(sys.stderr)
    advice = "" if read_health_status(app) == "Healthy" else f"; next: argosy app wait {app.name} --health"
    print(
        f"{screen.format_status(read_sync_status(app))}  {screen.format_status(read_health_status(app))} in "
        f"{seconds:.1f} s{advice}",
        file=sys.stderr,
    )


async def _wait_for_comparison(
    service: ApplicationService, app: Application, show: Callable[[Application], None]
) -> Application | None:
    """Wait briefly for the comparison after the sync, because statuses are outdated until then."""
    from argosy.gitops.application import read_application
    from argosy.kube.controller.object_condition_wait import wait_for_object

    state = app.state
    if state is None or state.phase != "Succeeded" or state.request.sync.dry_run:
        return None
    compared_apps: list[Application] = []

    def is_compared(manifest: Manifest | None) -> bool:
        if manifest is None:
            return True
        current = read_application(manifest)
        is_later = str(current.status.get("reconciledAt") or "") > state.finished
        if is_later or (current.status.get("sync") or {}).get("status") == "Synced":
            show(current)
            compared_apps.append(current)
            return True
        return False

    await wait_for_object(service.cluster, app.key, is_compared, COMPARISON_TIMEOUT_SECONDS)
    return compared_apps[-1] if compared_apps else None
