"""The verbs `wait` and `logs`.

In: KubectlSession. Out: a line for each object that met the condition; log lines. Never: waits without a limit.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

from argosy.errors import ClusterError
from argosy.features.kubectl.build_logs import build_of, pods_of_build, told_of
from argosy.features.kubectl.jsonpath import shown
from argosy.features.kubectl.session import Refused, Talk, field_of, say
from argosy.features.kubectl.write_verbs import LOOK
from argosy.gitops.application.sync_policy import seconds_of
from argosy.kube.client.resource_names import Named
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.schema.jsonpath import compiled

LONGEST: Final = 7 * 24 * 3600.0
Holds = Callable[[Manifest | None], bool]
POD: Final = GroupKind("", "Pod")


async def wait(talk: Talk) -> int:
    holds, may_be_missing = _condition(talk.asked.condition)
    named = await talk.named()
    wanted: list[tuple[Named, str]] = [(each, name) for each in named for name in each.names]
    if not wanted:
        found = [each async for each in talk.chosen(named)]
        wanted = [(each, manifest["metadata"]["name"]) for each, manifest in found]
    if not wanted:
        raise Refused("no matching resources found; check the names or the selector")
    seconds = _seconds(talk.asked.timeout or "30s")
    try:
        async with asyncio.timeout(LONGEST if seconds < 0 else seconds):
            for each, name in wanted:
                if await _until(talk, each, name, holds, may_be_missing):
                    say(f"{each.called(name)} condition met")
    except TimeoutError:
        said = f"timed out waiting for the condition on {each.info.plural}/{name}"
        raise Refused(f"{said}; see: kubectl describe {each.called(name)}") from None
    return 0


async def _until(talk: Talk, named: Named, name: str, holds: Holds, may_be_missing: bool) -> bool:
    """Wait for the condition. k8s: False, so no line is printed, for an object that was deleted before."""
    was_there = bool(talk.asked.condition != "delete")
    while True:
        live = await talk.cluster.get(named.key(name, talk.namespace))
        if live is None and not may_be_missing:
            await talk.get(named, name)  # raises, unless it was created just now
        elif holds(live):
            return was_there
        was_there = True
        await asyncio.sleep(LOOK)


def _condition(text: str) -> tuple[Holds, bool]:
    what, _, rest = text.partition("=")
    if what == "delete" and not rest:
        return lambda live: live is None, True
    if what == "create" and not rest:
        return lambda live: live is not None, True
    if what == "condition" and rest:
        name, _, value = rest.partition("=")
        return lambda live: _has(live, name.lower(), (value or "true").lower()), False
    if what == "jsonpath" and rest:
        path, equals, value = rest.rpartition("}=")
        path = f"{path}}}" if equals else rest
        found = compiled(path)
        wanted = value.strip("'\"")
        if equals:
            return lambda live: [shown(each) for each in found.find(live)] == [wanted], False
        return lambda live: bool(found.find(live)), False
    raise Refused(f"unrecognized condition: {text!r}; use --for=condition=NAME, delete, create or jsonpath=…")


def _has(live: Manifest | None, name: str, value: str) -> bool:
    conditions = field_of(live, "status", "conditions") or ()
    return any(each["type"].lower() == name and each["status"].lower() == value for each in conditions)


def _seconds(text: str) -> float:
    try:
        return -1.0 if text.startswith("-") else float(text) if text.isdigit() else seconds_of(text)
    except ValueError:
        raise Refused(f"invalid duration {text!r}; use one such as 90s, 10m or 2h") from None


async def logs(talk: Talk) -> int:
    asked = talk.asked
    if build := await build_of(talk):
        if (pods := await pods_of_build(talk, build)) is None:
            say(told_of(build))
            return 0
    else:
        pods = await _pods(talk)
    since = math.ceil(_seconds(asked.since)) if asked.since else None
    many = len(pods) > 1

    async def one(pod: Manifest) -> None:
        key = ResourceKey(*POD, pod["metadata"]["namespace"], pod["metadata"]["name"])
        lines = talk.cluster.logs(
            key, container=asked.container, follow=asked.follow, tail=asked.tail, since=since, previous=asked.previous
        )
        async for line in lines:
            say(f"[pod/{key.name}] {line}" if asked.prefix and many else line)

    if asked.follow:
        await asyncio.gather(*map(one, pods))
    else:
        for pod in pods:
            await one(pod)
    return 0


async def _pods(talk: Talk) -> list[Manifest]:
    asked = talk.asked
    if asked.selector:
        found = list((await talk.cluster.list(POD, namespace=talk.namespace, labels=asked.selector)).items)
        if asked.tail is None:
            asked.tail = 10  # k8s: default with a selector
        return found
    if not asked.words:
        raise Refused("expected 'logs NAME' or 'logs KIND/NAME'")
    words = asked.words if "/" in asked.words[0] else ["pods", *asked.words[:1]]
    named = (await talk.named(words))[0]
    manifest = await talk.get(named, named.names[0])
    if named.kind == POD:
        return [manifest]
    labels = field_of(manifest, "spec", "selector", "matchLabels")
    if not labels:
        raise Refused(f"{named.called(named.names[0])} has no Pod selector; use the name of a Pod")
    selector = ",".join(f"{name}={value}" for name, value in labels.items())
    found = list((await talk.cluster.list(POD, namespace=talk.namespace, labels=selector)).items)
    if not found:
        raise ClusterError(f"no Pods found for {named.called(named.names[0])}", code=404, reason="NotFound")
    return found[:1]
