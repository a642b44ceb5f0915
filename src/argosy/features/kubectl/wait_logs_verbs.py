"""The verbs `wait` and `logs`.

In: KubectlSession. Out: a line for each object that met the condition; log lines. Never: waits without a limit.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

from argosy.errors import ClusterError
from argosy.features.kubectl.build_log_pod_lookup import describe_build_without_pod, find_build, list_build_pods
from argosy.features.kubectl.jsonpath import format_value
from argosy.features.kubectl.session import KubectlError, KubectlSession, get_field, print_lines
from argosy.features.kubectl.write_verbs import POLL_INTERVAL_SECONDS
from argosy.gitops.application.sync_policy import parse_duration
from argosy.kube.client.resource_arguments import NamedResources
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.jsonpath import compile_path
from argosy.kube.well_known_kinds import POD

MAX_WAIT_SECONDS: Final = 7 * 24 * 3600.0
ConditionCheck = Callable[[Manifest | None], bool]


async def wait(session: KubectlSession) -> int:
    is_met, may_be_missing = _parse_condition(session.args.condition)
    resources = await session.resolve_resources()
    targets: list[tuple[NamedResources, str]] = [(resource, name) for resource in resources for name in resource.names]
    if not targets:
        objects = [resource async for resource in session.iterate_objects(resources)]
        targets = [(resource, manifest["metadata"]["name"]) for resource, manifest in objects]
    if not targets:
        raise KubectlError("no matching resources found; check the names or the selector")
    seconds = _parse_seconds(session.args.timeout or "30s")
    try:
        async with asyncio.timeout(MAX_WAIT_SECONDS if seconds < 0 else seconds):
            for resource, name in targets:
                if await _wait_for_condition(session, resource, name, is_met, may_be_missing):
                    print_lines(f"{resource.format_name(name)} condition met")
    except TimeoutError:
        message = f"timed out waiting for the condition on {resource.info.plural}/{name}"
        raise KubectlError(f"{message}; see: kubectl describe {resource.format_name(name)}") from None
    return 0


async def _wait_for_condition(
    session: KubectlSession, resource: NamedResources, name: str, is_met: ConditionCheck, may_be_missing: bool
) -> bool:
    """Wait for the condition. k8s: False, so no line is printed, for an object that was deleted before."""
    has_waited = bool(session.args.condition != "delete")
    while True:
        live = await session.cluster.get(resource.build_key(name, session.namespace))
        if live is None and not may_be_missing:
            await session.get_object(resource, name)  # raises, unless it was created just now
        elif is_met(live):
            return has_waited
        has_waited = True
        await asyncio.sleep(POLL_INTERVAL_SECONDS)


def _parse_condition(text: str) -> tuple[ConditionCheck, bool]:
    condition_type, _, argument = text.partition("=")
    if condition_type == "delete" and not argument:
        return lambda live: live is None, True
    if condition_type == "create" and not argument:
        return lambda live: live is not None, True
    if condition_type == "condition" and argument:
        name, _, value = argument.partition("=")
        return lambda live: _has_condition(live, name.lower(), (value or "true").lower()), False
    if condition_type == "jsonpath" and argument:
        path, equals, value = argument.rpartition("}=")
        path = f"{path}}}" if equals else argument
        json_path = compile_path(path)
        expected = value.strip("'\"")
        if equals:
            return lambda live: [format_value(item) for item in json_path.find_all(live)] == [expected], False
        return lambda live: bool(json_path.find_all(live)), False
    raise KubectlError(f"unrecognized condition: {text!r}; use --for=condition=NAME, delete, create or jsonpath=…")


def _has_condition(live: Manifest | None, name: str, value: str) -> bool:
    conditions = get_field(live, "status", "conditions") or ()
    return any(condition["type"].lower() == name and condition["status"].lower() == value for condition in conditions)


def _parse_seconds(text: str) -> float:
    try:
        return -1.0 if text.startswith("-") else float(text) if text.isdigit() else parse_duration(text)
    except ValueError:
        raise KubectlError(f"invalid duration {text!r}; use one such as 90s, 10m or 2h") from None


async def logs(session: KubectlSession) -> int:
    args = session.args
    if build := await find_build(session):
        if (pods := await list_build_pods(session, build)) is None:
            print_lines(describe_build_without_pod(build))
            return 0
    else:
        pods = await _find_pods(session)
    since = math.ceil(_parse_seconds(args.since)) if args.since else None
    has_several_pods = len(pods) > 1

    async def print_log(pod: Manifest) -> None:
        key = ResourceKey(*POD, pod["metadata"]["namespace"], pod["metadata"]["name"])
        lines = session.cluster.logs(
            key, container=args.container, follow=args.follow, tail=args.tail, since=since, previous=args.previous
        )
        async for line in lines:
            print_lines(f"[pod/{key.name}] {line}" if args.prefix and has_several_pods else line)

    if args.follow:
        await asyncio.gather(*map(print_log, pods))
    else:
        for pod in pods:
            await print_log(pod)
    return 0


async def _find_pods(session: KubectlSession) -> list[Manifest]:
    args = session.args
    if args.selector:
        pods = list((await session.cluster.list(POD, namespace=session.namespace, labels=args.selector)).items)
        if args.tail is None:
            args.tail = 10  # k8s: default with a selector
        return pods
    if not args.words:
        raise KubectlError("expected 'logs NAME' or 'logs KIND/NAME'")
    arguments = args.words if "/" in args.words[0] else ["pods", *args.words[:1]]
    resource = (await session.resolve_resources(arguments))[0]
    manifest = await session.get_object(resource, resource.names[0])
    if resource.kind == POD:
        return [manifest]
    labels = get_field(manifest, "spec", "selector", "matchLabels")
    if not labels:
        raise KubectlError(f"{resource.format_name(resource.names[0])} has no Pod selector; use the name of a Pod")
    selector = ",".join(f"{name}={value}" for name, value in labels.items())
    pods = list((await session.cluster.list(POD, namespace=session.namespace, labels=selector)).items)
    if not pods:
        raise ClusterError(f"no Pods found for {resource.format_name(resource.names[0])}", code=404, reason="NotFound")
    return pods[:1]
