"""`argosy explain application/NAME`: explain the state of an Application, from conditions to fields."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from argosy.cli.error_messages import failed
from argosy.cli.tables import Screen, plain
from argosy.cli.target_flags import target_options
from argosy.cli.verbs import print_data, talk
from argosy.errors import ArgosyError, UserError

if TYPE_CHECKING:
    from argosy.features.doctor.report import Report

KINDS: Final = ("app", "apps", "application", "applications", "application.argoproj.io", "applications.argoproj.io")
SECONDS: Final = 30.0  # for comparison and proof
MOST: Final = 20  # fields shown


def is_application(kind: str) -> bool:
    return kind.lower() in KINDS


def explain_named(chosen: argparse.Namespace, name: str) -> int:
    """argo: A name without kind is that of an Application."""
    return explain_application(chosen, name, hint="an object is written KIND/NAME, such as deploy/web")


def explain_application(chosen: argparse.Namespace, name: str, hint: str = "") -> int:
    from argosy.gitops.application_client.client import NoApplication

    try:
        report = asyncio.run(_report(chosen, name))
    except NoApplication as error:
        what, _, advice = str(error).partition("; ")
        told = f"{what}; {hint}" if hint and not advice.startswith("did you mean") else str(error)
        return failed(UserError(told), f"explain {chosen.what} failed")
    except ArgosyError as error:
        return failed(error, f"explain {chosen.what} failed")
    if chosen.output != "text":
        print_data(_document(report), chosen.output)
    else:
        print("\n".join(_lines(report, Screen(sys.stdout))))
        for note in report.found.view.notes:
            talk(plain(f"note: {note}"))
    return 0


async def _report(chosen: argparse.Namespace, name: str) -> Report:
    from argosy.cli.connection import open_desk
    from argosy.features.doctor.report import Report
    from argosy.features.doctor.service import Wanted, examine
    from argosy.gitops.application_client.reader import open_reader

    async with open_desk(target_options(chosen), chosen.namespace) as desk, open_reader(desk) as reader:
        app = await desk.find(name)
        wanted = Wanted((f"{app.namespace}/{app.name}",), is_whole=True, seconds=SECONDS)
        return Report(await examine(desk, reader, wanted))


def _document(report: Report) -> dict[str, Any]:
    (app,) = report.found.chosen
    fields = [
        {"object": each.key._asdict(), "path": each.pointer, "cause": each.cause.document()}
        for each in app.fields or ()
    ]
    conditions = [{"type": kind, "message": message} for kind, message in app.conditions]
    whole = report.document(has_checklist=False)
    kept = {name: whole[name] for name in ("findings", "unexplained", "gates", "proposals", "proofs", "notes")}
    return {
        "apiVersion": "cli.argosy.dev/v1",
        "kind": "ApplicationExplanation",
        "name": app.name,
        "namespace": app.app.namespace,
        "sync": app.sync,
        "health": app.health,
        "conditions": conditions,
        "fields": fields,
        "unwell": list(app.blockers),
        **kept,
    }


def _lines(report: Report, screen: Screen) -> Iterator[str]:
    (app,) = report.found.chosen
    yield f"Application/{app.name} -n {app.app.namespace}: {screen.mark(app.sync)}, {screen.mark(app.health)}"
    for kind, message in app.conditions:
        yield f"  says     {kind}: {plain(message)}"
    for wait in report.found.waits:
        yield f"  waits    {plain(wait.text)}"
    yield from _fields(report)
    for line in app.blockers:
        yield f"  unwell   {plain(line)}"
    for each in report.lines:
        if each.finding:
            yield f"  why      {each.finding.rule.id}: {plain(each.cause)}"
            yield f"  next     {plain(each.fix)}"
        elif each.state != "Syncing":
            yield f"  why      {plain(each.cause)}"
    yield from _proposals(report)
    if not report.lines and not app.conditions:
        yield "no rule found a problem"


def _fields(report: Report) -> Iterator[str]:
    (app,) = report.found.chosen
    found = app.fields or ()
    for each in found[:MOST]:
        cause = f"{each.cause.kind.words}: {each.cause.text}"
        yield f"  differs  {each.key.kind}/{each.key.name} {each.shown or '(whole object)'}  {plain(cause)}"
    if len(found) > MOST:
        yield f"           … and {len(found) - MOST} more: argosy app diff {app.name}"


def _proposals(report: Report) -> Iterator[str]:
    for treatment in report.found.treatments.values():
        for each in treatment.proposals:
            if each.kind.changes:
                yield f"  helps    {plain(each.text)} {each.mark}"
        if treatment.done:
            proof = treatment.proof
            yield f"  proof    {proof.before.words} → {proof.synced.words} after a sync (simulated, nothing applied)"
