"""Adds sections to the report of a failing test: its description, how to run it again, the logs of its servers.

In: logs and seeds that helpers record while a test runs. Out: sections of the report; on CI a copy of the logs under
`test-logs/`. Never: changes the test result.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

KEPT_LOGS = "test-logs"
TAIL_LINES = 30
_SEED = pytest.StashKey[str]()
_logs: list[Path] = []  # of servers that this process started and that the current test file may still use
_current_file: list[Path] = []


def record_log(path: Path) -> Path:
    """Register the log of a server, so that a failure report shows its path."""
    if path not in _logs:
        _logs.append(path)
    return path


def record_seed(node: pytest.Item, seed: str) -> None:
    """Record how to repeat a random test; printed when it fails, and at the end of every `make prove`."""
    node.stash[_SEED] = seed
    node.user_properties.append(("seed", seed))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if _current_file != [item.path]:
        _current_file[:] = [item.path]
        _logs.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.failed:
        report.sections.extend(_sections(item))
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("--tier") != "prove":
        return
    terminalreporter.section("seeds")
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, seed in getattr(report, "user_properties", ()):
                if name == "seed" and report.when == "call":
                    terminalreporter.write_line(f"{seed} {report.nodeid}")


def _sections(item: pytest.Item) -> list[tuple[str, str]]:
    seed = item.stash.get(_SEED, "")
    tier = item.config.getoption("--tier")  # determines how much of a proof runs
    again = f"{seed} .venv/bin/python -m pytest {f'--tier {tier} ' if tier else ''}'{item.nodeid}'".strip()
    sections = [("Story", story_of(item)), ("Run it again", again)]
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    where = [f"folder of the test: {folder}"] if folder else []
    logs = [path for path in _logs if path.is_file()]
    if os.environ.get("CI"):
        logs = [_keep(item, path) for path in logs]
    where += [f"{path}\n{_tail(path)}" for path in logs]
    if where:
        sections.append(("Logs", "\n".join(where)))
    return sections


def story_of(item: pytest.Item) -> str:
    """The first paragraph of the file's docstring, and the test name as a sentence."""
    module = getattr(item, "module", None)
    about = (getattr(module, "__doc__", None) or "").strip().split("\n\n")[0].replace("\n", " ")
    name = getattr(item, "originalname", None) or item.name
    sentence = name.removeprefix("test_").replace("_", " ")
    row = item.name.removeprefix(name)
    return f"{about}\n{sentence} {row}".strip()


def _keep(item: pytest.Item, log: Path) -> Path:
    folder = item.config.rootpath / KEPT_LOGS / re.sub(r"[^\w.-]+", "_", item.nodeid)[-150:]
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / f"{log.parent.name}-{log.name}"
    shutil.copyfile(log, copy)
    return copy


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return "\n".join(f"  {line}" for line in lines[-TAIL_LINES:])
