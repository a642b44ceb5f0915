"""`argosy app diff|manifests|actions`: desired state, live state, and resource actions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from argosy.cli.exit_codes import EXIT_NEGATIVE
from argosy.cli.subcommands import (
    SubParsersAction,
    add_app_subcommand,
    add_bool_flag,
    choose_output,
    is_compat,
    print_document,
    print_message,
    run_with_service,
)
from argosy.cli.tables import TerminalOutput, format_count, wrap_text

if TYPE_CHECKING:
    from pathlib import Path

    from argosy.gitops.analysis.cause import Cause
    from argosy.gitops.application import Application
    from argosy.gitops.application.step_results import FieldDifference
    from argosy.gitops.application_client.client import ApplicationService
    from argosy.gitops.application_client.differences import DifferingObject
    from argosy.gitops.application_client.reader import ApplicationReader
    from argosy.gitops.application_client.resource_actions import ObjectSelector
    from argosy.kube.objects import Manifest

MAX_VALUE_LENGTH = 60
TO_PRUNE, TO_CREATE = "in the cluster, not in Git (to be pruned)", "in Git, not in the cluster (to be created)"


def add_to(parts: SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_app_subcommand(
        parts, "diff", "show differences between Git and the cluster; exits 1 if there are any", run_diff,
        outputs=("table", "diff", "name", "json", "yaml"),
        examples=("diff models", "diff models --revision v2 -o diff", "diff models --local overlays/dev"),
    )  # fmt: skip
    _add_source_flags(parser)
    parser.add_argument("--refresh", action="store_true", help="refresh the Application first")
    parser.add_argument(
        "--hard-refresh", action="store_true", help="refresh the Application first and render its manifests again"
    )
    add_bool_flag(
        parser, "--exit-code", "return an exit code other than 0 if there are differences (default: true)", default=True
    )
    parser.add_argument(
        "--diff-exit-code",
        type=int,
        default=EXIT_NEGATIVE,
        metavar="N",
        help="exit code if there are differences (default: 1)",
    )
    parser.add_argument(
        "--server-side-diff", action="store_true", help="compare with the result of a server-side apply dry run"
    )
    parser = add_app_subcommand(
        parts, "manifests", "print the desired or live manifests of an Application", run_manifests,
        outputs=("yaml", "json", "name"),
        examples=("manifests models", "manifests models --source live", "manifests models --revision v2"),
    )  # fmt: skip
    _add_source_flags(parser)
    parser.add_argument("--source", choices=("git", "live"), default="git", help="git (default), or live")
    _add_actions(parts)


def _add_source_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--revision", default="", metavar="R", help="a branch, tag or commit instead of the target revision")
    help_text = "revision of one of several sources, in the order of --source-positions; repeatable"
    add("--revisions", action="append", default=[], metavar="R", help=help_text)
    help_text = "position of a source; the first is 1; repeatable"
    add("--source-positions", action="append", type=int, default=[], metavar="N", help=help_text)
    help_text = "name of a source, instead of its position; repeatable"
    add("--source-names", action="append", default=[], metavar="NAME", help=help_text)
    add("--local", default="", metavar="DIR", help="a local folder instead of Git")
    add("--local-repo-root", default="", metavar="DIR", help="the root of the local repository that contains it")


def add_object_filters(parser: argparse.ArgumentParser, name_flag: str) -> None:
    add = parser.add_argument
    add("--group", default="", metavar="GROUP", help="only objects of this API group")
    add("--kind", default="", metavar="KIND", help="only objects of this kind")
    add("--namespace", default="", metavar="NS", help="only objects in this namespace")
    add(name_flag, dest="resource_name", default="", metavar="NAME", help="only the object with this name")


def _add_actions(parts: SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = parts.add_parser("actions", help="list and run resource actions")
    kinds = parser.add_subparsers(dest="what", metavar="COMMAND", required=True, parser_class=type(parser))
    parser = add_app_subcommand(
        kinds, "list", "list actions of the objects of an Application", run_actions_list,
        outputs=("table", "wide", "json", "yaml"), examples=("actions list models", "actions list models --kind Job"),
    )  # fmt: skip
    add_object_filters(parser, "--resource-name")
    parser = add_app_subcommand(
        kinds, "run", "run an action on an object", run_action,
        examples=("actions run models restart --kind Deployment", "actions run models resume --kind CronJob --all"),
    )  # fmt: skip
    parser.add_argument("action", metavar="ACTION", help="name of the action, as shown by actions list")
    add_object_filters(parser, "--resource-name")
    parser.add_argument("--all", action="store_true", help="run it on all matching objects")


# -- diff ----------------------------------------------------------------------------------------------------------


def run_diff(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        app = await service.load_application(args.name)
        if args.refresh or args.hard_refresh:
            from argosy.gitops.application_client.small_changes import (
                refresh_and_wait,
            )  # imported here because it is rarely needed

            app = await refresh_and_wait(
                service, app, is_hard=args.hard_refresh, timeout_seconds=60.0, report=print_message
            )
        app, local = _apply_local_folder(app, args)
        if args.server_side_diff:
            app = _with_server_side_diff(app)
        output = "normal" if is_compat(args) and not args.output else args.output or "table"
        differs = await print_diff(service, app, refs=_read_refs(app, args), local=local, output=output)
        return int(args.diff_exit_code) if differs and args.exit_code else 0

    return run_with_service(args, work)


async def print_diff(
    service: ApplicationService,
    app: Application,
    *,
    refs: Sequence[str] = (),
    local: Path | None = None,
    output: str = "table",
) -> bool:
    """Print the differences; return True if there are any."""
    from argosy.gitops.application_client.render_process import build_render_pool

    render_pool = build_render_pool()
    render_pool.start_first_worker()  # start it now: its imports take as long as the ones below
    from argosy.errors import RenderError, UnknownRef, UserError
    from argosy.gitops.application_client.difference_causes import explain_differences, explain_render_error
    from argosy.gitops.application_client.differences import (
        add_locations,
        differences_to_wire,
        list_differing_objects,
        with_causes,
    )
    from argosy.gitops.application_client.reader import open_reader

    async with open_reader(service, local, render_pool=render_pool, app=app) as reader:
        try:
            app_state = await reader.compare(app, refs, assess_health=False)
        except (RenderError, UnknownRef) as error:
            cause = await explain_render_error(reader, app, error, refs)
            raise UserError(f"{cause.text}; {cause.next}") if cause.kind == "StaleBranch" else error from error
        if not app_state.is_complete:
            message = next(
                (item.message for item in app_state.conditions if item.type.is_error), "the comparison failed"
            )
            raise UserError(f"{app.name}: {message}")
        differing_objects = list_differing_objects(
            app_state.comparison, reader.reconciler_settings.diff.masked_annotations
        )
        if output in ("table", "json", "yaml"):
            differing_objects = add_locations(differing_objects, app_state.desired.rendered)
            differing_objects = with_causes(
                differing_objects, await explain_differences(reader, app, app_state, differing_objects, refs)
            )
    if output in ("json", "yaml"):
        print_document(differences_to_wire(differing_objects), output)
    elif output == "name":
        print("".join(f"{str(item.key.group_kind).lower()}/{item.key.name}\n" for item in differing_objects), end="")
    else:
        print("".join(f"{line}\n" for item in differing_objects for line in _render_diff(item, output)), end="")
        if output == "table":
            _print_totals(app, differing_objects)
    return bool(differing_objects)


def _apply_local_folder(app: Application, args: argparse.Namespace) -> tuple[Application, Path | None]:
    from argosy.gitops.application_client.local_folder import use_local_folder

    return use_local_folder(app, args.local, args.local_repo_root) if args.local else (app, None)


def _read_refs(app: Application, args: argparse.Namespace) -> tuple[str, ...]:
    from argosy.gitops.application_client.sync_requests import assign_refs

    if args.revisions:
        return assign_refs(app, args.revisions, args.source_positions, args.source_names)
    return (args.revision,) if args.revision else ()


def _with_server_side_diff(app: Application) -> Application:
    from dataclasses import replace

    from argosy.annotations import COMPARE_OPTIONS

    compare_options = ",".join(filter(None, (app.annotations.get(COMPARE_OPTIONS, ""), "ServerSideDiff=true")))
    return replace(app, annotations={**app.annotations, COMPARE_OPTIONS: compare_options})


def _render_diff(differing_object: DifferingObject, output: str) -> list[str]:
    from argosy.gitops.application_client.differences import format_normal_diff, format_unified_diff

    key = differing_object.key
    if output == "normal":  # argo: its heading and the output of the diff program
        return [
            "",
            f"===== {key.group}/{key.kind} {key.namespace}/{key.name} ======",
            *format_normal_diff(differing_object),
        ]
    screen = TerminalOutput(sys.stdout)
    if output == "diff":
        return [screen.format_diff_line(line) for line in format_unified_diff(differing_object)]
    namespace_flag = f" -n {key.namespace}" if key.namespace else ""
    return [
        f"{key.kind}/{key.name}{namespace_flag}",
        *(f"  {line}" for line in _render_fields(differing_object, screen)),
    ]


def _render_fields(differing_object: DifferingObject, screen: TerminalOutput) -> list[str]:
    object_cause = differing_object.causes.get("")
    if not differing_object.desired:
        description = object_cause.text if object_cause and object_cause.kind != "Prune" else TO_PRUNE
        return [f"{screen.format_status('OutOfSync')}  {description}{_render_location(object_cause)}"]
    if not differing_object.live:
        description = object_cause.text if object_cause and object_cause.kind != "YourChange" else TO_CREATE
        return [f"{screen.format_status('Missing')}  {description}{_render_location(object_cause)}"]
    rows = []
    for field in differing_object.fields:
        cause = differing_object.causes.get(field.pointer)
        description = f"{cause.kind.label}: {cause.text}{_render_location(cause)}" if cause else _render_author(field)
        rows.append((_render_path(field.pointer), _render_change(field), description))
    rows += [
        (
            _render_path(foreign_field.pointer),
            _render_value(foreign_field.live),
            f"no drift: set by {foreign_field.manager}",
        )
        for foreign_field in differing_object.foreign_fields
    ]
    width = max((len(row[0]) for row in rows), default=0)
    change_width = max((len(row[1]) for row in rows), default=0)
    lines = [f"{path:<{width}}  {change:<{change_width}}  {author}".rstrip() for path, change, author in rows]
    max_width = screen.width - 2 if screen.width is not None else None
    if max_width is None or max(map(len, lines), default=0) <= max_width:
        return lines
    pairs = [
        (wrap_text(f"{path}  {change}", max_width), wrap_text(f"    {author}", max_width, 6))
        for path, change, author in rows
    ]
    return [line for field, author in pairs for line in (*field, *author)]


def render_plan(differing_objects: Sequence[DifferingObject], *, prunes: bool) -> list[str]:
    """Render the changes of a sync object by object, without causes."""
    lines = []
    for differing_object in differing_objects:
        key, rows = (
            differing_object.key,
            [(_render_path(field.pointer), _render_change(field)) for field in differing_object.fields],
        )
        width = max((len(row[0]) for row in rows), default=0)
        object_lines = [f"{path:<{width}}  {change}" for path, change in rows]
        if not differing_object.desired:
            object_lines = [
                "will be deleted" if prunes else "stays, although that deployment did not have it (--prune deletes it)"
            ]
        elif not differing_object.live:
            object_lines = ["will be created"]
        lines += [
            f"{key.kind}/{key.name}{f' -n {key.namespace}' if key.namespace else ''}",
            *(f"  {object_line}" for object_line in object_lines),
        ]
    return lines


def _render_change(field: FieldDifference) -> str:
    live = _render_value(field.live) if field.has_live else "-"
    return f"{live} → {_render_value(field.desired) if field.has_desired else '-'}"


def _render_path(pointer: str) -> str:
    from argosy.kube.patch.json_pointer import parse

    return ".".join(parse(pointer)) or "."


def _render_location(cause: Cause | None) -> str:
    """Return file and commit of the desired value."""
    if cause is None or not cause.location:
        return ""
    return f" ({cause.location}{f', {cause.commit_summary}' if cause.commit_summary else ''})"


def _render_author(field: FieldDifference) -> str:
    if not field.manager:
        return ""
    return f"live value by {field.manager}{f' since {field.since}' if field.since else ''}"


def _render_value(value: Any) -> str:
    import orjson

    text = orjson.dumps(value).decode()
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 1]}…"


def _print_totals(app: Application, differing_objects: Sequence[DifferingObject]) -> None:
    if not differing_objects:
        print_message(f"{app.name}: no differences")
        return
    create_count, prune_count = (
        sum(not differing_object.live for differing_object in differing_objects),
        sum(not differing_object.desired for differing_object in differing_objects),
    )
    changed = [
        differing_object for differing_object in differing_objects if differing_object.live and differing_object.desired
    ]
    fields = sum(len(differing_object.fields) for differing_object in changed)
    counts = [f"{format_count(fields, 'field')} of {format_count(len(changed), 'object')} to change"] if changed else []
    counts += [f"{format_count(create_count, 'object')} to create"] if create_count else []
    counts += [f"{format_count(prune_count, 'object')} to prune"] if prune_count else []
    unresolved = [
        differing_object.key
        for differing_object in differing_objects
        for cause in differing_object.causes.values()
        if cause.kind.needs_more_than_sync
    ]
    if unresolved:
        namespace_flag = f" -n {unresolved[0].namespace}" if unresolved[0].namespace else ""
        counts.append(f"{len(unresolved)} of which need{'s' if len(unresolved) == 1 else ''} more than a sync")
        next_command = f"argosy explain {unresolved[0].kind}/{unresolved[0].name}{namespace_flag}"
    else:
        next_command = f"argosy app sync {app.name}{' --prune' if prune_count else ''}"
    print_message(f"{app.name}: {', '.join(counts)}; next: {next_command}")


# -- manifests -----------------------------------------------------------------------------------------------------


def run_manifests(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.reader import open_reader
        from argosy.gitops.diff import mask_secrets

        app, local = _apply_local_folder(await service.load_application(args.name), args)
        async with open_reader(service, local, app=app) as reader:
            manifests = await _load_manifests(reader, app, args)
            masked_manifests = [
                manifest
                for manifest in mask_secrets(manifests, reader.reconciler_settings.diff.masked_annotations)
                if manifest is not None
            ]
        _print_manifests(masked_manifests, choose_output(args, "yaml", "yaml"), "\n" if is_compat(args) else "")
        return 0

    return run_with_service(args, work)


async def _load_manifests(reader: ApplicationReader, app: Application, args: argparse.Namespace) -> list[Manifest]:
    from argosy.gitops.application_client.resource_actions import ObjectSelector, load_selected_objects

    if args.source == "live":
        return await load_selected_objects(reader, app, ObjectSelector())
    return list((await reader.render_desired_state(app, _read_refs(app, args))).manifests)


def _print_manifests(manifests: Sequence[Manifest], output: str, end: str) -> None:
    """argo: An empty line follows each manifest."""
    from argosy.kube.objects import dump_yaml, key_of_desired

    if output == "json":
        print_document({"apiVersion": "v1", "kind": "List", "items": list(manifests)}, output)
    elif output == "name":
        print("".join(f"{str(key.group_kind).lower()}/{key.name}\n" for key in map(key_of_desired, manifests)), end="")
    else:
        print("".join(f"---\n{dump_yaml(manifest)}{end}" for manifest in manifests), end="")


# -- actions -------------------------------------------------------------------------------------------------------


def read_object_selector(args: argparse.Namespace) -> ObjectSelector:
    from argosy.gitops.application_client.resource_actions import ObjectSelector

    return ObjectSelector(args.group, args.kind, args.namespace, args.resource_name)


def run_actions_list(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.cli.tables import format_aligned_columns
        from argosy.gitops.application_client.reader import open_reader
        from argosy.gitops.application_client.resource_actions import list_offered_actions

        app = await service.load_application(args.name)
        async with open_reader(service, app=app) as reader:
            offered = await list_offered_actions(reader, app, read_object_selector(args))
        if args.output in ("json", "yaml"):
            data = [{**key._asdict(), "action": action.name, "disabled": action.disabled} for key, action in offered]
            print_document({"items": data}, args.output)
            return 0
        rows = [(key.group, key.kind, key.name, action.name, str(action.disabled).lower()) for key, action in offered]
        print("\n".join(format_aligned_columns([("GROUP", "KIND", "NAME", "ACTION", "DISABLED"), *rows])))
        return 0

    return run_with_service(args, work)


def run_action(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.reader import open_reader
        from argosy.gitops.application_client.resource_actions import run_action_on_selected

        app = await service.load_application(args.name)
        async with open_reader(service, app=app) as reader:
            changed_keys = await run_action_on_selected(
                reader, app, args.action, read_object_selector(args), on_all=args.all
            )
        print_line = print_message if is_compat(args) else print  # argo: prints nothing
        for key in changed_keys:
            print_line(f"{key.kind}/{key.name}: {args.action} done")
        return 0

    return run_with_service(args, work, show_target=True)
