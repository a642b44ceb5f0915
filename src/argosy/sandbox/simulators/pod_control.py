"""Creates and deletes Pods for controllers, and records events on their owner.

In: an owner and Pods. Out: writes, Events, and a lasting rejection. Never: gives up after a temporary rejection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from argosy.errors import ClusterError
from argosy.kube.controller import ControllerContext
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.conditional_writes import create_if_absent, delete_object, is_permanent_rejection
from argosy.sandbox.simulators.event_recorder import EventDraft, EventRecorder
from argosy.sandbox.simulators.owner_references_and_marks import is_being_deleted


async def create_pods(
    owner: Manifest, pods: Sequence[Manifest], recorder: EventRecorder, context: ControllerContext
) -> str:
    """Create Pods; return why they were rejected (a quota or an invalid template), or an empty string."""
    outcomes = await asyncio.gather(*(create_if_absent(pod, context.cluster) for pod in pods), return_exceptions=True)
    names = [str(pod["metadata"]["name"]) for pod, outcome in zip(pods, outcomes) if outcome is True]
    await recorder.record(owner, [EventDraft("SuccessfulCreate", f"Created pod: {name}") for name in names], context)
    for result in outcomes:
        if isinstance(result, ClusterError) and is_permanent_rejection(result):
            event = EventDraft("FailedCreate", f"Error creating: {result.message}", is_warning=True)
            await recorder.record(owner, [event], context)
            return result.message
        if isinstance(result, BaseException):
            raise result
    return ""


async def delete_pods(
    owner: Manifest, pods: Sequence[Manifest], recorder: EventRecorder, context: ControllerContext
) -> None:
    for pod in pods:
        if not is_being_deleted(pod):
            await delete_object(pod, context.cluster)
            event = EventDraft("SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")
            await recorder.record(owner, [event], context)
