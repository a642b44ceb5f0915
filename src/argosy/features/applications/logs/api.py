"""API to stream the logs of the Pods of an Application.

In: a request. Out: a JSON line for each log line. Never: logs of a Pod outside the Application; logs without the
permissions to read logs and to get the Application.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Final

from argosy.errors import ClusterError, TransientError, UserError
from argosy.features.applications.logs.stream import Wanted, entry, read_wanted
from argosy.features.applications.read.api import PLACE
from argosy.gitops.application import Application
from argosy.gitops.application_client.client import clock, now
from argosy.gitops.application_client.merged_streams import merged
from argosy.gitops.application_client.owned_objects import belongings
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.application_client.resource_actions import Choice, Excerpt, Log, lines
from argosy.gitops.live.resource_tree import POD
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.objects import Manifest, key_of
from argosy.web.api.stream_frames import MAKES, failure, frame, is_events, stream
from argosy.web.caller_clients import reader_of
from argosy.web.middleware.application_masks import masks_of
from argosy.web.object_lookup import logged_application
from argosy.web.request import Asked
from argosy.web.responses import Stream
from argosy.web.route import May, Parameter, Route

MOST: Final = 40  # logs read at once; argo: its limit is 20
WAITING: Final = 200  # for a slow reader


async def logs(asked: Asked) -> Stream:
    reader, query = reader_of(asked), asked.query
    wanted = read_wanted(query, clock())
    pod = asked.values.get("podName") or query.text("podName")
    if pod:
        choice = Choice("", "Pod", query.text("namespace"), pod)
    else:
        choice = Choice(query.text("group"), query.text("kind"), query.text("namespace"), query.text("resourceName"))
    found = await _logs(reader, asked.subject, choice, query.text("container"))
    if len(found) > MOST:
        raise UserError(f"{len(found)} logs match, but at most {MOST} are read at once; choose a Pod or a container")
    await _first(reader, found, wanted)
    hide = masks_of(asked).hide_for(asked)
    return stream(asked, _frames(reader, found, wanted, hide, events=is_events(asked)))


async def _logs(reader: Reader, app: Application, choice: Choice, container: str) -> list[Log]:
    """List the containers of selected Pods and of Pods owned by selected objects."""
    chosen: set[str] = set()
    found: list[Log] = []
    for manifest in await belongings(reader, app):
        owners = {str(each.get("uid")) for each in mappings(manifest["metadata"].get("ownerReferences"))}
        if not choice.fits(key_of(manifest)) and not owners & chosen:
            continue
        chosen.add(str(manifest["metadata"].get("uid") or ""))
        if key_of(manifest).group_kind == POD:
            found += [Log(key_of(manifest), each) for each in _containers(manifest, container)]
    if not found:
        told = "no matching Pods or containers"
        raise UserError(f"{told}; list the objects: argosy app tree {app.name}", where=app.name)
    return found


def _containers(pod: Manifest, container: str) -> list[str]:
    """argo: Init containers are included only by name."""
    spec = mapping(pod.get("spec"))
    names = [str(each.get("name")) for each in mappings(spec.get("containers"))]
    if not container:
        return names
    names += [str(each.get("name")) for each in mappings(spec.get("initContainers"))]
    return [each for each in names if each == container]


async def _first(reader: Reader, found: list[Log], wanted: Wanted) -> None:
    """Raise the error of a single unreadable log before the response starts."""
    if len(found) != 1:
        return
    peek = Excerpt(tail=1, since=wanted.excerpt.since, previous=wanted.excerpt.previous)
    async for _ in lines(reader, found[0], peek):
        break


async def _frames(
    reader: Reader, found: list[Log], wanted: Wanted, hide: Callable[[str], str], *, events: bool
) -> AsyncIterator[bytes]:
    """Mask each line before filtering, because a filter on unmasked lines could guess a secret letter by letter."""

    async def read(log: Log) -> AsyncGenerator[bytes, None]:
        try:
            async for line in lines(reader, log, wanted.excerpt):
                if wanted.takes(shown := hide(line.rstrip("\n"))):
                    yield frame(entry(shown, log.pod.name, now()), events=events)
        except (ClusterError, TransientError, UserError) as error:
            if len(found) == 1:
                yield failure(error, events=events)

    async with aclosing(merged([read(log) for log in found], most=WAITING)) as batches:
        async for batch in batches:
            for each in batch:
                yield each
    last = entry("", found[0].pod.name if len(found) == 1 else "", now(), is_last=True)
    yield frame(last, events=events)


QUERY: Final = (
    Parameter("podName", "Only logs of this Pod."),
    Parameter("namespace", "Only logs of Pods in this namespace."),
    Parameter("container", "Only logs of this container."),
    Parameter("group", "Only Pods owned by objects of this API group."),
    Parameter("kind", "Only Pods owned by objects of this kind."),
    Parameter("resourceName", "Only Pods owned by the object with this name."),
    Parameter("follow", "Stream new lines.", "boolean"),
    Parameter("tailLines", "Only this many lines from the end.", "integer"),
    Parameter("sinceSeconds", "Only lines of the last seconds.", "integer"),
    Parameter("sinceTime", "Only lines since this time; RFC 3339."),
    Parameter("untilTime", "Refused: not supported."),
    Parameter("previous", "Logs of the previous container instance.", "boolean"),
    Parameter("filter", "Only lines with this text; a leading ! inverts the filter."),
    Parameter("matchCase", "Match upper and lower case in the filter.", "boolean"),
    *PLACE,
)
NEEDS: Final = May("logs", "get", logged_application)
AT: Final = "/api/v1/applications/{name}"
ROUTES = (
    Route(
        "GET", f"{AT}/logs", NEEDS, logs, "Stream logs of the Pods of an Application, one JSON object per line.",
        query=QUERY,
        makes=MAKES, tag="applications", operation="ApplicationService_PodLogs2",
    ),
    Route(
        "GET", f"{AT}/pods/{{podName}}/logs", NEEDS, logs, "Stream logs of a Pod, one JSON object per line.",
        query=QUERY,
        makes=MAKES, tag="applications", operation="ApplicationService_PodLogs",
    ),
)  # fmt: skip
