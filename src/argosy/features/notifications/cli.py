"""`argosy notifications triggers|templates|test|history`: list and test notifications, and show their history."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.cluster_flags import add_target_flags, read_target_options
from argosy.cli.error_messages import print_failure
from argosy.cli.exit_codes import EXIT_ERROR, EXIT_NEGATIVE
from argosy.cli.subcommand_flags_and_runner import add_subcommand, print_document, print_message, run_with_client
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.features.notifications.service import NotificationService, TrialMessage, TriggerTrial

Commands = argparse._SubParsersAction  # the type argparse gives no public name
NotificationCommand = Callable[["NotificationService", argparse.Namespace], Awaitable[int]]

EXAMPLES = """\
Examples:
  argosy notifications triggers
  argosy notifications test on-drift dev-qwen
  argosy notifications test on-deployed dev-qwen --to slack:deliveries --send
  argosy notifications history

See also: docs/reference/notifications.md
"""


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "notifications",
        help="list and test notifications, and show their history",
        description="Notifications about Applications and notebooks, as configured in argocd-notifications-cm.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="triggers|templates|test|history", required=True)
    _add_command(
        parts, "triggers", "list triggers and their templates", _run_triggers, ["triggers", "triggers -o json"]
    )
    examples = ["templates", "templates app-drift"]
    templates = _add_command(parts, "templates", "list templates, or show one", _run_templates, examples)
    templates.add_argument("name", nargs="?", default="", metavar="NAME", help="the template to show")
    examples = ["test on-drift dev-qwen", "test on-deployed dev-qwen --to chat: --send"]
    test_parser = _add_command(
        parts, "test", "evaluate a trigger for an object, and show messages and recipients", _run_test, examples
    )
    test_parser.add_argument("trigger", metavar="TRIGGER", help="the trigger to test")
    help_text = "the Application as NAME or NAMESPACE/NAME; a NotebookValidationJob if the trigger is about jobs"
    test_parser.add_argument("name", metavar="NAME", help=help_text)
    help_text = "the recipient; repeatable (default: the subscribers)"
    test_parser.add_argument("--to", action="append", default=[], metavar="SERVICE:RECIPIENT", help=help_text)
    test_parser.add_argument(
        "--send", action="store_true", help="send the message to --to, even if the condition is false"
    )
    examples = ["history", "history dev-qwen"]
    history_parser = _add_command(
        parts, "history", "list messages that were sent, delayed, failed or are unclear", _run_history, examples
    )
    history_parser.add_argument("name", nargs="?", default="", metavar="NAME", help="only messages about this object")
    history_parser.add_argument(
        "-n", "--namespace", default="", metavar="NS", help="only this namespace (default: all namespaces)"
    )


def _add_command(
    parts: Commands[argparse.ArgumentParser],
    name: str,
    help_text: str,
    command: NotificationCommand,
    examples: Sequence[str],
) -> argparse.ArgumentParser:
    parser = add_subcommand(parts, name, help_text, [f"notifications {example}" for example in examples])
    if name != "history":
        help_text = "file with settings to use instead of the cluster's: ConfigMap and Secret; repeatable"
        parser.add_argument("-f", "--filename", type=Path, action="append", default=[], metavar="FILE", help=help_text)
    formats = ["text", "json", "yaml"]
    parser.add_argument("-o", "--output", choices=formats, default="text", help="text, json or yaml")
    add_target_flags(parser)
    parser.set_defaults(run=functools.partial(_run_command, command))
    return parser


def _run_command(command: NotificationCommand, args: argparse.Namespace) -> int:
    from argosy.features.notifications.service import open_notifications

    async def run_with_warnings(service: NotificationService, args: argparse.Namespace) -> int:
        for problem in service.settings.problems if args.part != "history" else ():
            print_message(f"argosy: {service.settings.mask_secrets(problem)}")
        return await command(service, args)

    return run_with_client(
        open_notifications(read_target_options(args), getattr(args, "filename", [])), run_with_warnings, args
    )


def _print_items(items: list[dict[str, Any]], headings: Sequence[str], args: argparse.Namespace) -> None:
    from argosy.cli.tables import format_table

    if args.output != "text":
        print_document({"items": items}, args.output)
    elif items:
        rows = [
            [", ".join(value) if isinstance(value, list) else str(value) for value in item.values()] for item in items
        ]
        print("\n".join(format_table(headings, rows)))


async def _run_triggers(service: NotificationService, args: argparse.Namespace) -> int:
    from argosy.features.notifications.service import uses_notebook_jobs

    items: list[dict[str, Any]] = [
        {
            "name": name,
            "about": "NotebookValidationJob" if uses_notebook_jobs(conditions) else "Application",
            "sends": [template for condition in conditions for template in condition.send],
            "description": " ".join(condition.description for condition in conditions),
        }
        for name, conditions in sorted(service.settings.triggers.items())
    ]
    _print_items(items, ("NAME", "ABOUT", "SENDS", "DESCRIPTION"), args)
    return 0


async def _run_templates(service: NotificationService, args: argparse.Namespace) -> int:
    if args.name:
        if args.name not in service.settings.templates:
            template_names = ", ".join(sorted(service.settings.templates))
            raise UserError(f"template {args.name} not found; choose one of: {template_names}")
        print_document(dict(service.settings.templates[args.name]), "json" if args.output == "json" else "yaml")
        return 0
    items: list[dict[str, Any]] = [
        {"name": name, "says": sorted(map(str, template))}
        for name, template in sorted(service.settings.templates.items())
    ]
    _print_items(items, ("NAME", "SAYS"), args)
    return 0


async def _run_test(service: NotificationService, args: argparse.Namespace) -> int:
    if args.send and not args.to:
        raise UserError("--send needs a recipient; add --to SERVICE:RECIPIENT")
    manifest = await service.find_object(args.trigger, args.name)
    trial = await service.test_trigger(args.trigger, manifest, args.to, should_send=args.send)
    if args.output != "text":
        print_document(_trial_to_wire(trial), args.output)
    else:
        print("\n".join(_render_trial(trial)))
        if not any(item.destination.service for item in trial.messages):
            advice = f"annotate {args.name} with notifications.argoproj.io/subscribe.{args.trigger}.SERVICE"
            print_message(f"argosy: {args.trigger} has no subscribers, so nothing is sent; {advice}, or use --to")
    faults = [item.fault for item in trial.messages if item.fault]
    if faults:
        print_failure(f"cannot send {args.trigger}", faults, "fix the errors, then run the command again")
        return EXIT_ERROR
    return 0 if args.send or any(item.holds for item in trial.condition_results) else EXIT_NEGATIVE


def _trial_to_wire(trial: TriggerTrial) -> dict[str, Any]:
    return {
        "trigger": trial.trigger,
        "conditions": [
            {"when": item.condition.when, "holds": item.holds, "oncePer": item.once_per, "fault": item.fault}
            for item in trial.condition_results
        ],
        "messages": [
            {
                "to": _render_destination(item),
                "sent": item.is_sent,
                "fault": item.fault,
                "notification": dict(item.notification),
            }
            for item in trial.messages
        ],
    }


def _render_trial(trial: TriggerTrial) -> list[str]:
    lines = []
    for result in trial.condition_results:
        lines.append(f"{'holds' if result.holds else 'does not hold'}: {result.condition.when}")
        lines += [f"once per: {result.once_per}"] if result.once_per else []
        lines += [f"why: {result.fault}"] if result.fault else []
    for message in trial.messages:
        lines += ["", *_render_message(message)]
    return lines


def _render_destination(message: TrialMessage) -> str:
    """Render the destination; empty if there is no subscriber."""
    service, recipient = message.destination
    return f"{service}:{recipient}" if service else ""


def _render_message(message: TrialMessage) -> list[str]:
    destination_text = _render_destination(message) or "nobody"
    if message.fault:
        return [f"{destination_text}: {message.fault}"]
    notification = message.notification
    text = str(notification.get("message") or "").strip()
    parts = [name for name in notification if name != "message"]
    heading = (
        f"{'sent to' if message.is_sent else 'to'} "
        f"{destination_text}{f' (with {chr(44).join(parts)})' if parts else ''}:"
    )
    return [heading, *(f"  {line}" for line in text.splitlines())]


async def _run_history(service: NotificationService, args: argparse.Namespace) -> int:
    history_rows = await service.list_history(args.name, args.namespace)
    items = [
        {
            "at": row.at,
            "what": row.reason.removeprefix("Notification"),
            "about": f"{row.kind} {row.namespace}/{row.name}",
            "trigger": row.trigger,
            "to": row.destination,
            "message": row.message,
        }
        for row in history_rows
    ]
    _print_items(items, ("AT", "WHAT", "ABOUT", "TRIGGER", "TO", "MESSAGE"), args)
    if not items and args.output == "text":
        print_message(
            "no notifications found; docs/reference/notifications.md explains how to subscribe an Application"
        )
    return 0
