"""`argosy explain application/NAME`: explain the state of an Application, from conditions to fields."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from argosy.cli.cluster_flags import read_target_options
from argosy.cli.error_messages import report_error
from argosy.cli.subcommand_flags_and_runner import print_document, print_message
from argosy.cli.tables import TerminalOutput, drop_control_characters
from argosy.errors import ArgosyError, UserError
from argosy.kube.well_known_kinds import CLI_API_VERSION

if TYPE_CHECKING:
    from argosy.features.doctor.examination_summary import DoctorReport

APPLICATION_KIND_NAMES: Final = (
    "app",
    "apps",
    "application",
    "applications",
    "application.argoproj.io",
    "applications.argoproj.io",
)
ANALYSIS_TIMEOUT_SECONDS: Final = 30.0  # for comparison and proof
MAX_FIELDS: Final = 20  # fields shown


def is_application(kind: str) -> bool:
    return kind.lower() in APPLICATION_KIND_NAMES


def explain_bare_name(args: argparse.Namespace, name: str) -> int:
    """argo: A name without kind is that of an Application."""
    return explain_application(args, name, hint="an object is written KIND/NAME, such as deploy/web")


def explain_application(args: argparse.Namespace, name: str, hint: str = "") -> int:
    from argosy.gitops.application_client.application_service import ApplicationNotFound

    try:
        report = asyncio.run(_build_report(args, name))
    except ApplicationNotFound as error:
        problem, _, advice = str(error).partition("; ")
        message = f"{problem}; {hint}" if hint and not advice.startswith("did you mean") else str(error)
        return report_error(UserError(message), f"explain {args.what} failed")
    except ArgosyError as error:
        return report_error(error, f"explain {args.what} failed")
    if args.output != "text":
        print_document(_report_to_wire(report), args.output)
    else:
        print("\n".join(_render_report(report, TerminalOutput(sys.stdout))))
        for note in report.examination.view.notes:
            print_message(drop_control_characters(f"note: {note}"))
    return 0


async def _build_report(args: argparse.Namespace, name: str) -> DoctorReport:
    from argosy.cli.application_service_connection import open_service
    from argosy.features.doctor.examination_summary import DoctorReport
    from argosy.features.doctor.service import DoctorOptions, examine_installation
    from argosy.gitops.application_client.app_state_reader import open_reader

    async with open_service(read_target_options(args), args.namespace) as service, open_reader(service) as reader:
        app = await service.load_application(name)
        selection = DoctorOptions((f"{app.namespace}/{app.name}",), compares_all=True, seconds=ANALYSIS_TIMEOUT_SECONDS)
        return DoctorReport(await examine_installation(service, reader, selection))


def _report_to_wire(report: DoctorReport) -> dict[str, Any]:
    (app,) = report.examination.chosen
    fields = [
        {"object": field.key._asdict(), "path": field.pointer, "cause": field.cause.to_wire()}
        for field in app.differing_fields or ()
    ]
    conditions = [{"type": kind, "message": message} for kind, message in app.conditions]
    full_report = report.to_wire(has_checklist=False)
    kept = {name: full_report[name] for name in ("findings", "unexplained", "gates", "proposals", "proofs", "notes")}
    return {
        "apiVersion": CLI_API_VERSION,
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


def _render_report(report: DoctorReport, screen: TerminalOutput) -> Iterator[str]:
    (app,) = report.examination.chosen
    yield (
        f"Application/{app.name} -n {app.app.namespace}: {screen.format_status(app.sync)}, "
        f"{screen.format_status(app.health)}"
    )
    for kind, message in app.conditions:
        yield f"  says     {kind}: {drop_control_characters(message)}"
    for wait in report.examination.waits:
        yield f"  waits    {drop_control_characters(wait.text)}"
    yield from _render_differing_fields(report)
    for line in app.blockers:
        yield f"  health   {drop_control_characters(line)}"
    for report_line in report.lines:
        if report_line.finding:
            yield f"  why      {report_line.finding.rule.id}: {drop_control_characters(report_line.cause)}"
            yield f"  fix      {drop_control_characters(report_line.fix)}"
        elif report_line.state != "Syncing":
            yield f"  why      {drop_control_characters(report_line.cause)}"
    yield from _render_proposals(report)
    if not report.lines and not app.conditions:
        yield "no rule found a problem"


def _render_differing_fields(report: DoctorReport) -> Iterator[str]:
    (app,) = report.examination.chosen
    differing_fields = app.differing_fields or ()
    for differing_field in differing_fields[:MAX_FIELDS]:
        subject = f"{differing_field.key.kind}/{differing_field.key.name}"
        path = differing_field.display_path or "(whole object)"
        yield f"  differs  {subject} {path}  {drop_control_characters(differing_field.cause.labeled_text)}"
    if len(differing_fields) > MAX_FIELDS:
        yield f"           … and {len(differing_fields) - MAX_FIELDS} more: argosy app diff {app.name}"


def _render_proposals(report: DoctorReport) -> Iterator[str]:
    from argosy.gitops.analysis.alignment.git_change_proposal_types import DECISION_TAG_LEGEND

    has_tags = False
    for treatment in report.examination.treatments.values():
        for proposal in treatment.proposals:
            if proposal.kind.changes_git:
                has_tags = True
                yield f"  proposal {drop_control_characters(proposal.text)} {proposal.decision_tag}"
        if treatment.done:
            proof = treatment.proof
            yield f"  proof    {proof.before.render} → {proof.synced.render} after a sync (simulated, nothing applied)"
    if has_tags:
        yield f"  {DECISION_TAG_LEGEND}"
