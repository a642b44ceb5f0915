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

from argosy.cli.tables import TerminalOutput, drop_control_characters, measure_width
from argosy.gitops.application import Application
from argosy.gitops.application_client import status_summary
from argosy.gitops.application_client.condition_wait import is_operation_started
from argosy.gitops.application_client.status_summary import ManagedObjectRow
from argosy.gitops.application_client.wait_conditions import WaitConditions
from argosy.kube.resource_key import ResourceKey

PrintLine = Callable[[str], None]
HEADINGS = ("TIMESTAMP", "GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HEALTH", "HOOK", "MESSAGE")
COLUMN_WIDTHS = (25, 10, 14, 15, 24, 9, 11, 8)  # argo: right-aligned, so that a stream stays readable
HEARTBEAT_SECONDS = 30.0  # repeat the wait message so that it does not seem to hang
FAILED_STATES = ("SyncFailed", "Failed", "Error")
MAX_ROWS = 30  # of the redrawn display


class ResultLinePrinter:
    """argo: Prints each changed object with a timestamp."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._printed_rows: dict[ResourceKey, ManagedObjectRow] = {}

    def show(self, app: Application) -> None:
        for row in status_summary.list_rows(_without_earlier_operation(app)):
            previous = self._printed_rows.get(row.key)
            if previous in (row, row._replace(message=previous.message) if previous and not row.message else row):
                continue  # an empty message of a starting operation is no change
            if not self._printed_rows:
                self._print(HEADINGS)
            self._printed_rows[row.key] = row
            now = datetime.now().astimezone().isoformat(timespec="seconds")
            key = row.key
            self._print(
                (now, key.group, key.kind, key.namespace, key.name, row.status, row.health, row.hook, row.message)
            )

    def _print(self, cells: Sequence[str]) -> None:
        first, *padded = [drop_control_characters(cell).rjust(width) for cell, width in zip(cells, COLUMN_WIDTHS)]
        line = "  ".join([first.strip().ljust(COLUMN_WIDTHS[0]), *padded, drop_control_characters(cells[-1])])
        print(line.rstrip(), file=self._stream, flush=True)

    def close(self) -> None:
        """Do nothing: no line is left open."""


class RetryReporter:
    """Prints each failed attempt that will be retried, because the line output does not show the pause."""

    def __init__(self, print_line: PrintLine) -> None:
        self._print_line, self._reported_retries = print_line, 0

    def show(self, app: Application) -> None:
        state = app.state
        if state is None or state.phase.is_over or not state.finished or state.retries <= self._reported_retries:
            return
        self._reported_retries = state.retries
        self._print_line(f"{app.name}: {drop_control_characters(state.message)}")


class WaitReporter:
    """Prints the unmet wait conditions when they change, and every HEARTBEAT_SECONDS."""

    def __init__(
        self, wait_condition: WaitConditions, print_line: PrintLine, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._wait_condition, self._print_line, self._clock = wait_condition, print_line, clock
        self._last_text, self._reported_at = "", clock() - HEARTBEAT_SECONDS

    def show(self, app: Application) -> None:
        missing = "; ".join(self._wait_condition.list_unmet(app))
        blocker = (
            status_summary.read_health_message(app)
            if self._wait_condition.health and status_summary.read_health_status(app) != "Healthy"
            else ""
        )
        text = f"{missing}{f' ({blocker})' if blocker else ''}"
        if missing and (text != self._last_text or self._clock() - self._reported_at >= HEARTBEAT_SECONDS):
            self._print_line(f"{app.name}: waiting: {drop_control_characters(text)}")
            self._last_text, self._reported_at = text, self._clock()


class TerminalCanvas:
    """Lines that are redrawn in place in a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._drawn_lines = 0
        self._last_lines: list[str] = []

    def draw(self, lines: list[str]) -> None:
        if lines == self._last_lines:
            return
        self._last_lines = lines
        cursor_up = f"\x1b[{self._drawn_lines}A" if self._drawn_lines else ""
        text = "".join(f"\x1b[2K{line}\n" for line in lines)
        surplus_lines = max(self._drawn_lines - len(lines), 0)
        self._stream.write(
            cursor_up + text + "\x1b[2K\n" * surplus_lines + (f"\x1b[{surplus_lines}A" if surplus_lines else "")
        )
        self._stream.flush()
        self._drawn_lines = len(lines)


class WaveDisplay:
    """All waves, redrawn in place."""

    def __init__(self, stream: TextIO) -> None:
        self._canvas, self._screen = TerminalCanvas(stream), TerminalOutput(stream)

    def show(self, app: Application) -> None:
        self._canvas.draw(render_waves(app, self._screen))

    def close(self) -> None:
        """Do nothing: the last display stays visible."""


def render_waves(app: Application, screen: TerminalOutput) -> list[str]:
    """Render objects by wave. Objects without a result have not been synced yet and show their current status."""
    app = _without_earlier_operation(app)
    results = {result.key: result for result in app.state.results} if app.state else {}
    is_running = status_summary.is_busy(app)
    sorted_rows = sorted(status_summary.list_rows(app), key=lambda row: (row.wave, row.key))
    lines = []
    for row in sorted_rows[:MAX_ROWS]:
        mark = screen.format_status(_status_word(row, is_waiting=is_running and row.key not in results))
        prefix = f" wave {row.wave:<3} {mark}  {row.key.kind}/{row.key.name}  "
        lines.append(_truncate_line(prefix, _format_message(row), screen))
    if len(sorted_rows) > MAX_ROWS:
        lines.append(f" … and {len(sorted_rows) - MAX_ROWS} more")
    if app.state is not None:
        lines.append(_truncate_line(f" {app.state.phase.value}: ", app.state.message, screen))
    return lines


def _format_message(row: ManagedObjectRow) -> str:
    """argo: A message is from apply first and from the health check later; mark the latter with `health:`."""
    is_apply_message = not row.message or f"/{row.key.name} " in row.message or row.status in FAILED_STATES
    return row.message if is_apply_message or row.hook else f"health: {row.message}"


def _without_earlier_operation(app: Application) -> Application:
    """Drop the results of the last operation while the next one is requested and has not started."""
    return app if is_operation_started(app) else replace(app, state=None)


def _status_word(row: ManagedObjectRow, *, is_waiting: bool) -> str:
    if is_waiting and row.health == "Missing":
        return "Missing"
    if row.status in FAILED_STATES:
        return "failed"
    return {"Succeeded": "Synced", "Running": "Progressing", "Pruned": "Synced"}.get(row.status, row.status)


def _truncate_line(prefix: str, message: str, screen: TerminalOutput) -> str:
    """Truncate a line to the width of the terminal, because a wrapped line would break the redraw."""
    max_length = None if screen.width is None else max(screen.width - measure_width(prefix) - 1, 0)
    return (prefix + drop_control_characters(message)[:max_length]).rstrip()


def create_progress_display(stream: TextIO | None = None) -> ResultLinePrinter | WaveDisplay:
    stream = stream or sys.stdout
    return WaveDisplay(stream) if stream.isatty() else ResultLinePrinter(stream)
