"""`argosy app list|get|resources|tree|history|events`: read Applications."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from argosy.cli.tables import Screen, aligned
from argosy.cli.target_flags import with_target
from argosy.cli.verbs import Commands, at_desk, form, is_compat, print_data, talk, verb

if TYPE_CHECKING:
    from argosy.gitops.application import Application, Destination
    from argosy.gitops.application_client import summary
    from argosy.gitops.application_client.client import Desk
    from argosy.gitops.policy.delivery_engine import Engines
    from argosy.kube.names import ResourceKey

LIST_FORMS = ("table", "wide", "name", "json", "yaml")
GET_FORMS = ("table", "wide", "tree", "tree=detailed", "json", "yaml")


def add_to(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = verb(
        parts, "list", "list Applications", run_list, named="none", forms=LIST_FORMS,
        examples=("list", "list -o wide", "list -p ml -l env=prod -o name"),
    )  # fmt: skip
    _add_filters(parser)
    parser = verb(
        parts, "get", "show an Application and what it manages", run_get, forms=GET_FORMS,
        examples=("get models", "get models --refresh", "get models -o yaml"),
    )  # fmt: skip
    parser.add_argument("--refresh", action="store_true", help="refresh the Application first")
    parser.add_argument(
        "--hard-refresh", action="store_true", help="refresh the Application first and render its manifests again"
    )
    parser.add_argument("--show-operation", action="store_true", help="show the last operation")
    parser.add_argument("--show-params", action="store_true", help="show the Helm parameters of the Application")
    about = "with --show-params: number of the source; the first is 1"
    parser.add_argument("--source-position", type=int, metavar="N", help=about)
    about = "with --show-params: name of the source"
    parser.add_argument("--source-name", default="", metavar="NAME", help=about)
    about = "wait at most this many seconds for a refresh (default: 60)"
    parser.add_argument("--timeout", type=float, default=60.0, metavar="S", help=about)
    _add_watch(parser)
    parser = verb(
        parts, "resources", "list the objects of an Application", run_resources,
        forms=("table", "wide", "tree", "tree=detailed", "name", "json", "yaml"),
        examples=("resources models", "resources models -o wide", "resources models --orphaned"),
    )  # fmt: skip
    about = "list orphaned objects instead: in its namespace, without an Application"
    parser.add_argument("--orphaned", action="store_true", help=about)
    parser.add_argument("--project", default="", metavar="NAME", help="fail if the Application is in another project")
    verb(
        parts, "tree", "show the objects of an Application and their children", run_tree, forms=("tree", "json"),
        examples=("tree models", "tree models -o json"),
    )  # fmt: skip
    verb(
        parts, "history", "show the deployment history of an Application", run_history,
        forms=("table", "wide", "id", "json", "yaml"), examples=("history models", "history models -o id"),
    )  # fmt: skip
    parser = verb(
        parts, "events", "show Events of an Application", run_events, forms=("table", "json", "yaml"),
        examples=("events models", "events models --all"),
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="also show Events of its objects")


def _add_filters(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-l", "--selector", default="", metavar="LABELS", help="only Applications with these labels, such as env=prod")
    about = "only Applications of this project; repeatable"
    add("-p", "--project", action="append", default=[], metavar="NAME", help=about)
    add("-r", "--repo", default="", metavar="URL", help="only Applications with this repository")
    add("-c", "--cluster", default="", metavar="SERVER", help="only Applications with this destination cluster")
    add("-P", "--path", default="", metavar="PATH", help="only Applications with this path in the repository")
    add("-A", "--all-namespaces", action="store_true", help="list Applications of all namespaces")
    add("--no-headers", action="store_true", help="do not print column headings")
    _add_watch(parser)
    add("--quick", action="store_true", help="count objects that differ, not fields")


def _add_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-w", "--watch", action="store_true", help="watch for changes until Ctrl-C")


def run_list(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        everywhere = chosen.all_namespaces or (is_compat(chosen) and not chosen.app_namespace)
        if chosen.watch:
            from argosy.features.applications.read.watch import watch_list

            return await watch_list(desk, chosen, lambda app: _fits(app, chosen), everywhere=everywhere)
        apps = [app for app in await desk.all(chosen.selector, everywhere=everywhere) if _fits(app, chosen)]
        found, delays = {}, {}
        if _shows_why(chosen):
            from argosy.gitops.application_client.delays import describe_delays

            delays = await describe_delays(desk, apps)
        if _shows_why(chosen) and not chosen.quick:
            from argosy.gitops.application_client.difference_counts import found_out

            found = await found_out(desk, apps)
        engines = None
        if form(chosen) == "table":
            from argosy.gitops.coexistence.argocd_detection import seen_engines

            engines = await seen_engines(desk.cluster, desk.control)
        _print_list(chosen, apps, desk, found, engines, delays)
        return 0

    return _until_interrupted(chosen, work)


def _shows_why(chosen: argparse.Namespace) -> bool:
    """True if the list has a column WHY. When run as argocd, `-o wide` has only Argo CD's columns."""
    return form(chosen) == "table" or (form(chosen) == "wide" and not is_compat(chosen))


