"""Progress output of a running sync: redrawn waves in a terminal, one line per change elsewhere.

In: an Application at each change. Out: text on a stream. Never: prints the same state twice.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TextIO

from argosy.cli.tables import Screen, plain, shown_width
from argosy.gitops.application import Application
from argosy.gitops.application_client import summary
from argosy.gitops.application_client.summary import Row
from argosy.gitops.application_client.wait_conditions import Waited
from argosy.gitops.application_client.watch import is_taken_up
from argosy.kube.names import ResourceKey

Tell = Callable[[str], None]
HEADINGS = ("TIMESTAMP", "GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HEALTH", "HOOK", "MESSAGE")
WIDTHS = (25, 10, 14, 15, 24, 9, 11, 8)  # argo: right-aligned, so that a stream stays readable
HEARTBEAT = 30.0  # repeat the wait message so that it does not seem to hang
FAILING = ("SyncFailed", "Failed", "Error")
MOST_ROWS = 30  # of the redrawn display


class Lines:
    """argo: Prints each changed object with a timestamp."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._seen: dict[ResourceKey, Row] = {}

    def see(self, app: Application) -> None:
        for row in summary.rows(_without_earlier_operation(app)):
            before = self._seen.get(row.key)
            if before in (row, row._replace(message=before.message) if before and not row.message else row):
                continue  # an empty message of a starting operation is no change
            if not self._seen:
                self._print(HEADINGS)
            self._seen[row.key] = row
            now = datetime.now().astimezone().isoformat(timespec="seconds")
            key = row.key
            self._print(
                (now, key.group, key.kind, key.namespace, key.name, row.status, row.health, row.hook, row.message)
            )

    def _print(self, cells: Sequence[str]) -> None:
        first, *padded = [plain(cell).rjust(width) for cell, width in zip(cells, WIDTHS)]
        line = "  ".join([first.strip().ljust(WIDTHS[0]), *padded, plain(cells[-1])])
        print(line.rstrip(), file=self._stream, flush=True)

    def close(self) -> None:
        """Do nothing: no line is left open."""


class Retries:
    """Prints each failed attempt that will be retried, because the line output does not show the pause."""

    def __init__(self, tell: Tell) -> None:
        self._tell, self._told = tell, 0

    def see(self, app: Application) -> None:
        state = app.state
        if state is None or state.progress.is_over or not state.finished or state.retries <= self._told:
            return
        self._told = state.retries
        self._tell(f"{app.name}: {plain(state.message)}")


class Sentences:
    """Prints the unmet wait conditions when they change, and every HEARTBEAT_SECONDS."""

    def __init__(self, waited: Waited, tell: Tell, clock: Callable[[], float] = time.monotonic) -> None:
        self._waited, self._tell, self._clock = waited, tell, clock
        self._last, self._told = "", clock() - HEARTBEAT

    def see(self, app: Application) -> None:
        missing = "; ".join(self._waited.missing(app))
        blocker = summary.health_message(app) if self._waited.health and summary.health_word(app) != "Healthy" else ""
        text = f"{missing}{f' ({blocker})' if blocker else ''}"
        if missing and (text != self._last or self._clock() - self._told >= HEARTBEAT):
            self._tell(f"{app.name}: waiting: {plain(text)}")
            self._last, self._told = text, self._clock()


class Canvas:
    """Lines that are redrawn in place in a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._drawn = 0
        self._last: list[str] = []

    def draw(self, lines: list[str]) -> None:
        if lines == self._last:
            return
        self._last = lines
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        text = "".join(f"\x1b[2K{line}\n" for line in lines)
        extra = max(self._drawn - len(lines), 0)
        self._stream.write(up + text + "\x1b[2K\n" * extra + (f"\x1b[{extra}A" if extra else ""))
        self._stream.flush()
        self._drawn = len(lines)


class Waves:
    """All waves, redrawn in place."""

    def __init__(self, stream: TextIO) -> None:
        self._canvas, self._screen = Canvas(stream), Screen(stream)

    def see(self, app: Application) -> None:
        self._canvas.draw(wave_lines(app, self._screen))

    def close(self) -> None:
        """Do nothing: the last display stays visible."""


def wave_lines(app: Application, screen: Screen) -> list[str]:
    """Render objects by wave. Objects without a result have not been synced yet and show their current status."""
    app = _without_earlier_operation(app)
    results = {each.key: each for each in app.state.results} if app.state else {}
    running = summary.is_busy(app)
    shown = sorted(summary.rows(app), key=lambda row: (row.wave, row.key))
    lines = []
    for row in shown[:MOST_ROWS]:
        mark = screen.mark(_word(row, is_waiting=running and row.key not in results))
        lead = f" wave {row.wave:<3} {mark}  {row.key.kind}/{row.key.name}  "
        lines.append(_cut(lead, _said(row), screen))
    if len(shown) > MOST_ROWS:
        lines.append(f" … and {len(shown) - MOST_ROWS} more")
    if app.state is not None:
        lines.append(_cut(f" {app.state.progress.value}: ", app.state.message, screen))
    return lines


def _said(row: Row) -> str:
    """argo: A message is from apply first and from the health check later; mark the latter with `health:`."""
    is_of_apply = not row.message or f"/{row.key.name} " in row.message or row.status in FAILING
    return row.message if is_of_apply or row.hook else f"health: {row.message}"


def _without_earlier_operation(app: Application) -> Application:
    """Drop the results of the last operation while the next one is requested and has not started."""
    return app if is_taken_up(app) else replace(app, state=None)


def _word(row: Row, *, is_waiting: bool) -> str:
    if is_waiting and row.health == "Missing":
        return "Missing"
    if row.status in FAILING:
        return "failed"
    return {"Succeeded": "Synced", "Running": "Progressing", "Pruned": "Synced"}.get(row.status, row.status)


def _cut(lead: str, message: str, screen: Screen) -> str:
    """Truncate a line to the width of the terminal, because a wrapped line would break the redraw."""
    room = None if screen.width is None else max(screen.width - shown_width(lead) - 1, 0)
    return (lead + plain(message)[:room]).rstrip()


def picture(stream: TextIO | None = None) -> Lines | Waves:
    stream = stream or sys.stdout
    return Waves(stream) if stream.isatty() else Lines(stream)
