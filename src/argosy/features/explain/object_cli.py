"""`argosy explain KIND/NAME`: explain an object of an Application, or one of its fields."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from argosy.cli.error_messages import failed
from argosy.cli.tables import Screen, plain
from argosy.cli.target_flags import target_options
from argosy.cli.verbs import print_data
from argosy.errors import ArgosyError

if TYPE_CHECKING:
    from argosy.gitops.analysis.cause import Cause
    from argosy.gitops.application_client.object_explanation import Explanation, Told

LONGEST_VALUE = 200


def explain_object(chosen: argparse.Namespace) -> int:
    try:
        found = asyncio.run(_found(chosen))
    except ArgosyError as error:
        return failed(error, f"explain {chosen.what} failed")
    if chosen.output != "text":
        print_data({"apiVersion": "cli.argosy.dev/v1", "kind": "Explanation", **found.document()}, chosen.output)
    else:
        print("\n".join(_lines(found, Screen(sys.stdout), chosen.field)))
    return 0


async def _found(chosen: argparse.Namespace) -> Explanation:
    from argosy.cli.connection import open_desk
    from argosy.gitops.application_client.object_explanation import explain, find
    from argosy.gitops.application_client.reader import open_reader

    async with open_desk(target_options(chosen)) as desk:
        app, key = await find(desk, chosen.what, chosen.namespace, chosen.app)
        async with open_reader(desk) as reader:
            return await explain(reader, app, key, chosen.field)


def _lines(found: Explanation, screen: Screen, field: str) -> Iterator[str]:
    key = found.key
    where = f" -n {key.namespace}" if key.namespace else ""
    words = ", ".join(screen.mark(word) for word in (found.status, found.health) if word)
    yield f"{key.kind}/{key.name}{where} of {found.app}: {words or '-'}"
    if found.message:
        yield f"  says     {plain(found.message)}"
    if found.cause is not None:
        yield from _cause_lines(found.cause)
    for each in found.fields:
        yield from _field_lines(each)
    if found.others:
        yield "set by others, no drift:"
        for each in found.others:
            yield f"  {each.path}  {_value(each.live)}  by {each.story.manager}"
    if not field and found.cause is None and not found.fields:
        yield "no differences: the live object matches Git"


def _field_lines(told: Told) -> Iterator[str]:
    story, sides = told.story, [f"live {_value(told.live)}"] if told.has_live else ["live has none"]
    sides += [f"Git {_value(told.desired)}"] if told.has_desired else ["Git has none"]
    yield f"{told.path}  {', '.join(sides)}"
    yield from _cause_lines(story.cause, is_at_rest=not story.differs)
    if story.manager:
        yield f"  owner    {story.manager}{f' since {story.since}' if story.since else ''}"


def _cause_lines(cause: Cause, *, is_at_rest: bool = False) -> Iterator[str]:
    lead = "" if is_at_rest else f"{cause.kind.words}: "
    yield f"  why      {plain(lead + cause.text)}"
    if cause.place:
        yield f"  written  {cause.place}{f', {cause.commit}' if cause.commit else ''}"
    if cause.next:
        yield f"  next     {cause.next}"


def _value(value: Any) -> str:
    import orjson

    text = orjson.dumps(value).decode()
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
