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
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.health_reasons import reason
from argosy.gitops.application_client.render_process import renderer
from argosy.gitops.application_client.stuck_pods import UNSCHEDULED, stuck_pods
from argosy.gitops.application_client.summary import health_word, is_only_differing, is_only_ill
from argosy.kube.names import ResourceKey

if TYPE_CHECKING:
    from argosy.gitops.application_client.reader import Reader

MOST: Final = 5  # applications
SECONDS: Final = 2.0


async def found_out(desk: Desk, apps: Sequence[Application]) -> dict[ResourceKey, str]:
    """Explain Applications that only differ or are only unhealthy; empty if there are too many of them."""
    differing = [app for app in apps if is_only_differing(app)]
    ill = [app for app in apps if is_only_ill(app)]
    found: dict[ResourceKey, str] = {}
    if not 0 < len(differing) + len(ill) <= MOST:
        return found
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SECONDS):
            await _look(desk, differing, ill, found)
    return found


async def _look(
    desk: Desk, differing: Sequence[Application], ill: Sequence[Application], found: dict[ResourceKey, str]
) -> None:
    crew = renderer()
    if differing:
        crew.begin()
    from argosy.gitops.application_client.reader import open_reader  # late: most lists need no comparison

    async with open_reader(desk, crew=crew) as reader:
        for app in ill:
            with contextlib.suppress(ArgosyError):  # the list shows what it knows without this
                if text := await _diagnosis(reader, app):
                    found[app.key] = text
        for app in differing:
            with contextlib.suppress(ArgosyError):
                async for text in _counts(reader, app):
                    found[app.key] = text


async def _counts(reader: Reader, app: Application) -> AsyncIterator[str]:
    """Yield the counts first, then the counts with causes, because the time may run out between them."""
    from argosy.gitops.application_client.difference_causes import explained
    from argosy.gitops.application_client.differences import differing, in_short, with_causes

    look = await reader.look(app, is_judged=False)
    if look.is_whole and (found := differing(look.comparison)):
        yield in_short(found)
        yield in_short(with_causes(found, await explained(reader, app, look, found, is_brief=True)))


async def _diagnosis(reader: Reader, app: Application) -> str:
    """Return the reason of the object with the worst health, without its name, which `argosy app get` shows."""
    if unscheduled := await stuck_pods(reader.desk, app, frozenset({UNSCHEDULED})):
        return f"Pod: {unscheduled[0].partition(': ')[2]}"
    ill = [(key, said) for key, said in (await reader.health(app)).items() if said.health == health_word(app)]
    told = ((key, reason(reader.cache.get(key) or {}, said.message)) for key, said in ill)
    return next((f"{key.kind}: {why}" for key, why in told if why), "")
