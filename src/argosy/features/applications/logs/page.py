"""`/apps/{ns}/{name}/logs`: show, stream and download logs of the Pods of an Application.

In: a request with the permission to read logs. Out: a page, a stream, a file. Never: more than MAX_LINES at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import orjson

from argosy.errors import ArgosyError, UserError
from argosy.features.applications.logs.lines import LogLine, labels, not_started, ordered, started
from argosy.features.applications.page_parts.addresses import of_app
from argosy.features.applications.page_parts.frame import app_of, framed
from argosy.features.applications.page_parts.owned_objects import nodes_of
from argosy.gitops.application_client.merged_streams import merged
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.application_client.resource_actions import Choice, Excerpt, Log, lines, logs_of
from argosy.kube.names import ResourceKey
from argosy.web import page_templates
from argosy.web.caller_clients import reader_of
from argosy.web.middleware.application_masks import masks_of
from argosy.web.object_lookup import logged_application
from argosy.web.request import Asked
from argosy.web.responses import Answer, Page, Stream, Text
from argosy.web.route import May, Route

TAILS: Final = (100, 500, 1000, 5000)
SINCE: Final = ((60, "1 minute"), (900, "15 minutes"), (3600, "1 hour"), (86400, "1 day"))
MOST_AGO: Final = 31 * 86400
MOST_LINES: Final = 5000  # per page
MOST_LOGS: Final = 20  # containers read at once
LONGEST: Final = 8192  # characters of a line
PAUSE: Final = 0.1  # lines are collected for this long before they are sent
SECONDS: Final = 10.0  # per container


class Read(NamedTuple):
    """Lines, and notes about logs that failed, are incomplete or are empty."""

    lines: list[LogLine]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class LogWish:
    hide: Callable[[str], str]
    pod: str = ""
    container: str = ""
    tail: int = TAILS[1]
    previous: bool = False
    q: str = ""
    choice: Choice = field(default_factory=Choice)
    since: int = 0  # seconds ago; 0: from the start
    wraps: bool = True

    @property
    def excerpt(self) -> Excerpt:
        return Excerpt(tail=self.tail, since=self.since or None, previous=self.previous)

    def shown(self, line: str) -> str | None:
        """Mask a line; return None if it does not match. A search in unmasked lines could guess a secret."""
        text = self.hide(line.rstrip("\n"))[:LONGEST]
        return text if self.q.lower() in text.lower() else None


def wish_of(asked: Asked) -> LogWish:
    query = asked.query
    parts = (query.text(each) for each in ("group", "kind", "namespace", "res"))
    return LogWish(
        masks_of(asked).hide_for(asked),
        query.text("pod"),
        query.text("container"),
        query.number("tail", TAILS[1], least=1, most=TAILS[-1]),
        query.text("previous") in ("1", "true", "on"),
        query.text("q"),
        Choice(*parts),
        query.number("since", 0, least=0, most=MOST_AGO),
        query.text("wrap") != "no",
    )


async def logs_wanted(reader: Reader, asked: Asked, wish: LogWish) -> tuple[list[Log], list[Log]]:
    """Return all logs of the Application, and the selected ones."""
    try:
        found = await logs_of(reader, app_of(asked), wish.choice, "")
    except UserError:
        return [], []
    owned = {node.key for node in await nodes_of(asked)}
    found = [log for log in found if log.pod in owned]
    wanted = [
        log
        for log in found
        if wish.pod in ("", log.pod.name) and (not wish.container or wish.container == log.container)
    ]
    return found, wanted[:MOST_LOGS]


async def read(reader: Reader, logs: Sequence[Log], wish: LogWish) -> Read:
    """Read several logs and merge their lines by time."""
    named = labels(logs)

    async def one(log: Log) -> tuple[list[LogLine], str]:
        made = list[LogLine]()
        try:
            async with asyncio.timeout(SECONDS):
                async for each in lines(reader, log, wish.excerpt):
                    if (text := wish.shown(each)) is not None:
                        made.append(LogLine(text, *named[log]))
        except TimeoutError:
            return (
                made,
                f"{log.pod.name}/{log.container}: incomplete: the node did not send it within {SECONDS:.0f} s",
            )
        except ArgosyError as error:
            return made, f"{log.pod.name}/{log.container}: {error}"
        return made, ""

    found = await asyncio.gather(*map(one, logs))
    began = [started(reader.cache.get(log.pod), log.container) for log in logs]
    made = ordered([(at, each) for at, (each, _) in zip(began, found, strict=True)])
    quiet = [log.pod for log, (each, fault) in zip(logs, found, strict=True) if not each and not fault]
    pods = {key.name: pod for key in quiet if (pod := reader.cache.get(key)) is not None}
    return Read(made[-MOST_LINES:], [*(fault for _, fault in found if fault), *not_started(pods)])


async def logs_page(asked: Asked) -> Answer:
    reader, wish = reader_of(asked), wish_of(asked)
    everything, wanted = await logs_wanted(reader, asked, wish)
    found = await read(reader, wanted, wish)
    follows = asked.query.text("follow") in ("1", "true", "on")
    values = await framed(
        asked,
        "logs",
        lines=found.lines,
        faults=found.notes,
        wish=wish,
        follows=follows,
        tails=TAILS,
        ages=SINCE,
        pods=sorted({log.pod.name for log in everything}),
        containers=sorted({log.container for log in everything if wish.pod in ("", log.pod.name)}),
        stream=_address(asked, "logs/stream"),
        download=_address(asked, "logs/text"),
    )
    return Page("applications/logs.html", values)


def _address(asked: Asked, place: str) -> str:
    app = app_of(asked)
    query = urlencode([(name, value) for name in asked.query for value in asked.query.all(name)])
    return f"{of_app(app.namespace, app.name, place)}{f'?{query}' if query else ''}"


async def logs_text(asked: Asked) -> Answer:
    """Return the selected logs as a file."""
    reader, wish = reader_of(asked), wish_of(asked)
    _, wanted = await logs_wanted(reader, asked, wish)
    found = (await read(reader, wanted, wish)).lines
    text = "".join(f"{each.whole + ': ' if each.whole else ''}{each.text}\n" for each in found)
    name = "".join(sign if sign.isalnum() or sign in "-." else "-" for sign in app_of(asked).name)
    return Text(text=text, headers=(("content-disposition", f'attachment; filename="{name}.log"'),))


async def logs_stream(asked: Asked) -> Answer:
    reader, wish = reader_of(asked), wish_of(asked)
    _, wanted = await logs_wanted(reader, asked, wish)
    return Stream(chunks=_follow(reader, wanted, wish), media="text/event-stream")


async def _follow(reader: Reader, logs: Sequence[Log], wish: LogWish) -> AsyncIterator[bytes]:
    """Stream new lines in batches."""
    named = labels(logs)

    async def one(log: Log) -> AsyncGenerator[LogLine, None]:
        try:
            async for each in lines(reader, log, Excerpt(follow=True, tail=0)):
                if (text := wish.shown(each)) is not None:
                    yield LogLine(text, *named[log])
        except ArgosyError as error:
            yield LogLine(f"the log ended: {error}", *named[log])

    yield _event("lines", {"html": ""})
    async with aclosing(merged([one(log) for log in logs], pause=PAUSE)) as found:
        async for batch in found:
            html = "".join(page_templates.part("applications/parts_logs.html", "log_item", each) for each in batch)
            yield _event("lines", {"html": html})
    yield _event("end", {"why": "every container has ended"})


def _event(name: str, document: Any) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(document) + b"\n\n"


def pods_of(key: ResourceKey) -> dict[str, str]:
    """Build the query parameters that select the Pods owned by an object."""
    return {"group": key.group, "kind": key.kind, "namespace": key.namespace, "res": key.name}


NEEDS = May("logs", "get", logged_application)
ROUTES = (
    Route("GET", "/apps/{ns}/{name}/logs", NEEDS, logs_page, "Logs"),
    Route("GET", "/apps/{ns}/{name}/logs/stream", NEEDS, logs_stream, "Stream logs"),
    Route("GET", "/apps/{ns}/{name}/logs/text", NEEDS, logs_text, "Download logs"),
)
