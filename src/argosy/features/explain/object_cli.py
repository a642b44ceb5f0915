"""`argosy explain KIND/NAME`: explain an object of an Application, or one of its fields."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from argosy.cli.cluster_flags import read_target_options
from argosy.cli.error_messages import report_error
from argosy.cli.subcommand_flags_and_runner import print_document
from argosy.cli.tables import TerminalOutput, drop_control_characters
from argosy.errors import ArgosyError
from argosy.kube.well_known_kinds import CLI_API_VERSION

if TYPE_CHECKING:
    from argosy.gitops.analysis.difference_cause_kinds import Cause
    from argosy.gitops.application_client.object_explanation import ExplainedField, ObjectExplanation

MAX_VALUE_LENGTH = 200


def explain_object(args: argparse.Namespace) -> int:
    try:
        explanation = asyncio.run(_load_explanation(args))
    except ArgosyError as error:
        return report_error(error, f"explain {args.what} failed")
    if args.output != "text":
        print_document({"apiVersion": CLI_API_VERSION, "kind": "Explanation", **explanation.to_wire()}, args.output)
    else:
        print("\n".join(_render_explanation(explanation, TerminalOutput(sys.stdout), args.field)))
    return 0


async def _load_explanation(args: argparse.Namespace) -> ObjectExplanation:
    from argosy.cli.application_service_connection import open_service
    from argosy.gitops.application_client.app_state_reader import open_reader
    from argosy.gitops.application_client.object_explanation import explain_object, find_object

    async with open_service(read_target_options(args)) as service:
        app, key = await find_object(service, args.what, args.namespace, args.app)
        async with open_reader(service) as reader:
            return await explain_object(reader, app, key, args.field)


def _render_explanation(explanation: ObjectExplanation, screen: TerminalOutput, field: str) -> Iterator[str]:
    key = explanation.key
    namespace_flag = f" -n {key.namespace}" if key.namespace else ""
    status_text = ", ".join(screen.format_status(word) for word in (explanation.status, explanation.health) if word)
    yield f"{key.kind}/{key.name}{namespace_flag} of {explanation.app}: {status_text or '-'}"
    if explanation.message:
        yield f"  says     {drop_control_characters(explanation.message)}"
    if explanation.cause is not None:
        yield from _render_cause(explanation.cause)
    for field_explanation in explanation.fields:
        yield from _render_field(field_explanation)
    if explanation.foreign_fields:
        yield "set by others, no drift:"
        for field_explanation in explanation.foreign_fields:
            yield (
                f"  {field_explanation.path}  {_render_value(field_explanation.live)}  by "
                f"{field_explanation.report.manager}"
            )
    if not field and explanation.cause is None and not explanation.fields:
        yield "no differences: the live object matches Git"


def _render_field(field_explanation: ExplainedField) -> Iterator[str]:
    story, sides = (
        field_explanation.report,
        [f"live {_render_value(field_explanation.live)}"] if field_explanation.has_live else ["live has none"],
    )
    sides += [f"Git {_render_value(field_explanation.desired)}"] if field_explanation.has_desired else ["Git has none"]
    yield f"{field_explanation.path}  {', '.join(sides)}"
    yield from _render_cause(story.cause, is_in_sync=not story.differs)
    if story.manager:
        yield f"  owner    {story.manager}{f' since {story.since}' if story.since else ''}"


def _render_cause(cause: Cause, *, is_in_sync: bool = False) -> Iterator[str]:
    yield f"  why      {drop_control_characters(cause.text if is_in_sync else cause.labeled_text)}"
    if cause.location:
        yield f"  written  {cause.location}{f', {cause.commit_summary}' if cause.commit_summary else ''}"
    if cause.next:
        yield f"  next     {cause.next}"


def _render_value(value: Any) -> str:
    import orjson

    text = orjson.dumps(value).decode()
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 1]}…"
