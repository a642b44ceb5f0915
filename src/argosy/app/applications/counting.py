"""How many fields differ, for a list.

In: a desk, Applications. Out: texts by key. Never: for more than a few, or for long: who lists is in a hurry.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

from argosy.app.applications.desk import Desk
from argosy.app.applications.facts import is_only_differing
from argosy.model.application import Application
from argosy.model.errors import ArgosyError
from argosy.model.names import ResourceKey

MOST: Final = 5  # applications
SECONDS: Final = 2.0


async def differing_fields(desk: Desk, apps: Sequence[Application]) -> dict[ResourceKey, str]:
    """Of those whose only trouble is a difference; none at all where they are many."""
    wanted = [app for app in apps if is_only_differing(app)]
    found: dict[ResourceKey, str] = {}
    if not wanted or len(wanted) > MOST:
        return found
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SECONDS):
            await _count(desk, wanted, found)
    return found


async def _count(desk: Desk, apps: Sequence[Application], found: dict[ResourceKey, str]) -> None:
    from argosy.app.applications.differing import differing, in_short  # late: most lists need no comparison
    from argosy.app.applications.reader import open_reader

    async with open_reader(desk) as reader:
        for app in apps:
            with contextlib.suppress(ArgosyError):  # the list tells what it knows without
                look = await reader.look(app)
                if look.is_whole and (text := in_short(differing(look.comparison))):
                    found[app.key] = text
