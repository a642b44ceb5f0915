"""Progress output of a notebook run: one line per finished cell; on a terminal also the running cell."""

from __future__ import annotations

import io
from typing import Any

import pytest

from argosy.features.notebooks.files.run_and_validate_cli import CLEAR_LINE, CellLinePrinter

EVENTS: list[dict[str, Any]] = [
    {"event": "started", "cells": 4, "code": 3},
    {"event": "finding", "cell": -1, "severity": "info", "message": "no assertions"},
    {"event": "cell", "cell": 0, "type": "markdown", "status": "Skipped", "seconds": 0},
    {"event": "begun", "cell": 1},
    {"event": "cell", "cell": 1, "type": "code", "status": "Success", "seconds": 1.25},
    {"event": "finding", "cell": 1, "severity": "warning", "message": "x is NaN\x1b[2J"},
    {"event": "begun", "cell": 2},
    {"event": "cell", "cell": 2, "type": "code", "status": "Failure", "seconds": 0.04, "errorMessage": "KeyError: 'a'"},
    {"event": "cell", "cell": 3, "type": "code", "status": "Skipped", "seconds": 0},
    {"event": "finished", "status": "failed"},
]


class Terminal(io.StringIO):
    encoding = "utf-8"

    def __init__(self, is_one: bool) -> None:
        super().__init__()
        self._is_one = is_one

    def isatty(self) -> bool:
        return self._is_one


def render_events(is_terminal: bool) -> str:
    stream = Terminal(is_terminal)
    lines = CellLinePrinter(["# Title", "load", "fit", "save"], stream)
    for event in EVENTS:
        lines.on_event(event)
    lines.print_pending_cell()
    return stream.getvalue()


def test_cell_line_includes_findings_and_drops_control_characters() -> None:
    assert [line.split() for line in render_events(False).splitlines()] == [
        ["1/3", "cell", "1", "▲", "load", "1.2s", "x", "is", "NaN", "[2J"],
        ["2/3", "cell", "2", "✖", "fit", "0.0s", "KeyError:", "'a'"],
        ["3/3", "cell", "3", "◌", "save", "skipped"],
    ]


@pytest.mark.parametrize(("kind", "is_shown"), [("xterm", True), ("dumb", False)])
def test_running_cell_is_hidden_on_a_dumb_terminal(kind: str, is_shown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setenv("NO_COLOR", "1")
    output = render_events(True)
    assert (f"{CLEAR_LINE} 1/3  cell 1   ● load" in output) is is_shown
    assert (CLEAR_LINE in output) is is_shown
