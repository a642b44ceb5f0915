"""Scores a new user's first five minutes: rows that run one after another.

In: rows, each with a command and its expected output. Out: 0, 1 or 2 points for each: failed, worked with friction,
worked as documented. Never: a point for a row whose feature is not built.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from support.browser import chromium_here
from support.clusters import environment
from support.deadlines import HANG_SECONDS
from support.terminal import Seen, Terminal

SLACK = 2.0  # a test machine may take twice as long as a user's


class Mark(NamedTuple):
    """`friction`: output that a new user would miss; `failure`: why it did not work."""

    points: int
    seconds: float
    friction: tuple[str, ...] = ()
    failure: str = ""


@dataclass
class Look:
    """One row while it runs."""

    friction: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def shows(self, text: str, *patterns: str) -> None:
        """Required texts: if one is missing, the row fails."""
        for pattern in patterns:
            assert re.search(pattern, text, re.MULTILINE), f"{pattern!r} is not in:\n{text}"

    def hides(self, text: str, *patterns: str) -> None:
        for pattern in ("Traceback", *patterns):
            assert not re.search(pattern, text), f"{pattern!r} is in:\n{text}"

    def wants(self, text: str, **patterns: str) -> None:
        """Desired texts: if one is missing, the row has friction; the name says what is missing."""
        self.friction += [
            name.replace("_", " ") for name, pattern in patterns.items() if not re.search(pattern, text, re.MULTILINE)
        ]

    def took(self, result: Seen, code: int = 0) -> str:
        self.seconds += result.seconds
        assert result.code == code, f"exit {result.code}:\n{result.text}"
        self.hides(result.text)
        return result.text


class Browser:
    """The user's Chromium, started with the first tab; without Chromium, pages are not checked."""

    def __init__(self) -> None:
        self._tabs: dict[str, Any] = {}
        self._ends: list[Callable[[], object]] = []

    def tab(self, name: str) -> Any:
        if name not in self._tabs:
            from playwright.sync_api import sync_playwright

            playwright = sync_playwright().start()
            calm = ["--no-sandbox", "--disable-gpu"]
            chromium = playwright.chromium.launch(executable_path=chromium_here(), args=calm)
            self._ends += [playwright.stop, chromium.close]
            self._tabs[name] = chromium.new_page()
            self._tabs[name].set_default_timeout(HANG_SECONDS * 1000)
        return self._tabs[name]

    def first_paint(self, tab: Any) -> float:
        """Seconds from the request of the page to its first paint."""
        script = """() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime"""
        tab.wait_for_function(script)
        return float(tab.evaluate(script)) / 1000

    def row(self, tab: Any, name: str) -> str:
        """The row of an application in the list, as one line."""
        return " ".join(tab.locator(f"#rows tr:has-text('{name}')").inner_text().split())

    def follows(self, name: str, pattern: str) -> None:
        """Wait until the open list shows the pattern without a reload of the page."""
        if "apps" not in self._tabs:
            return
        tab, ends = self._tabs["apps"], time.monotonic() + HANG_SECONDS
        while not re.search(pattern, row_text := self.row(tab, name)):
            assert time.monotonic() < ends, row_text
            tab.wait_for_timeout(50)
        assert tab.evaluate("window.isTheSame"), "it was loaded again"

    def close(self) -> None:
        while self._ends:
            self._ends.pop()()


class Visitor:
    """A user with their own home, two terminals, and an installed argosy."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "bin").mkdir()
        program = home / "bin" / "argosy"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m argosy "$@"\n')
        program.chmod(0o755)
        (home / ".gitconfig").write_text("[user]\n  name = Vera Visitor\n  email = vera@example.com\n")
        user_environment = environment(home)
        env = {
            **user_environment,
            "PATH": f"{program.parent}:{user_environment['PATH']}",
            "XDG_CACHE_HOME": str(home / ".cache"),
        }
        self.first, self.second = Terminal(home, env), Terminal(home, env)
        self.browser = Browser()
        self.printed = ""  # output of the demo

    def type(self, line: str, **answers: str) -> Seen:
        """Run a command in the second terminal; the demo runs in the first."""
        return self.second.type(line, answers=answers or None)

    def processes(self) -> list[str]:
        """Command lines of all processes of this user except the shells."""
        mark = f"HOME={self.home}".encode()
        command_lines = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if mark in (folder / "environ").read_bytes().split(b"\0") and words[0] not in ("bash", ""):
                    command_lines.append(" ".join(words))
            except OSError:
                continue  # it has ended, or belongs to another user
        return command_lines

    def close(self) -> None:
        self.browser.close()
        self.first.close()
        self.second.close()


@dataclass(frozen=True)
class Row:
    at: str
    step: str
    typed: str
    budget: float  # seconds
    play: Callable[[Visitor, Look], None] | None  # None: not possible yet
    waits: str = ""  # the feature that is not built yet


@dataclass
class Visit:
    rows: tuple[Row, ...]
    visitor: Visitor
    marks: dict[str, Mark] = field(default_factory=dict)

    def mark(self, step: str) -> Mark:
        """Run all rows up to this one that have not run yet: each continues where the last one ended."""
        for row in self.rows:
            if row.step not in self.marks and row.play is not None:
                self.marks[row.step] = self._played(row)
            if row.step == step:
                break
        return self.marks[step]

    def _played(self, row: Row) -> Mark:
        look = Look()
        assert row.play is not None
        try:
            row.play(self.visitor, look)
        except Exception:  # any error means that the user is stuck
            return Mark(0, look.seconds, failure=traceback.format_exc(limit=-2))
        return Mark(1 if look.friction else 2, look.seconds, tuple(look.friction))

    def table(self) -> str:
        """Table of commands, points, and seconds next to the budget."""
        lines = [f"{'at':4}  {'step':14} {'points':>6}  {'seconds':>14}  remarks"]
        for row in self.rows:
            mark = self.marks.get(row.step)
            if mark is None:
                lines.append(f"{row.at:4}  {row.step:14} {'–':>6}  {'':>14}  waits for {row.waits}")
                continue
            slow = f"over {SLACK:.0f} × the budget" if mark.seconds > SLACK * row.budget else ""
            remarks = "; ".join(
                filter(None, (*(f"no {missing}" for missing in mark.friction), slow, mark.failure and "FAILED"))
            )
            seconds = f"{mark.seconds:.1f} of {row.budget:.1f}"
            lines.append(f"{row.at:4}  {row.step:14} {mark.points:>6}  {seconds:>14}  {remarks}")
        points, most = sum(mark.points for mark in self.marks.values()), 2 * len(self.marks)
        quick = sum(min(mark.points, 1 if mark.seconds > SLACK * row.budget else 2)
                    for row in self.rows if (mark := self.marks.get(row.step)))  # fmt: skip
        share = f"{100 * points / most:.1f}%" if most else "–"
        lines.append(f"score {points} of {most} ({share}); {quick} with time")
        return "\n".join(lines)


def has_chromium() -> bool:
    return bool(chromium_here()) and importlib.util.find_spec("playwright") is not None


def is_built(command: str) -> bool:
    from argosy.command_modules import COMMANDS

    return command in COMMANDS


def cores() -> int:
    return len(os.sched_getaffinity(0))
