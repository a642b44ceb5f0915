"""Creates and deletes Pods for controllers, and records events on their owner.

In: an owner and Pods. Out: writes, Events, and a lasting rejection. Never: gives up after a temporary rejection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from argosy.errors import ClusterError
from argosy.kube.controller import Context
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import is_dying
from argosy.sandbox.simulators.events import Happening, Recorder
from argosy.sandbox.simulators.writes import create_once, denied, remove


async def make_pods(owner: Manifest, pods: Sequence[Manifest], recorder: Recorder, context: Context) -> str:
    """Create Pods; return why they were rejected (a quota or an invalid template), or an empty string."""
    outcomes = await asyncio.gather(*(create_once(pod, context.cluster) for pod in pods), return_exceptions=True)
    names = [str(pod["metadata"]["name"]) for pod, outcome in zip(pods, outcomes) if outcome is True]
    await recorder.tell(owner, [Happening("SuccessfulCreate", f"Created pod: {name}") for name in names], context)
    for each in outcomes:
        if isinstance(each, ClusterError) and denied(each):
            happening = Happening("FailedCreate", f"Error creating: {each.message}", is_warning=True)
            await recorder.tell(owner, [happening], context)
            return each.message
        if isinstance(each, BaseException):
            raise each
    return ""


async def remove_pods(owner: Manifest, pods: Sequence[Manifest], recorder: Recorder, context: Context) -> None:
    for pod in pods:
        if not is_dying(pod):
            await remove(pod, context.cluster)
            happening = Happening("SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")
            await recorder.tell(owner, [happening], context)
