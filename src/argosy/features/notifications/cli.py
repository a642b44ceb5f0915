"""`argosy notifications triggers|templates|test|history`: list and test notifications, and show their history."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.error_messages import say
from argosy.cli.exit_codes import CANNOT, NO
from argosy.cli.target_flags import add_target_flags, target_options
from argosy.cli.verbs import described, print_data, talk, work_at
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.features.notifications.service import Message, NotificationDesk, Trial

Commands = argparse._SubParsersAction  # the type argparse gives no public name
Work = Callable[["NotificationDesk", argparse.Namespace], Awaitable[int]]

EXAMPLES = """\
Examples:
  argosy notifications triggers
  argosy notifications test on-drift dev-qwen
  argosy notifications test on-deployed dev-qwen --to slack:deliveries --send
  argosy notifications history

See also: docs/reference/notifications.md
"""


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "notifications",
        help="list and test notifications, and show their history",
        description="Notifications about Applications and notebooks, as configured in argocd-notifications-cm.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="triggers|templates|test|history", required=True)
    _add(parts, "triggers", "list triggers and their templates", _triggers, ["triggers", "triggers -o json"])
    shown = ["templates", "templates app-drift"]
    templates = _add(parts, "templates", "list templates, or show one", _templates, shown)
    templates.add_argument("name", nargs="?", default="", metavar="NAME", help="the template to show")
    shown = ["test on-drift dev-qwen", "test on-deployed dev-qwen --to chat: --send"]
    testing = _add(parts, "test", "evaluate a trigger for an object, and show messages and recipients", _test, shown)
    testing.add_argument("trigger", metavar="TRIGGER", help="the trigger to test")
    about = "the Application as NAME or NAMESPACE/NAME; a NotebookValidationJob if the trigger is about jobs"
    testing.add_argument("name", metavar="NAME", help=about)
    about = "the recipient; repeatable (default: the subscribers)"
    testing.add_argument("--to", action="append", default=[], metavar="SERVICE:RECIPIENT", help=about)
    testing.add_argument("--send", action="store_true", help="send the message to --to, even if the condition is false")
    shown = ["history", "history dev-qwen"]
    past = _add(parts, "history", "list messages that were sent, delayed, failed or are unclear", _history, shown)
    past.add_argument("name", nargs="?", default="", metavar="NAME", help="only messages about this object")
    past.add_argument(
        "-n", "--namespace", default="", metavar="NS", help="only this namespace (default: all namespaces)"
    )


def _add(
    parts: Commands[argparse.ArgumentParser], name: str, about: str, work: Work, shown: Sequence[str]
) -> argparse.ArgumentParser:
    parser = described(parts, name, about, [f"notifications {each}" for each in shown])
    if name != "history":
        about = "file with settings to use instead of the cluster's: ConfigMap and Secret; repeatable"
        parser.add_argument("-f", "--filename", type=Path, action="append", default=[], metavar="FILE", help=about)
    forms = ["text", "json", "yaml"]
    parser.add_argument("-o", "--output", choices=forms, default="text", help="text, json or yaml")
    add_target_flags(parser)
    parser.set_defaults(run=functools.partial(_run, work))
    return parser


def _run(work: Work, chosen: argparse.Namespace) -> int:
    from argosy.features.notifications.service import open_notifications

    async def warned(desk: NotificationDesk, chosen: argparse.Namespace) -> int:
        for each in desk.settings.problems if chosen.part != "history" else ():
            talk(f"argosy: {desk.settings.masked(each)}")
        return await work(desk, chosen)

    return work_at(open_notifications(target_options(chosen), getattr(chosen, "filename", [])), warned, chosen)


def _print(items: list[dict[str, Any]], headings: Sequence[str], chosen: argparse.Namespace) -> None:
    from argosy.cli.tables import table

    if chosen.output != "text":
        print_data({"items": items}, chosen.output)
    elif items:
        rows = [[", ".join(each) if isinstance(each, list) else str(each) for each in item.values()] for item in items]
        print("\n".join(table(headings, rows)))


async def _triggers(desk: NotificationDesk, chosen: argparse.Namespace) -> int:
    from argosy.features.notifications.service import asks_of_jobs

    items: list[dict[str, Any]] = [
        {
            "name": name,
            "about": "NotebookValidationJob" if asks_of_jobs(conditions) else "Application",
            "sends": [template for each in conditions for template in each.send],
            "description": " ".join(each.description for each in conditions),
        }
        for name, conditions in sorted(desk.settings.triggers.items())
    ]
    _print(items, ("NAME", "ABOUT", "SENDS", "DESCRIPTION"), chosen)
    return 0


async def _templates(desk: NotificationDesk, chosen: argparse.Namespace) -> int:
    if chosen.name:
        if chosen.name not in desk.settings.templates:
            known = ", ".join(sorted(desk.settings.templates))
            raise UserError(f"template {chosen.name} not found; choose one of: {known}")
        print_data(dict(desk.settings.templates[chosen.name]), "json" if chosen.output == "json" else "yaml")
        return 0
    items: list[dict[str, Any]] = [
        {"name": name, "says": sorted(map(str, template))} for name, template in sorted(desk.settings.templates.items())
    ]
    _print(items, ("NAME", "SAYS"), chosen)
    return 0


async def _test(desk: NotificationDesk, chosen: argparse.Namespace) -> int:
    if chosen.send and not chosen.to:
        raise UserError("--send needs a recipient; add --to SERVICE:RECIPIENT")
    manifest = await desk.find(chosen.trigger, chosen.name)
    trial = await desk.trial(chosen.trigger, manifest, chosen.to, sends=chosen.send)
    if chosen.output != "text":
        print_data(_document(trial), chosen.output)
    else:
        print("\n".join(_lines(trial)))
        if not any(each.destination.service for each in trial.messages):
            how = f"annotate {chosen.name} with notifications.argoproj.io/subscribe.{chosen.trigger}.SERVICE"
            talk(f"argosy: {chosen.trigger} has no subscribers, so nothing is sent; {how}, or use --to")
    faults = [each.fault for each in trial.messages if each.fault]
    if faults:
        say(f"cannot send {chosen.trigger}", faults, "fix the errors, then run the command again")
        return CANNOT
    return 0 if chosen.send or any(each.holds for each in trial.judged) else NO


def _document(trial: Trial) -> dict[str, Any]:
    return {
        "trigger": trial.trigger,
        "conditions": [
            {"when": each.condition.when, "holds": each.holds, "oncePer": each.once_per, "fault": each.fault}
            for each in trial.judged
        ],
        "messages": [
            {
                "to": _to(each),
                "sent": each.is_sent,
                "fault": each.fault,
                "notification": dict(each.notification),
            }
            for each in trial.messages
        ],
    }


def _lines(trial: Trial) -> list[str]:
    lines = []
    for each in trial.judged:
        lines.append(f"{'holds' if each.holds else 'does not hold'}: {each.condition.when}")
        lines += [f"once per: {each.once_per}"] if each.once_per else []
        lines += [f"why: {each.fault}"] if each.fault else []
    for message in trial.messages:
        lines += ["", *_message_lines(message)]
    return lines


def _to(message: Message) -> str:
    """Render the destination; empty if there is no subscriber."""
    service, recipient = message.destination
    return f"{service}:{recipient}" if service else ""


def _message_lines(message: Message) -> list[str]:
    to = _to(message) or "nobody"
    if message.fault:
        return [f"{to}: {message.fault}"]
    said = message.notification
    text = str(said.get("message") or "").strip()
    parts = [name for name in said if name != "message"]
    head = f"{'sent to' if message.is_sent else 'to'} {to}{f' (with {chr(44).join(parts)})' if parts else ''}:"
    return [head, *(f"  {line}" for line in text.splitlines())]


async def _history(desk: NotificationDesk, chosen: argparse.Namespace) -> int:
    found = await desk.history(chosen.name, chosen.namespace)
    items = [
        {
            "at": each.at,
            "what": each.reason.removeprefix("Notification"),
            "about": f"{each.kind} {each.namespace}/{each.name}",
            "trigger": each.trigger,
            "to": each.destination,
            "message": each.message,
        }
        for each in found
    ]
    _print(items, ("AT", "WHAT", "ABOUT", "TRIGGER", "TO", "MESSAGE"), chosen)
    if not items and chosen.output == "text":
        talk("no notifications found; docs/reference/notifications.md explains how to subscribe an Application")
    return 0
