"""`argosy app list -w` and `get -w`: print Applications whenever they change, until Ctrl-C.

In: an ApplicationService, output options. Out: text on stdout. Never: prints an unchanged row twice.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from argosy.cli.tables import Screen, cut
from argosy.cli.verbs import form, is_compat, talk
from argosy.errors import Gone, TransientError
from argosy.features.applications.read import text_output
from argosy.features.applications.sync.progress import Canvas, picture
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.client import APPLICATION, Desk, clock
from argosy.gitops.application_client.delays import describe_delays, may_be_delayed
from argosy.gitops.application_client.watch import FOR_EVER
from argosy.kube.controller.clock import SYSTEM_CLOCK, let_go, sleep
from argosy.kube.controller.wait import AGAIN, until
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

DELAY_CACHE_SECONDS: Final = 5.0  # before delays are read again
TRIES: Final = 10  # in a row, over half a minute

Fits = Callable[[Application], bool]


async def watch_list(desk: Desk, chosen: argparse.Namespace, fits: Fits, *, everywhere: bool) -> int:
    shown = _Shown(desk, form(chosen), has_headings=not chosen.no_headers, is_compat=is_compat(chosen))
    refreshing = asyncio.create_task(_refresh_delays(shown))
    try:
        async for manifests in _changes(desk, "" if everywhere else desk.namespace, chosen.selector):
            await shown.see([app for manifest in manifests if fits(app := read_application(manifest))])
    finally:
        await let_go(refreshing)
    return 0


async def _refresh_delays(shown: _Shown) -> None:
    """Refresh delays until cancelled: windows and project budgets change without a change of an Application."""
    while True:
        await sleep(SYSTEM_CLOCK, DELAY_CACHE_SECONDS)
        await shown.refresh_delays()


async def _changes(desk: Desk, namespace: str, selector: str) -> AsyncIterator[list[Manifest]]:
    """Yield all Applications whenever one changes; raise if the cluster stays unreachable."""
    tries = 0
    while True:
        try:
            listing = await desk.cluster.list(APPLICATION, namespace=namespace, labels=selector)
            found = {key_of(each): each for each in listing.items}
            yield list(found.values())
            events = desk.cluster.watch(APPLICATION, since=listing.version, namespace=namespace, labels=selector)
            async for event in events:
                tries = 0
                if event.type == "DELETED":
                    found.pop(key_of(event.manifest), None)
                elif event.type != "BOOKMARK":
                    found[key_of(event.manifest)] = event.manifest
                yield list(found.values())
        except Gone:
            pass
        except TransientError as error:
            tries += 1
            if tries > TRIES:
                raise
            if tries == 1:
                talk(f"{error}; retrying")
        await sleep(SYSTEM_CLOCK, AGAIN.delay(tries))


class _Shown:
    """Prints the list, or the rows that changed since the last time."""

    def __init__(self, desk: Desk, how: str, *, has_headings: bool, is_compat: bool) -> None:
        self._desk, self._how, self._has_headings, self._is_compat = desk, how, has_headings, is_compat
        self._canvas = Canvas(sys.stdout) if sys.stdout.isatty() and how in ("table", "wide") else None
        self._seen: dict[ResourceKey, tuple[str, ...]] = {}
        self._delays: dict[ResourceKey, str] = {}
        self._delays_read_at = -DELAY_CACHE_SECONDS
        self._apps: Sequence[Application] = ()

    @property
    def has_why(self) -> bool:
        return self._how == "table" or (self._how == "wide" and not self._is_compat)

    async def see(self, apps: Sequence[Application]) -> None:
        self._apps = apps
        if self.has_why and time.monotonic() - self._delays_read_at >= DELAY_CACHE_SECONDS:
            await self._read_delays()
        self._show()

    async def refresh_delays(self) -> None:
        if self.has_why and self._apps:
            await self._read_delays()
            self._show()

    async def _read_delays(self) -> None:
        self._delays_read_at = time.monotonic()
        self._delays = await describe_delays(self._desk, self._apps)

    def _show(self) -> None:
        # An Application that changed after delays were read may not be delayed any more.
        waiting = {app.key for app in self._apps if may_be_delayed(app)}
        self._delays = {key: delay for key, delay in self._delays.items() if key in waiting}
        apps = sorted(self._apps, key=lambda app: (app.namespace, app.name))
        if self._canvas is not None:
            size = shutil.get_terminal_size()
            room = max(size.lines - 2, 3)
            lines = self._lines(apps)
            if self._how == "wide":  # wrapped lines would break the redraw
                lines = [cut(line, size.columns) for line in lines]
            more = [f"… and {len(lines) - room} more"] if len(lines) > room else []
            self._canvas.draw(lines[:room] + more)
            return
        self._print(apps)

    def _print(self, apps: list[Application]) -> None:
        """Print only changed rows, aligned with all rows."""
        heading, rows = "", []
        if self._how in ("json", "yaml"):
            import orjson

            rows = [orjson.dumps(app.wire).decode() for app in apps]
        elif self._how == "name":
            rows = [f"{app.namespace}/{app.name}" for app in apps]
        else:
            heading, *rows = self._lines(apps)
        if heading and self._has_headings and not self._seen:
            print(heading, flush=True)
        words = {app.key: self._words(row) for app, row in zip(apps, rows, strict=True)}
        for app, row in zip(apps, rows, strict=True):
            if self._seen.get(app.key) != words[app.key]:
                print(row, flush=True)
        self._seen = words

    def _words(self, row: str) -> tuple[str, ...]:
        """Return the cells that count as a change: all but the age."""
        return tuple(row.split())[:-1] if self._how == "table" else tuple(row.split())

    def _lines(self, apps: list[Application]) -> list[str]:
        if self._how == "wide":
            return text_output.wide_lines(apps, None if self._is_compat else {}, self._delays)
        home = self._desk.namespace
        return text_output.list_lines(apps, Screen(sys.stdout), clock(), home, delays=self._delays)


async def watch_one(desk: Desk, app: Application, how: str) -> int:
    """Print the Application on every change until it is deleted."""
    if how in ("json", "yaml"):
        see: Callable[[Application], None] = _print_json
    else:
        see = picture().see

    def look(manifest: Manifest | None) -> bool:
        if manifest is None:
            return True
        see(read_application(manifest))
        return False

    await until(desk.cluster, app.key, look, FOR_EVER)
    return 0


def _print_json(app: Application) -> None:
    import orjson

    print(orjson.dumps(app.wire).decode(), flush=True)


__all__ = ["watch_list", "watch_one"]
