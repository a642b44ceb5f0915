"""`argosy app wait`: wait until Applications reach a status, or until they cannot reach it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from argosy.cli.error_messages import say
from argosy.cli.exit_codes import NO, TIMED_OUT
from argosy.cli.verbs import Commands, at_desk, form, is_compat, talk, verb
from argosy.errors import UserError
from argosy.features.applications.sync.cli import FORMS, add_timeout, print_end, verdict

if TYPE_CHECKING:
    from argosy.gitops.application import Application
    from argosy.gitops.application_client.client import Desk
    from argosy.gitops.application_client.watch import Ended, Waited


def add_to(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = verb(
        parts, "wait", "wait until Applications reach a status", run_wait, named="any", forms=FORMS,
        examples=("wait models", "wait models --health --timeout 300", "wait -l env=dev --sync"),
    )  # fmt: skip
    _add_wait_flags(parser)


def _add_wait_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-l", "--selector", default="", metavar="LABELS", help="all Applications with these labels")
    add("--sync", action="store_true", help="wait until it is Synced")
    add("--health", action="store_true", help="wait until it is Healthy")
    add("--operation", action="store_true", help="wait until its operation has finished")
    add("--suspended", action="store_true", help="wait until it is Suspended")
    add("--degraded", action="store_true", help="wait until it is Degraded")
    add("--delete", action="store_true", help="wait until it is deleted")
    add("--hydrated", action="store_true", help="for compatibility: argosy does not hydrate, so this is always true")
    about = "wait only for this object: GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME, as for sync; repeatable"
    add("--resource", action="append", default=[], metavar="RESOURCE", help=about)
    about = "keep waiting even if the status cannot be reached"
    add("--no-fail-fast", action="store_true", help=about)
    add_timeout(parser)


def run_wait(chosen: argparse.Namespace) -> int:
    if not chosen.names and not chosen.selector:
        raise UserError("no Application selected; argosy app wait NAME, or select several with -l LABELS")

    async def work(desk: Desk) -> int:
        import asyncio

        from argosy.gitops.application_client.client import NoApplication

        try:
            apps = await desk.chosen(chosen.names, chosen.selector)
        except NoApplication:
            if chosen.delete:
                return 0
            raise
        codes = await asyncio.gather(*(_wait(desk, app, chosen) for app in apps))
        return max(codes, default=0)

    return at_desk(chosen, work)


def _waited(chosen: argparse.Namespace) -> Waited:
    from argosy.gitops.application_client.watch import Waited

    words = {"Healthy": chosen.health, "Suspended": chosen.suspended, "Degraded": chosen.degraded}
    health = frozenset(word for word, is_wanted in words.items() if is_wanted)
    if not (chosen.sync or chosen.operation or health or chosen.delete or chosen.hydrated):
        return Waited(True, True, frozenset({"Healthy"}), resources=tuple(chosen.resource), gives_up=_gives_up(chosen))
    return Waited(
        chosen.sync, chosen.operation, health, chosen.delete, tuple(chosen.resource), gives_up=_gives_up(chosen)
    )


def _gives_up(chosen: argparse.Namespace) -> bool:
    return not chosen.no_fail_fast and not is_compat(chosen)


async def _wait(desk: Desk, app: Application, chosen: argparse.Namespace) -> int:
    from argosy.features.applications.sync.progress import Lines, Sentences
    from argosy.gitops.application_client.watch import Ending, follow

    waited, how = _waited(chosen), form(chosen)
    shown = Lines(sys.stdout) if how == "wide" else Sentences(waited, talk)
    ended = await follow(desk, app, waited, chosen.timeout, shown.see, talk)
    if ended.app is not None and (ended.ending is Ending.REACHED or is_compat(chosen)):
        await print_end(desk, ended.app, chosen, shows_operation=waited.operation)
    if ended.ending is Ending.REACHED:
        if code := _asked_for(ended, waited):
            return code
        if how == "table":
            talk(f"{app.name}: {'was deleted' if ended.app is None else 'reached the requested status'}")
        return 0
    await _explain(desk, ended, waited, chosen, app.name)
    return TIMED_OUT if ended.ending is Ending.TOO_LATE else NO


def _asked_for(ended: Ended, waited: Waited) -> int:
    """Report a failed operation if the command waits only for the operation."""
    state = ended.app.state if ended.app is not None else None
    alone = waited.operation and waited.gives_up and not waited.sync and not waited.health
    if not alone or ended.app is None or state is None or state.progress not in ("Failed", "Error"):
        return 0
    return verdict(ended.app, "operation")


async def _explain(desk: Desk, ended: Ended, waited: Waited, chosen: argparse.Namespace, name: str) -> None:
    """Report the unmet conditions and their causes, down to the objects."""
    from argosy.gitops.application_client.unmet_conditions import causes
    from argosy.gitops.application_client.watch import Ending

    if ended.app is None:
        say(f"{name} was deleted", "the Application does not exist any more", "argosy app list")
        return
    lead = f"timed out after {chosen.timeout:g} s" if ended.ending is Ending.TOO_LATE else "waiting cannot help"
    missing = "; ".join(waited.missing(ended.app)) or "the requested status was not reached"
    why = dict.fromkeys([ended.why, *await causes(desk, ended.app)])
    say(f"{name}: {lead}: {missing}", list(why), _next(ended, name))


def _next(ended: Ended, name: str) -> str:
    from argosy.gitops.application_client import summary
    from argosy.gitops.status.hold import read_hold

    app = ended.app
    assert app is not None
    if summary.is_busy(app):
        return f"argosy app get {name} --show-operation, or end it: argosy app terminate-op {name}"
    if summary.sync_word(app) == "OutOfSync":
        held = read_hold(app.annotations) is not None
        then = f"argosy app release {name}" if held else f"argosy app sync {name}"
        return f"argosy app diff {name}, then: {then}"
    return (
        f"argosy app tree {name}, or: argosy app logs {name}"
        if summary.health_word(app) != "Healthy"
        else (f"argosy app get {name}")
    )