def _until_interrupted(chosen: argparse.Namespace, work: Callable[[Desk], Awaitable[int]]) -> int:
    """Run a command; Ctrl-C ends a watch with exit code 0."""
    try:
        return at_desk(chosen, work)
    except KeyboardInterrupt:
        if chosen.watch:
            return 0
        raise


def _fits(app: Application, chosen: argparse.Namespace) -> bool:
    from argosy.gitops.application.repository_url import is_same_repository

    sources = app.sources
    return (
        (not chosen.project or app.project in chosen.project)
        and (not chosen.repo or any(is_same_repository(source.repo_url, chosen.repo) for source in sources))
        and (not chosen.path or any(each.path == chosen.path for each in sources))
        and (not chosen.cluster or _is_cluster(app.destination, chosen.cluster))
    )


def _is_cluster(destination: Destination, wanted: str) -> bool:
    from argosy.gitops.application.cluster_address import parse_cluster_address

    return wanted == destination.name or parse_cluster_address(wanted) == destination.server


def _print_list(
    chosen: argparse.Namespace,
    apps: list[Application],
    desk: Desk,
    found: Mapping[ResourceKey, str],
    engines: Engines | None,
    delays: Mapping[ResourceKey, str],
) -> None:
    from argosy.features.applications.read import text_output as app_screen
    from argosy.gitops.application_client.client import clock

    how = form(chosen)
    if how in ("json", "yaml"):
        items = [dict(app.wire) for app in apps]
        whole = {"apiVersion": "v1", "kind": "List", "items": items}
        print_data(items if is_compat(chosen) else whole, how)
        return
    if how == "name":
        lines = [f"{app.namespace}/{app.name}" for app in apps]
    elif how == "wide":
        lines = app_screen.wide_lines(apps, found if _shows_why(chosen) else None, delays)[chosen.no_headers :]
    elif not apps:
        talk(f"no Applications in {desk.namespace}; create one: argosy app create --help")
        return
    else:
        screen = Screen(sys.stdout)
        shown = app_screen.list_lines(apps, screen, clock(), desk.namespace, found, engines, delays)
        lines = shown[chosen.no_headers :]
    print("".join(f"{line}\n" for line in lines), end="")
    if how == "table" and sys.stdout.isatty():
        talk(app_screen.summary_line(apps))


