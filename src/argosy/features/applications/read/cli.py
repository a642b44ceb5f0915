"""`argosy app list|get|resources|tree|history|events`: read Applications."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from argosy.cli.cluster_flags import add_target_flags_to_printed_commands
from argosy.cli.subcommand_flags_and_runner import (
    SubParsersAction,
    add_app_subcommand,
    choose_output,
    is_compat,
    print_document,
    print_message,
    run_with_service,
)
from argosy.cli.tables import TerminalOutput, format_aligned_columns

if TYPE_CHECKING:
    from argosy.gitops.application import Application, Destination
    from argosy.gitops.application_client import status_summary
    from argosy.gitops.application_client.application_service import ApplicationService
    from argosy.gitops.policy.application_delivery_engine_detection import DeliveryEngines
    from argosy.kube.resource_key import ResourceKey

LIST_OUTPUT_FORMATS = ("table", "wide", "name", "json", "yaml")
GET_OUTPUT_FORMATS = ("table", "wide", "tree", "tree=detailed", "json", "yaml")


def add_commands(parts: SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_app_subcommand(
        parts, "list", "list Applications", run_list, name_count="none", outputs=LIST_OUTPUT_FORMATS,
        examples=("list", "list -o wide", "list -p ml -l env=prod -o name"),
    )  # fmt: skip
    _add_filters(parser)
    parser = add_app_subcommand(
        parts, "get", "show an Application and what it manages", run_get, outputs=GET_OUTPUT_FORMATS,
        examples=("get models", "get models --refresh", "get models -o yaml"),
    )  # fmt: skip
    parser.add_argument("--refresh", action="store_true", help="refresh the Application first")
    parser.add_argument(
        "--hard-refresh", action="store_true", help="refresh the Application first and render its manifests again"
    )
    parser.add_argument("--show-operation", action="store_true", help="show the last operation")
    parser.add_argument("--show-params", action="store_true", help="show the Helm parameters of the Application")
    help_text = "with --show-params: number of the source; the first is 1"
    parser.add_argument("--source-position", type=int, metavar="N", help=help_text)
    help_text = "with --show-params: name of the source"
    parser.add_argument("--source-name", default="", metavar="NAME", help=help_text)
    help_text = "wait at most this many seconds for a refresh (default: 60)"
    parser.add_argument("--timeout", type=float, default=60.0, metavar="S", help=help_text)
    _add_watch(parser)
    parser = add_app_subcommand(
        parts, "resources", "list the objects of an Application", run_resources,
        outputs=("table", "wide", "tree", "tree=detailed", "name", "json", "yaml"),
        examples=("resources models", "resources models -o wide", "resources models --orphaned"),
    )  # fmt: skip
    help_text = "list orphaned objects instead: in its namespace, without an Application"
    parser.add_argument("--orphaned", action="store_true", help=help_text)
    parser.add_argument("--project", default="", metavar="NAME", help="fail if the Application is in another project")
    add_app_subcommand(
        parts, "tree", "show the objects of an Application and their children", run_tree, outputs=("tree", "json"),
        examples=("tree models", "tree models -o json"),
    )  # fmt: skip
    add_app_subcommand(
        parts, "history", "show the deployment history of an Application", run_history,
        outputs=("table", "wide", "id", "json", "yaml"), examples=("history models", "history models -o id"),
    )  # fmt: skip
    parser = add_app_subcommand(
        parts, "events", "show Events of an Application", run_events, outputs=("table", "json", "yaml"),
        examples=("events models", "events models --all"),
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="also show Events of its objects")


def _add_filters(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-l", "--selector", default="", metavar="LABELS", help="only Applications with these labels, such as env=prod")
    help_text = "only Applications of this project; repeatable"
    add("-p", "--project", action="append", default=[], metavar="NAME", help=help_text)
    add("-r", "--repo", default="", metavar="URL", help="only Applications with this repository")
    add("-c", "--cluster", default="", metavar="SERVER", help="only Applications with this destination cluster")
    add("-P", "--path", default="", metavar="PATH", help="only Applications with this path in the repository")
    add("-A", "--all-namespaces", action="store_true", help="list Applications of all namespaces")
    add("--no-headers", action="store_true", help="do not print column headings")
    _add_watch(parser)
    add("--quick", action="store_true", help="count objects that differ, not fields")


def _add_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-w", "--watch", action="store_true", help="watch for changes until Ctrl-C")


def run_list(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        all_namespaces = args.all_namespaces or (is_compat(args) and not args.app_namespace)
        if args.watch:
            from argosy.features.applications.read.watch_output import watch_list

            return await watch_list(
                service, args, lambda app: _matches_filters(app, args), all_namespaces=all_namespaces
            )
        apps = [
            app
            for app in await service.list_applications(args.selector, all_namespaces=all_namespaces)
            if _matches_filters(app, args)
        ]
        drift_texts, delays = {}, {}
        if _has_why_column(args):
            from argosy.gitops.application_client.delay_reasons import describe_delays

            delays = await describe_delays(service, apps)
        if _has_why_column(args) and not args.quick:
            from argosy.gitops.application_client.app_list_explanations import explain_unhealthy_or_differing

            drift_texts = await explain_unhealthy_or_differing(service, apps)
        engines = None
        if choose_output(args) == "table":
            from argosy.gitops.coexistence.argocd_detection import detect_engines_or_unknown

            engines = await detect_engines_or_unknown(service.cluster, service.control_namespace)
        _print_list(args, apps, service, drift_texts, engines, delays)
        return 0

    return _run_until_interrupted(args, work)


def _has_why_column(args: argparse.Namespace) -> bool:
    """True if the list has a column WHY. When run as argocd, `-o wide` has only Argo CD's columns."""
    return choose_output(args) == "table" or (choose_output(args) == "wide" and not is_compat(args))


