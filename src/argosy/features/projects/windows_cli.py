"""`argosy proj windows …`: list and change the sync windows of a project."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from argosy.cli.verbs import at_desk, form, print_data, talk
from argosy.features.projects.cli_flags import PROJECT, Commands, changed, verb

if TYPE_CHECKING:
    from argosy.gitops.application_client.client import Desk

HEADINGS = (
    "ID", "STATUS", "KIND", "SCHEDULE", "DURATION", "APPLICATIONS", "NAMESPACES", "CLUSTERS", "MANUALSYNC",
    "SYNCOVERRUN", "TIMEZONE", "USEANDOPERATOR",
)  # fmt: skip
NUMBER = ("ID", "id of the window in `windows list`")
FIELDS = (
    ("kind", "kind"), ("schedule", "schedule"), ("duration", "duration"), ("applications", "applications"),
    ("namespaces", "namespaces"), ("clusters", "clusters"), ("manual_sync", "manualSync"),
    ("sync_overrun", "syncOverrun"), ("time_zone", "timeZone"), ("use_and_operator", "andOperator"),
    ("description", "description"),
)  # fmt: skip
SWITCHED = (("manual-sync", "manualSync", "manual syncs"), ("sync-overrun", "syncOverrun", "running syncs to finish"))


def add_windows(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = parts.add_parser("windows", help="list and change sync windows")
    kinds = parser.add_subparsers(dest="what", metavar="COMMAND", required=True, parser_class=type(parser))
    verb(
        kinds, "list", "list the sync windows of a project", run_list, forms=("wide", "json", "yaml"),
        examples=("windows list ml", "windows list ml -o yaml"),
    )  # fmt: skip
    parser = verb(
        kinds, "add", "add a sync window to a project", run_add,
        examples=("windows add ml --kind allow --schedule '0 22 * * *' --duration 1h --applications 'models-*'",
                  "windows add ml --kind deny --schedule '0 8 * * 1-5' --duration 9h --clusters '*' --manual-sync"),
    )  # fmt: skip
    parser.add_argument("-k", "--kind", required=True, choices=("allow", "deny"), help="allow or deny")
    _add_fields(parser, is_needed=True)
    parser.add_argument(
        "--manual-sync", action="store_true", help="allow manual syncs while the window blocks automated ones"
    )
    parser.add_argument("--sync-overrun", action="store_true", help="let running syncs finish when the window ends")
    about = "applications, namespaces and clusters must all match (default: any of them)"
    parser.add_argument("--use-and-operator", action="store_true", help=about)
    parser = verb(
        kinds, "update", "change a sync window", run_update, named=(PROJECT, NUMBER),
        examples=("windows update ml 0 --duration 2h", "windows update ml 1 --applications 'models-*,web'"),
    )  # fmt: skip
    _add_fields(parser, is_needed=False)
    verb(
        kinds, "delete", "delete a sync window", run_delete, named=(PROJECT, NUMBER),
        examples=("windows delete ml 0", "windows delete ml 1"),
    )  # fmt: skip
    for word, field, about in SWITCHED:
        for lead, value in (("enable", True), ("disable", False)):
            name = f"{lead}-{word}"
            text = f"{'allow' if value else 'do not allow'} {about} in a window"
            run = partial(_switch, field, value)
            examples = (f"windows {name} ml 0", f"windows {name} ml 1")
            verb(kinds, name, text, run, named=(PROJECT, NUMBER), examples=examples)


def _add_fields(parser: argparse.ArgumentParser, *, is_needed: bool) -> None:
    add = parser.add_argument
    add(
        "--schedule",
        required=is_needed,
        default="",
        metavar="CRON",
        help="cron schedule of the start, such as '0 22 * * *'",
    )
    add("--duration", required=is_needed, default="", metavar="D", help="duration, such as 1h")
    for name in ("applications", "namespaces", "clusters"):
        add(f"--{name}", default="", metavar="NAMES", help=f"{name} it applies to, separated by commas; may contain *")
    add(
        "--time-zone",
        default="UTC" if is_needed else "",
        metavar="ZONE",
        help="time zone, such as Europe/Rome (default: UTC)",
    )
    add("--description", default="", metavar="TEXT", help="description of the window")


def run_list(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.cli.tables import aligned
        from argosy.gitops.application_client.projects import project_named

        project, how = await project_named(desk, chosen.project), form(chosen, "wide")
        if how in ("json", "yaml"):
            windows = (project.get("spec") or {}).get("syncWindows") or []
            print_data(windows if how == "json" else {"syncWindows": windows}, how)
        else:
            print("\n".join(aligned([HEADINGS, *_rows(project)])))
            for line in _faults(project):
                talk(line)
        return 0

    return at_desk(chosen, work)


def _rows(project: dict[str, Any]) -> list[tuple[str, ...]]:
    from argosy.gitops.application.project import SyncWindow, read_project
    from argosy.gitops.application_client.client import clock
    from argosy.gitops.policy.sync_windows import find_window_fault, is_active

    def status(window: SyncWindow) -> str:
        if find_window_fault(window, clock()):
            return "Malformed"
        return "Active" if is_active(window, clock()) else "Inactive"

    return [
        (
            str(number), status(each), each.kind, each.schedule, each.duration, _listed(each.applications),
            _listed(each.namespaces), _listed(each.clusters), _enabled(each.manual_sync), _enabled(each.sync_overrun),
            each.time_zone, _enabled(each.needs_all),
        )
        for number, each in enumerate(read_project(project).windows)
    ]  # fmt: skip


def _faults(project: dict[str, Any]) -> list[str]:
    """Messages for malformed windows."""
    from argosy.gitops.application.project import read_project
    from argosy.gitops.application_client.client import clock
    from argosy.gitops.policy.sync_windows import find_window_fault

    name = project["metadata"]["name"]
    command = f"argosy proj windows update {name}"
    faults = [find_window_fault(each, clock()) for each in read_project(project).windows]
    return [
        f"window {number} is malformed: {fault.partition('; ')[0]}; no Application that it matches can sync; "
        f"correct it: {command} {number} with --schedule, --duration or --time-zone"
        for number, fault in enumerate(faults)
        if fault
    ]


def _listed(found: tuple[str, ...]) -> str:
    return ",".join(found) or "-"


def _enabled(is_on: bool) -> str:
    return "Enabled" if is_on else "Disabled"


def run_add(chosen: argparse.Namespace) -> int:
    from argosy.errors import UserError
    from argosy.gitops.application_client.project_specs import window_fields, with_window

    window = window_fields(vars(chosen), FIELDS)
    if not {"applications", "namespaces", "clusters"} & window.keys():
        raise UserError("the window matches nothing; pass --applications, --namespaces or --clusters, such as '*'")
    return changed(chosen, lambda spec: with_window(spec, window))


def run_update(chosen: argparse.Namespace) -> int:
    from argosy.errors import UserError
    from argosy.gitops.application_client.project_specs import window_fields, with_windows_changed

    fields = window_fields(vars(chosen), FIELDS)
    if not fields:
        raise UserError("nothing to change; pass at least one option, such as --duration 2h")
    return changed(chosen, lambda spec: with_windows_changed(spec, _number(chosen), fields))


def run_delete(chosen: argparse.Namespace) -> int:
    from argosy.gitops.application_client.project_specs import with_windows_changed

    return changed(chosen, lambda spec: with_windows_changed(spec, _number(chosen), None))


def _switch(field: str, value: bool, chosen: argparse.Namespace) -> int:
    from argosy.gitops.application_client.project_specs import with_windows_changed

    return changed(chosen, lambda spec: with_windows_changed(spec, _number(chosen), {field: value}))


def _number(chosen: argparse.Namespace) -> int:
    return int(chosen.id) if str(chosen.id).isdecimal() else -1