def run_get(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.small_changes import refresh

        app = await desk.find(chosen.name)
        if chosen.refresh or chosen.hard_refresh:
            app = await refresh(desk, app, is_hard=chosen.hard_refresh, seconds=chosen.timeout, tell=talk)
        how = form(chosen, theirs="wide")
        if chosen.watch:
            from argosy.features.applications.read.watch import watch_one

            return await watch_one(desk, app, how)
        if how in ("json", "yaml"):
            print_data(dict(app.wire), how)
        elif is_compat(chosen):
            from argosy.features.applications.read.argocd_facts import print_get

            await print_get(desk, app, chosen)
        elif how.startswith("tree"):
            await print_tree(desk, app)
        else:
            await print_app(desk, app, shows_operation=chosen.show_operation, parameters_of=_asked_source(chosen))
        return 0

    return _until_interrupted(chosen, work)


def _asked_source(chosen: argparse.Namespace) -> tuple[int | None, str] | None:
    return (chosen.source_position, chosen.source_name) if chosen.show_params else None


async def print_app(
    desk: Desk,
    app: Application,
    *,
    shows_operation: bool = False,
    parameters_of: tuple[int | None, str] | None = None,
) -> None:
    """argo: The output of get, and the end of the output of sync and wait."""
    from argosy.features.applications.read import text_output as app_screen
    from argosy.gitops.application_client import summary
    from argosy.gitops.application_client.client import clock
    from argosy.gitops.application_client.delays import describe_delay
    from argosy.gitops.application_client.health_reasons import reasons
    from argosy.gitops.application_client.reader import fares, health_words, open_reader
    from argosy.gitops.application_client.stuck_pods import UNSCHEDULED, stuck_pods
    from argosy.gitops.application_client.sync_windows import window_text
    from argosy.gitops.coexistence.argocd_detection import seen_engines

    engines = await seen_engines(desk.cluster, desk.control)
    async with open_reader(desk) as reader:
        reader, found = await fares(reader, app)
        health = health_words(found)
        delay = describe_delay(app, reader.rules, reader.control_cache.get, engines, clock())
        window = window_text(reader.rules.clusters.placed(app), reader.rules.projects.get(app.project))
        why = reasons((key, each, reader.cache.get(key) or {}) for key, each in found.items())
        if summary.health_word(app) == "Progressing":
            why = [*await stuck_pods(desk, app, frozenset({UNSCHEDULED})), *why]
    if summary.retrying(app) or (not why and (summary.sync_word(app) == "Unknown" or summary.is_busy(app))):
        why = [summary.why(app, delay=delay), *why]
    elif delay:
        why = [delay, *why]
    why = list(dict.fromkeys((*why[:1], *summary.comparison_errors(app), *why)))
    told = app.annotations, app.namespace
    delivered = "" if engines.is_usual(*told) else engines.told(*told)
    lines = app_screen.block_lines(app, window, list(filter(None, why)), delivered)
    if shows_operation and app.state is not None:
        lines += ["", *app_screen.operation_lines(app.state)]
    if parameters_of is not None:
        from argosy.features.applications.read.argocd_output import parameters

        lines += parameters(app, *parameters_of)[1:]
    objects = app_screen.object_lines(summary.rows(app, health))
    print(with_target("\n".join([*lines, *(["", *objects] if objects else [])])))


def run_resources(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.errors import PolicyError
        from argosy.gitops.application_client import summary
        from argosy.gitops.application_client.reader import health_words, open_reader

        app = await desk.find(chosen.name)
        if chosen.project and chosen.project != app.project:
            raise PolicyError(f"{app.name} is in project {app.project!r}, not {chosen.project!r}; leave --project out")
        how = form(chosen)
        if is_compat(chosen):
            from argosy.features.applications.read.argocd_facts import print_resources

            await print_resources(desk, app, how, only_orphans=chosen.orphaned)
            return 0
        if how.startswith("tree") and not chosen.orphaned:
            await print_tree(desk, app)
            return 0
        async with open_reader(desk, app=app) as reader:
            if chosen.orphaned:
                rows = [summary.Row(key) for key in await reader.orphans(app)]
            else:
                rows = summary.rows(app, health_words(await reader.health(app)))
        _print_resources(rows, how, "Yes" if chosen.orphaned else "No")
        return 0

    return at_desk(chosen, work)


def _print_resources(rows: list[summary.Row], how: str, orphaned: str) -> None:

    if how in ("json", "yaml"):
        data = [{**row.key._asdict(), "status": row.status, "health": row.health, "wave": row.wave} for row in rows]
        print_data({"items": data}, how)
    elif how == "name":
        print("".join(f"{str(row.key.group_kind).lower()}/{row.key.name}\n" for row in rows), end="")
    elif how == "wide":
        cells = [(*row.key, orphaned) for row in rows]
        print("\n".join(aligned([("GROUP", "KIND", "NAMESPACE", "NAME", "ORPHANED"), *cells])))
    else:
        screen = Screen(sys.stdout)
        found = [
            (*row.key, screen.mark(row.status), screen.mark(row.health), str(row.wave), row.message) for row in rows
        ]
        head = ("GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HEALTH", "WAVE", "MESSAGE")
        print("\n".join(screen.table(head, found)))


def run_tree(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        await print_tree(desk, await desk.find(chosen.name), chosen.output)
        return 0

    return at_desk(chosen, work)


async def print_tree(desk: Desk, app: Application, how: str = "tree") -> None:
    from argosy.features.applications.read import tree_output as app_tree
    from argosy.gitops.application_client.client import clock
    from argosy.gitops.application_client.health_reasons import reason
    from argosy.gitops.application_client.reader import open_reader
    from argosy.gitops.application_client.tree_order import node_data

    async with open_reader(desk, app=app) as reader:
        nodes = await reader.tree(app)
        judged = [(node.key, node.health.message) for node in nodes if node.health]
        said = {key: reason(reader.cache.get(key) or {}, message) for key, message in judged}
    if how == "json":
        print_data({"nodes": [node_data(node) for node in nodes]}, "json")
    else:
        print("\n".join(app_tree.tree_lines(app, nodes, Screen(sys.stdout), clock(), said)))


def run_history(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.features.applications.read import text_output as app_screen
        from argosy.gitops.status.history import deployments

        app = await desk.find(chosen.name)
        how = form(chosen)
        entries = deployments(app.status)
        if how in ("json", "yaml"):
            history = app.status.get("history") or []
            print_data(history if how == "json" else {"history": history}, how)
        elif how == "id":
            print("".join(f"{entry.id}\n" for entry in entries), end="")
        elif not entries:
            talk(f"{app.name} has no deployment history; sync it: argosy app sync {app.name}")
        else:
            show = app_screen.wide_history_lines if how == "wide" else app_screen.history_lines
            print("\n".join(show(entries)))
        return 0

    return at_desk(chosen, work)


def run_events(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.features.applications.read import tree_output as app_tree
        from argosy.gitops.application_client.client import clock
        from argosy.gitops.application_client.events import events_of

        app = await desk.find(chosen.name)
        found = await events_of(desk, app, also_objects=chosen.all)
        if chosen.output in ("json", "yaml"):
            print_data({"apiVersion": "v1", "kind": "List", "items": found}, chosen.output)
        elif not found:
            talk(f"no Events of {app.name}; clusters delete Events after about an hour")
        else:
            print("\n".join(app_tree.event_lines(found, Screen(sys.stdout), clock())))
        return 0

    return at_desk(chosen, work)
