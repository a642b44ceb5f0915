"""Counts differing fields by cause, and explains poor health, for a list of Applications.

In: an ApplicationService, Applications. Out: texts by key. Never: works for more than a few Applications or seconds:
the user waits for the list.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final

from argosy.errors import ArgosyError
from argosy.gitops.application import Application
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.object_health_sentence import summarize_health_reason
from argosy.gitops.application_client.render_pool_prestart import build_render_pool
from argosy.gitops.application_client.status_summary import is_only_differing, is_only_unhealthy, read_health_status
from argosy.gitops.application_client.stuck_pods import UNSCHEDULABLE_REASON, describe_stuck_pods
from argosy.kube.resource_key import ResourceKey

if TYPE_CHECKING:
    from argosy.gitops.application_client.app_state_reader import ApplicationReader

MAX_APPLICATIONS: Final = 5  # applications
TIMEOUT_SECONDS: Final = 2.0


async def explain_unhealthy_or_differing(
    service: ApplicationService, apps: Sequence[Application]
) -> dict[ResourceKey, str]:
    """Explain Applications that only differ or are only unhealthy; empty if there are too many of them."""
    differing = [app for app in apps if is_only_differing(app)]
    unhealthy = [app for app in apps if is_only_unhealthy(app)]
    texts: dict[ResourceKey, str] = {}
    if not 0 < len(differing) + len(unhealthy) <= MAX_APPLICATIONS:
        return texts
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await _explain_all(service, differing, unhealthy, texts)
    return texts


async def _explain_all(
    service: ApplicationService,
    differing: Sequence[Application],
    unhealthy: Sequence[Application],
    texts: dict[ResourceKey, str],
) -> None:
    render_pool = build_render_pool()
    if differing:
        render_pool.start_first_worker()
    from argosy.gitops.application_client.app_state_reader import (
        open_reader,  # late: most lists need no comparison
    )

    async with open_reader(service, render_pool=render_pool) as reader:
        for app in unhealthy:
            with contextlib.suppress(ArgosyError):  # the list shows what it knows without this
                if text := await _explain_health(reader, app):
                    texts[app.key] = text
        for app in differing:
            with contextlib.suppress(ArgosyError):
                async for text in _describe_difference_counts(reader, app):
                    texts[app.key] = text


async def _describe_difference_counts(reader: ApplicationReader, app: Application) -> AsyncIterator[str]:
    """Yield the counts first, then the counts with causes, because the time may run out between them."""
    from argosy.gitops.application_client.diff_presentation import (
        list_differing_objects,
        summarize_differences,
        with_causes,
    )
    from argosy.gitops.application_client.difference_cause_evidence import explain_differences

    app_state = await reader.compare(app, assess_health=False)
    if app_state.is_complete and (objects := list_differing_objects(app_state.comparison)):
        yield summarize_differences(objects)
        yield summarize_differences(
            with_causes(objects, await explain_differences(reader, app, app_state, objects, is_brief=True))
        )


async def _explain_health(reader: ApplicationReader, app: Application) -> str:
    """Return the reason of the object with the worst health, without its name, which `argosy app get` shows."""
    if unscheduled := await describe_stuck_pods(reader.service, app, frozenset({UNSCHEDULABLE_REASON})):
        return f"Pod: {unscheduled[0].partition(': ')[2]}"
    unhealthy = [
        (key, assessment)
        for key, assessment in (await reader.assess_managed_objects(app)).items()
        if assessment.health == read_health_status(app)
    ]
    reasons = (
        (key, summarize_health_reason(reader.cache.get(key) or {}, assessment.message)) for key, assessment in unhealthy
    )
    return next((f"{key.kind}: {text}" for key, text in reasons if text), "")
