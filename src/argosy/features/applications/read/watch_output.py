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

from argosy.cli.subcommand_flags_and_runner import choose_output, is_compat, print_message
from argosy.cli.tables import TerminalOutput, truncate
from argosy.errors import Gone, TransientError
from argosy.features.applications.read import text_output
from argosy.features.applications.sync.progress_output import TerminalCanvas, create_progress_display
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.application_service import ApplicationService, utc_now
from argosy.gitops.application_client.condition_wait import NO_TIMEOUT_SECONDS
from argosy.gitops.application_client.delay_reasons import describe_delays, may_be_delayed
from argosy.kube.controller.clock import SYSTEM_CLOCK, cancel_and_wait, sleep
from argosy.kube.controller.object_condition_wait import RETRY_BACKOFF, wait_for_object
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION

DELAY_CACHE_SECONDS: Final = 5.0  # before delays are read again
MAX_RETRIES: Final = 10  # in a row, over half a minute

ApplicationFilter = Callable[[Application], bool]


async def watch_list(
    service: ApplicationService, args: argparse.Namespace, matches: ApplicationFilter, *, all_namespaces: bool
) -> int:
    printer = _ListPrinter(service, choose_output(args), has_headings=not args.no_headers, is_compat=is_compat(args))
    refresh_task = asyncio.create_task(_refresh_delays(printer))
    try:
        async for manifests in _watch_manifests(service, "" if all_namespaces else service.namespace, args.selector):
            await printer.show([app for manifest in manifests if matches(app := read_application(manifest))])
    finally:
        await cancel_and_wait(refresh_task)
    return 0


async def _refresh_delays(printer: _ListPrinter) -> None:
    """Refresh delays until cancelled: windows and project budgets change without a change of an Application."""
    while True:
        await sleep(SYSTEM_CLOCK, DELAY_CACHE_SECONDS)
        await printer.refresh_delays()


async def _watch_manifests(service: ApplicationService, namespace: str, selector: str) -> AsyncIterator[list[Manifest]]:
    """Yield all Applications whenever one changes; raise if the cluster stays unreachable."""
    retries = 0
    while True:
        try:
            listing = await service.cluster.list(APPLICATION, namespace=namespace, labels=selector)
            manifests = {key_of(manifest): manifest for manifest in listing.items}
            yield list(manifests.values())
            events = service.cluster.watch(APPLICATION, since=listing.version, namespace=namespace, labels=selector)
            async for event in events:
                retries = 0
                if event.type == "DELETED":
                    manifests.pop(key_of(event.manifest), None)
                elif event.type != "BOOKMARK":
                    manifests[key_of(event.manifest)] = event.manifest
                yield list(manifests.values())
        except Gone:
            pass
        except TransientError as error:
            retries += 1
            if retries > MAX_RETRIES:
                raise
            if retries == 1:
                print_message(f"{error}; retrying")
        await sleep(SYSTEM_CLOCK, RETRY_BACKOFF.delay(retries))


class _ListPrinter:
    """Prints the list, or the rows that changed since the last time."""

    def __init__(self, service: ApplicationService, output: str, *, has_headings: bool, is_compat: bool) -> None:
        self._desk, self._output, self._has_headings, self._is_compat = service, output, has_headings, is_compat
        self._canvas = TerminalCanvas(sys.stdout) if sys.stdout.isatty() and output in ("table", "wide") else None
        self._printed_rows: dict[ResourceKey, tuple[str, ...]] = {}
        self._delays: dict[ResourceKey, str] = {}
        self._delays_read_at = -DELAY_CACHE_SECONDS
        self._apps: Sequence[Application] = ()

    @property
    def has_why_column(self) -> bool:
        return self._output == "table" or (self._output == "wide" and not self._is_compat)

    async def show(self, apps: Sequence[Application]) -> None:
        self._apps = apps
        if self.has_why_column and time.monotonic() - self._delays_read_at >= DELAY_CACHE_SECONDS:
            await self._read_delays()
        self._show()

    async def refresh_delays(self) -> None:
        if self.has_why_column and self._apps:
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
            max_lines = max(size.lines - 2, 3)
            lines = self._render_lines(apps)
            if self._output == "wide":  # wrapped lines would break the redraw
                lines = [truncate(line, size.columns) for line in lines]
            more = [f"… and {len(lines) - max_lines} more"] if len(lines) > max_lines else []
            self._canvas.draw(lines[:max_lines] + more)
            return
        self._print_changed(apps)

    def _print_changed(self, apps: list[Application]) -> None:
        """Print only changed rows, aligned with all rows."""
        heading, rows = "", []
        if self._output in ("json", "yaml"):
            import orjson

            rows = [orjson.dumps(app.wire).decode() for app in apps]
        elif self._output == "name":
            rows = [f"{app.namespace}/{app.name}" for app in apps]
        else:
            heading, *rows = self._render_lines(apps)
        if heading and self._has_headings and not self._printed_rows:
            print(heading, flush=True)
        row_words = {app.key: self._comparable_words(row) for app, row in zip(apps, rows, strict=True)}
        for app, row in zip(apps, rows, strict=True):
            if self._printed_rows.get(app.key) != row_words[app.key]:
                print(row, flush=True)
        self._printed_rows = row_words

    def _comparable_words(self, row: str) -> tuple[str, ...]:
        """Return the cells that count as a change: all but the age."""
        return tuple(row.split())[:-1] if self._output == "table" else tuple(row.split())

    def _render_lines(self, apps: list[Application]) -> list[str]:
        if self._output == "wide":
            return text_output.render_wide_list(apps, None if self._is_compat else {}, self._delays)
        default_namespace = self._desk.namespace
        return text_output.render_list(
            apps, TerminalOutput(sys.stdout), utc_now(), default_namespace, delays=self._delays
        )


async def watch_application(service: ApplicationService, app: Application, output: str) -> int:
    """Print the Application on every change until it is deleted."""
    if output in ("json", "yaml"):
        show: Callable[[Application], None] = _print_json
    else:
        show = create_progress_display().show

    def on_change(manifest: Manifest | None) -> bool:
        if manifest is None:
            return True
        show(read_application(manifest))
        return False

    await wait_for_object(service.cluster, app.key, on_change, NO_TIMEOUT_SECONDS)
    return 0


def _print_json(app: Application) -> None:
    import orjson

    print(orjson.dumps(app.wire).decode(), flush=True)


__all__ = ["watch_application", "watch_list"]
