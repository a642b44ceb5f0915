"""`argosy app diff|manifests|actions`: desired state, live state, and resource actions."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from argosy.cli.exit_codes import EXIT_NEGATIVE
from argosy.cli.subcommand_flags_and_runner import (
    SubParsersAction,
    add_app_subcommand,
    add_bool_flag,
    choose_output,
    is_compat,
    print_document,
    print_message,
    run_with_service,
)
from argosy.features.applications.diff.text_output import print_totals, render_diff

if TYPE_CHECKING:
    from pathlib import Path

    from argosy.gitops.application import Application
    from argosy.gitops.application_client.app_state_reader import ApplicationReader
    from argosy.gitops.application_client.application_service import ApplicationService
    from argosy.gitops.application_client.resource_actions_and_logs import ObjectSelector
    from argosy.kube.objects import Manifest


def add_commands(parts: SubParsersAction[argparse.ArgumentParser]) -> None:
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
            from argosy.gitops.application_client.application_actions import refresh_and_wait  # rarely needed

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
    from argosy.gitops.application_client.render_pool_prestart import build_render_pool

    render_pool = build_render_pool()
    render_pool.start_first_worker()  # start it now: its imports take as long as the ones below
    from argosy.errors import RenderError, UnknownRef, UserError
    from argosy.gitops.application_client.app_state_reader import open_reader
    from argosy.gitops.application_client.diff_presentation import (
        add_locations,
        differences_to_wire,
        list_differing_objects,
        with_causes,
    )
    from argosy.gitops.application_client.difference_cause_evidence import explain_differences, explain_render_error

    async with open_reader(service, local, render_pool=render_pool, app=app) as reader:
        try:
            app_state = await reader.compare(app, refs, assess_health=False, from_git=local is not None)
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
        print("".join(f"{line}\n" for item in differing_objects for line in render_diff(item, output)), end="")
        if output == "table":
            print_totals(app, differing_objects)
    return bool(differing_objects)


def _apply_local_folder(app: Application, args: argparse.Namespace) -> tuple[Application, Path | None]:
    from argosy.gitops.application_client.local_source_override import use_local_folder

    return use_local_folder(app, args.local, args.local_repo_root) if args.local else (app, None)


def _read_refs(app: Application, args: argparse.Namespace) -> tuple[str, ...]:
    from argosy.gitops.application_client.sync_operation_builder import assign_refs

    if args.revisions:
        return assign_refs(app, args.revisions, args.source_positions, args.source_names)
    return (args.revision,) if args.revision else ()


def _with_server_side_diff(app: Application) -> Application:
    from dataclasses import replace

    from argosy.annotations import COMPARE_OPTIONS

    compare_options = ",".join(filter(None, (app.annotations.get(COMPARE_OPTIONS, ""), "ServerSideDiff=true")))
    return replace(app, annotations={**app.annotations, COMPARE_OPTIONS: compare_options})


# -- manifests -----------------------------------------------------------------------------------------------------


def run_manifests(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.app_state_reader import open_reader
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
    from argosy.gitops.application_client.resource_actions_and_logs import ObjectSelector, load_selected_objects

    if args.source == "live":
        return await load_selected_objects(reader, app, ObjectSelector())
    load = reader.render_desired_state if args.local else reader.load_compared_state
    return list((await load(app, _read_refs(app, args))).manifests)


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
    from argosy.gitops.application_client.resource_actions_and_logs import ObjectSelector

    return ObjectSelector(args.group, args.kind, args.namespace, args.resource_name)


def run_actions_list(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.cli.tables import format_aligned_columns
        from argosy.gitops.application_client.app_state_reader import open_reader
        from argosy.gitops.application_client.resource_actions_and_logs import list_offered_actions

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
        from argosy.gitops.application_client.app_state_reader import open_reader
        from argosy.gitops.application_client.resource_actions_and_logs import run_action_on_selected

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
