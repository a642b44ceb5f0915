"""`argosy proj windows …`: list and change the sync windows of a project."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from argosy.cli.subcommand_flags_and_runner import choose_output, print_document, print_message, run_with_service
from argosy.features.projects.proj_subcommand_builder import PROJECT_ARGUMENT, Commands, add_command, update_spec

if TYPE_CHECKING:
    from argosy.gitops.application_client.application_service import ApplicationService

HEADINGS = (
    "ID", "STATUS", "KIND", "SCHEDULE", "DURATION", "APPLICATIONS", "NAMESPACES", "CLUSTERS", "MANUALSYNC",
    "SYNCOVERRUN", "TIMEZONE", "USEANDOPERATOR",
)  # fmt: skip
ID_ARGUMENT = ("ID", "id of the window in `windows list`")
WINDOW_FIELDS = (
    ("kind", "kind"), ("schedule", "schedule"), ("duration", "duration"), ("applications", "applications"),
    ("namespaces", "namespaces"), ("clusters", "clusters"), ("manual_sync", "manualSync"),
    ("sync_overrun", "syncOverrun"), ("time_zone", "timeZone"), ("use_and_operator", "andOperator"),
    ("description", "description"),
)  # fmt: skip
SWITCH_COMMANDS = (
    ("manual-sync", "manualSync", "manual syncs"),
    ("sync-overrun", "syncOverrun", "running syncs to finish"),
)


def add_window_commands(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = parts.add_parser("windows", help="list and change sync windows")
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True, parser_class=type(parser))
    add_command(
        commands, "list", "list the sync windows of a project", run_list, output_formats=("wide", "json", "yaml"),
        examples=("windows list ml", "windows list ml -o yaml"),
    )  # fmt: skip
    parser = add_command(
        commands, "add", "add a sync window to a project", run_add,
        examples=("windows add ml --kind allow --schedule '0 22 * * *' --duration 1h --applications 'models-*'",
                  "windows add ml --kind deny --schedule '0 8 * * 1-5' --duration 9h --clusters '*' --manual-sync"),
    )  # fmt: skip
    parser.add_argument("-k", "--kind", required=True, choices=("allow", "deny"), help="allow or deny")
    _add_window_flags(parser, is_required=True)
    parser.add_argument(
        "--manual-sync", action="store_true", help="allow manual syncs while the window blocks automated ones"
    )
    parser.add_argument("--sync-overrun", action="store_true", help="let running syncs finish when the window ends")
    help_text = "applications, namespaces and clusters must all match (default: any of them)"
    parser.add_argument("--use-and-operator", action="store_true", help=help_text)
    parser = add_command(
        commands, "update", "change a sync window", run_update, arguments=(PROJECT_ARGUMENT, ID_ARGUMENT),
        examples=("windows update ml 0 --duration 2h", "windows update ml 1 --applications 'models-*,web'"),
    )  # fmt: skip
    _add_window_flags(parser, is_required=False)
    add_command(
        commands, "delete", "delete a sync window", run_delete, arguments=(PROJECT_ARGUMENT, ID_ARGUMENT),
        examples=("windows delete ml 0", "windows delete ml 1"),
    )  # fmt: skip
    for word, field, help_text in SWITCH_COMMANDS:
        for prefix, value in (("enable", True), ("disable", False)):
            name = f"{prefix}-{word}"
            text = f"{'allow' if value else 'do not allow'} {help_text} in a window"
            run = partial(_set_field, field, value)
            examples = (f"windows {name} ml 0", f"windows {name} ml 1")
            add_command(commands, name, text, run, arguments=(PROJECT_ARGUMENT, ID_ARGUMENT), examples=examples)


def _add_window_flags(parser: argparse.ArgumentParser, *, is_required: bool) -> None:
    add = parser.add_argument
    add(
        "--schedule",
        required=is_required,
        default="",
        metavar="CRON",
        help="cron schedule of the start, such as '0 22 * * *'",
    )
    add("--duration", required=is_required, default="", metavar="D", help="duration, such as 1h")
    for name in ("applications", "namespaces", "clusters"):
        add(f"--{name}", default="", metavar="NAMES", help=f"{name} it applies to, separated by commas; may contain *")
    add(
        "--time-zone",
        default="UTC" if is_required else "",
        metavar="ZONE",
        help="time zone, such as Europe/Rome (default: UTC)",
    )
    add("--description", default="", metavar="TEXT", help="description of the window")


def run_list(args: argparse.Namespace) -> int:
    async def work(app_service: ApplicationService) -> int:
        from argosy.cli.tables import format_aligned_columns
        from argosy.gitops.application_client.appproject_operations import load_project

        project, output = await load_project(app_service, args.project), choose_output(args, "wide")
        if output in ("json", "yaml"):
            windows = (project.get("spec") or {}).get("syncWindows") or []
            print_document(windows if output == "json" else {"syncWindows": windows}, output)
        else:
            print("\n".join(format_aligned_columns([HEADINGS, *_build_rows(project)])))
            for line in _list_faults(project):
                print_message(line)
        return 0

    return run_with_service(args, work)


def _build_rows(project: dict[str, Any]) -> list[tuple[str, ...]]:
    from argosy.gitops.application.project_spec import SyncWindow, read_project
    from argosy.gitops.application_client.application_service import utc_now
    from argosy.gitops.policy.sync_windows import find_window_fault, is_active

    def status(sync_window: SyncWindow) -> str:
        if find_window_fault(sync_window, utc_now()):
            return "Malformed"
        return "Active" if is_active(sync_window, utc_now()) else "Inactive"

    return [
        (
            str(window_id),
            status(window),
            window.kind,
            window.schedule,
            window.duration,
            _join_names(window.applications),
            _join_names(window.namespaces),
            _join_names(window.clusters),
            _format_enabled(window.manual_sync),
            _format_enabled(window.sync_overrun),
            window.time_zone,
            _format_enabled(window.needs_all),
        )
        for window_id, window in enumerate(read_project(project).windows)
    ]


def _list_faults(project: dict[str, Any]) -> list[str]:
    """Messages for malformed windows."""
    from argosy.gitops.application.project_spec import read_project
    from argosy.gitops.application_client.application_service import utc_now
    from argosy.gitops.policy.sync_windows import find_window_fault

    name = project["metadata"]["name"]
    command = f"argosy proj windows update {name}"
    faults = [find_window_fault(window, utc_now()) for window in read_project(project).windows]
    return [
        f"window {window_id} is malformed: {fault.partition('; ')[0]}; no Application that it matches can sync; "
        f"correct it: {command} {window_id} with --schedule, --duration or --time-zone"
        for window_id, fault in enumerate(faults)
        if fault
    ]


def _join_names(names: tuple[str, ...]) -> str:
    return ",".join(names) or "-"


def _format_enabled(is_on: bool) -> str:
    return "Enabled" if is_on else "Disabled"


def run_add(args: argparse.Namespace) -> int:
    from argosy.errors import UserError
    from argosy.gitops.application_client.project_spec_edits import add_sync_window, sync_window_from_flags

    window = sync_window_from_flags(vars(args), WINDOW_FIELDS)
    if not {"applications", "namespaces", "clusters"} & window.keys():
        raise UserError("the window matches nothing; pass --applications, --namespaces or --clusters, such as '*'")
    return update_spec(args, lambda spec: add_sync_window(spec, window))


def run_update(args: argparse.Namespace) -> int:
    from argosy.errors import UserError
    from argosy.gitops.application_client.project_spec_edits import change_sync_window, sync_window_from_flags

    fields = sync_window_from_flags(vars(args), WINDOW_FIELDS)
    if not fields:
        raise UserError("nothing to change; pass at least one option, such as --duration 2h")
    return update_spec(args, lambda spec: change_sync_window(spec, _read_window_id(args), fields))


def run_delete(args: argparse.Namespace) -> int:
    from argosy.gitops.application_client.project_spec_edits import change_sync_window

    return update_spec(args, lambda spec: change_sync_window(spec, _read_window_id(args), None))


def _set_field(field: str, value: bool, args: argparse.Namespace) -> int:
    from argosy.gitops.application_client.project_spec_edits import change_sync_window

    return update_spec(args, lambda spec: change_sync_window(spec, _read_window_id(args), {field: value}))


def _read_window_id(args: argparse.Namespace) -> int:
    return int(args.id) if str(args.id).isdecimal() else -1