def _run_until_interrupted(args: argparse.Namespace, work: Callable[[ApplicationService], Awaitable[int]]) -> int:
    """Run a command; Ctrl-C ends a watch with exit code 0."""
    try:
        return run_with_service(args, work)
    except KeyboardInterrupt:
        if args.watch:
            return 0
        raise


def _matches_filters(app: Application, args: argparse.Namespace) -> bool:
    from argosy.gitops.application.repository_url_parser import is_same_repository

    sources = app.sources
    return (
        (not args.project or app.project in args.project)
        and (not args.repo or any(is_same_repository(source.repo_url, args.repo) for source in sources))
        and (not args.path or any(app_source.path == args.path for app_source in sources))
        and (not args.cluster or _matches_cluster(app.destination, args.cluster))
    )


def _matches_cluster(destination: Destination, cluster: str) -> bool:
    from argosy.gitops.application.canonical_cluster_address import parse_cluster_address

    return cluster == destination.name or parse_cluster_address(cluster) == destination.server


def _print_list(
    args: argparse.Namespace,
    apps: list[Application],
    service: ApplicationService,
    drift_texts: Mapping[ResourceKey, str],
    engines: DeliveryEngines | None,
    delays: Mapping[ResourceKey, str],
) -> None:
    from argosy.features.applications.read import text_output as app_screen
    from argosy.gitops.application_client.application_service import utc_now

    output = choose_output(args)
    if output in ("json", "yaml"):
        items = [dict(app.wire) for app in apps]
        list_manifest = {"apiVersion": "v1", "kind": "List", "items": items}
        print_document(items if is_compat(args) else list_manifest, output)
        return
    if output == "name":
        lines = [f"{app.namespace}/{app.name}" for app in apps]
    elif output == "wide":
        lines = app_screen.render_wide_list(apps, drift_texts if _has_why_column(args) else None, delays)[
            args.no_headers :
        ]
    elif not apps:
        print_message(f"no Applications in {service.namespace}; create one: argosy app create --help")
        return
    else:
        screen = TerminalOutput(sys.stdout)
        rendered = app_screen.render_list(apps, screen, utc_now(), service.namespace, drift_texts, engines, delays)
        lines = rendered[args.no_headers :]
    print("".join(f"{line}\n" for line in lines), end="")
    if output == "table" and sys.stdout.isatty():
        print_message(app_screen.render_summary_line(apps))


def run_get(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.application_actions import refresh_and_wait

        app = await service.load_application(args.name)
        if args.refresh or args.hard_refresh:
            app = await refresh_and_wait(
                service, app, is_hard=args.hard_refresh, timeout_seconds=args.timeout, report=print_message
            )
        output = choose_output(args, argocd_default="wide")
        if args.watch:
            from argosy.features.applications.read.watch_output import watch_application

            return await watch_application(service, app, output)
        if output in ("json", "yaml"):
            print_document(dict(app.wire), output)
        elif is_compat(args):
            from argosy.features.applications.read.argocd_printer import print_get

            await print_get(service, app, args)
        elif output.startswith("tree"):
            await print_tree(service, app)
        else:
            await print_app(service, app, shows_operation=args.show_operation, parameters_of=_read_source_choice(args))
        return 0

    return _run_until_interrupted(args, work)


def _read_source_choice(args: argparse.Namespace) -> tuple[int | None, str] | None:
    return (args.source_position, args.source_name) if args.show_params else None


async def print_app(
    service: ApplicationService,
    app: Application,
    *,
    shows_operation: bool = False,
    parameters_of: tuple[int | None, str] | None = None,
) -> None:
    """argo: The output of get, and the end of the output of sync and wait."""
    from argosy.features.applications.read import text_output as app_screen
    from argosy.gitops.application_client import status_summary
    from argosy.gitops.application_client.app_state_reader import assess_or_empty, open_reader
    from argosy.gitops.application_client.application_service import utc_now
    from argosy.gitops.application_client.delay_reasons import describe_delay
    from argosy.gitops.application_client.object_health_sentence import list_health_reasons
    from argosy.gitops.application_client.stuck_pods import UNSCHEDULABLE_REASON, describe_stuck_pods
    from argosy.gitops.application_client.sync_window_description import describe_sync_windows
    from argosy.gitops.coexistence.argocd_detection import detect_engines_or_unknown

    engines = await detect_engines_or_unknown(service.cluster, service.control_namespace)
    async with open_reader(service) as reader:
        reader, assessments = await assess_or_empty(reader, app)
        health = status_summary.list_health_words(assessments)
        delay = describe_delay(app, reader.reconciler_settings, reader.control_cache.get, engines, utc_now())
        window = describe_sync_windows(
            reader.reconciler_settings.clusters.resolve_destination(app),
            reader.reconciler_settings.projects.get(app.project),
        )
        reasons_text = list_health_reasons(
            (key, assessment, reader.cache.get(key) or {}) for key, assessment in assessments.items()
        )
        if status_summary.read_health_status(app) == "Progressing":
            reasons_text = [*await describe_stuck_pods(service, app, frozenset({UNSCHEDULABLE_REASON})), *reasons_text]
    if status_summary.describe_retry(app) or (
        not reasons_text and (status_summary.read_sync_status(app) == "Unknown" or status_summary.is_busy(app))
    ):
        reasons_text = [status_summary.describe_problem(app, delay=delay), *reasons_text]
    elif delay:
        reasons_text = [delay, *reasons_text]
    reasons_text = list(dict.fromkeys((*reasons_text[:1], *status_summary.list_comparison_errors(app), *reasons_text)))
    engine_arguments = app.annotations, app.namespace
    delivered_by = "" if engines.is_argosy_only(*engine_arguments) else engines.describe_deliverer(*engine_arguments)
    lines = app_screen.render_summary(app, window, list(filter(None, reasons_text)), delivered_by)
    if shows_operation and app.state is not None:
        lines += ["", *app_screen.render_operation(app.state)]
    if parameters_of is not None:
        from argosy.features.applications.read.argocd_text_output import render_parameters

        lines += render_parameters(app, *parameters_of)[1:]
    objects = app_screen.render_objects(status_summary.list_rows(app, health))
    print(add_target_flags_to_printed_commands("\n".join([*lines, *(["", *objects] if objects else [])])))


def run_resources(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.errors import PolicyError
        from argosy.gitops.application_client import status_summary
        from argosy.gitops.application_client.app_state_reader import open_reader

        app = await service.load_application(args.name)
        if args.project and args.project != app.project:
            raise PolicyError(f"{app.name} is in project {app.project!r}, not {args.project!r}; leave --project out")
        output = choose_output(args)
        if is_compat(args):
            from argosy.features.applications.read.argocd_printer import print_resources

            await print_resources(service, app, output, only_orphans=args.orphaned)
            return 0
        if output.startswith("tree") and not args.orphaned:
            await print_tree(service, app)
            return 0
        async with open_reader(service, app=app) as reader:
            if args.orphaned:
                rows = [status_summary.ManagedObjectRow(key) for key in await reader.list_orphans(app)]
            else:
                rows = status_summary.list_rows(
                    app, status_summary.list_health_words(await reader.assess_managed_objects(app))
                )
        _print_resources(rows, output, "Yes" if args.orphaned else "No")
        return 0

    return run_with_service(args, work)


def _print_resources(rows: list[status_summary.ManagedObjectRow], output: str, orphaned: str) -> None:

    if output in ("json", "yaml"):
        data = [{**row.key._asdict(), "status": row.status, "health": row.health, "wave": row.wave} for row in rows]
        print_document({"items": data}, output)
    elif output == "name":
        print("".join(f"{str(row.key.group_kind).lower()}/{row.key.name}\n" for row in rows), end="")
    elif output == "wide":
        cells = [(*row.key, orphaned) for row in rows]
        print("\n".join(format_aligned_columns([("GROUP", "KIND", "NAMESPACE", "NAME", "ORPHANED"), *cells])))
    else:
        screen = TerminalOutput(sys.stdout)
        cells_with_marks = [
            (*row.key, screen.format_status(row.status), screen.format_status(row.health), str(row.wave), row.message)
            for row in rows
        ]
        head = ("GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HEALTH", "WAVE", "MESSAGE")
        print("\n".join(screen.format_table(head, cells_with_marks)))


def run_tree(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        await print_tree(service, await service.load_application(args.name), args.output)
        return 0

    return run_with_service(args, work)


async def print_tree(service: ApplicationService, app: Application, output: str = "tree") -> None:
    from argosy.features.applications.read import tree_output as app_tree
    from argosy.gitops.application_client.app_state_reader import open_reader
    from argosy.gitops.application_client.application_service import utc_now
    from argosy.gitops.application_client.object_health_sentence import summarize_health_reason
    from argosy.gitops.application_client.tree_order import node_to_wire

    async with open_reader(service, app=app) as reader:
        nodes = await reader.build_tree(app)
        messages = [(node.key, node.health.message) for node in nodes if node.health]
        reasons = {key: summarize_health_reason(reader.cache.get(key) or {}, message) for key, message in messages}
    if output == "json":
        print_document({"nodes": [node_to_wire(node) for node in nodes]}, "json")
    else:
        print("\n".join(app_tree.render_tree(app, nodes, TerminalOutput(sys.stdout), utc_now(), reasons)))


def run_history(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.features.applications.read import text_output as app_screen
        from argosy.gitops.status.history import read_deployments

        app = await service.load_application(args.name)
        output = choose_output(args)
        entries = read_deployments(app.status)
        if output in ("json", "yaml"):
            history = app.status.get("history") or []
            print_document(history if output == "json" else {"history": history}, output)
        elif output == "id":
            print("".join(f"{entry.id}\n" for entry in entries), end="")
        elif not entries:
            print_message(f"{app.name} has no deployment history; sync it: argosy app sync {app.name}")
        else:
            show = app_screen.render_wide_history if output == "wide" else app_screen.render_history
            print("\n".join(show(entries)))
        return 0

    return run_with_service(args, work)


def run_events(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.features.applications.read import tree_output as app_tree
        from argosy.gitops.application_client.application_service import utc_now
        from argosy.gitops.application_client.event_list import events_of

        app = await service.load_application(args.name)
        events = await events_of(service, app, include_objects=args.all)
        if args.output in ("json", "yaml"):
            print_document({"apiVersion": "v1", "kind": "List", "items": events}, args.output)
        elif not events:
            print_message(f"no Events of {app.name}; clusters delete Events after about an hour")
        else:
            print("\n".join(app_tree.render_events(events, TerminalOutput(sys.stdout), utc_now())))
        return 0

    return run_with_service(args, work)
